// Prints what TypeScript's own compiler knows of a directory with JavaScript or
// TypeScript, as reference facts for "agent graph bench --truth".
//
// usage: NODE_PATH=DIRECTORY/OF/typescript node javascript.js DIRECTORY
'use strict';
const fs = require('fs');
const path = require('path');
const ts = require('typescript');

const root = fs.realpathSync(process.argv[2]);
const skipped = new Set(['node_modules', 'vendor', 'third_party', 'bower_components', 'testdata']);
const lines = [];
const out = (fact) => lines.push(JSON.stringify(fact));

function sources(dir, found = []) {
  for (const e of fs.readdirSync(dir, { withFileTypes: true })) {
    const full = path.join(dir, e.name);
    if (e.name.startsWith('.')) continue;
    if (e.isDirectory() && !skipped.has(e.name)) sources(full, found);
    else if (e.isFile() && /\.([cm]?[jt]s|[jt]sx)$/.test(e.name) && !e.name.endsWith('.min.js') && fs.statSync(full).size <= 1 << 20) found.push(full);
  }
  return found;
}

const files = sources(root);
const program = ts.createProgram(files, {
  allowJs: true, checkJs: true, noEmit: true, target: ts.ScriptTarget.Latest, module: ts.ModuleKind.CommonJS,
  moduleResolution: ts.ModuleResolutionKind.Node10, jsx: ts.JsxEmit.Preserve, types: [], noLib: false, maxNodeModuleJsDepth: 0,
});
const checker = program.getTypeChecker();
const rel = (name) => {
  const r = path.relative(root, name);
  return r.startsWith('..') || r.includes('node_modules') ? '' : r;
};

// text returns the name of a declaration: what is assigned or declared.
function text(name) {
  if (!name) return '';
  if (ts.isIdentifier(name) || ts.isPrivateIdentifier(name) || ts.isStringLiteral(name)) return name.text;
  return '';
}

const isTest = /\.(test|spec)\.|\/(test|tests|__tests__)\//;
const isFunction = (n) => n && (ts.isFunctionExpression(n) || ts.isArrowFunction(n));

// named returns the name of a definition, or "" if a node is none.
function named(n) {
  if ((ts.isFunctionDeclaration(n) || ts.isMethodDeclaration(n) || ts.isGetAccessor(n) || ts.isSetAccessor(n)) && (n.body || ts.isMethodDeclaration(n))) {
    if (ts.isObjectLiteralExpression(n.parent)) return '';
    return text(n.name) || (n.modifiers || []).some((m) => m.kind === ts.SyntaxKind.DefaultKeyword) && 'default' || '';
  }
  if (ts.isFunctionDeclaration(n)) return text(n.name);
  if (ts.isConstructorDeclaration(n)) return 'constructor';
  if (ts.isConstructSignatureDeclaration(n) && ts.isInterfaceDeclaration(n.parent)) return 'new';
  if (ts.isClassDeclaration(n) || ts.isInterfaceDeclaration(n) || ts.isEnumDeclaration(n)) return text(n.name) || 'default';
  if (ts.isClassExpression(n)) return text(n.name) || (ts.isVariableDeclaration(n.parent) ? text(n.parent.name) : '');
  if (ts.isMethodSignature(n) && ts.isInterfaceDeclaration(n.parent)) return text(n.name);
  if (isFunction(n)) {
    const p = ts.walkUpParenthesizedExpressions ? ts.walkUpParenthesizedExpressions(n.parent) : n.parent;
    if (ts.isVariableDeclaration(p) || ts.isPropertyDeclaration(p)) return text(p.name);
    if (ts.isBinaryExpression(p) && p.right === n && p.operatorToken.kind === ts.SyntaxKind.EqualsToken && !scope(p) && assigned(p.left)) return assigned(p.left);
    if (ts.isExportAssignment(p)) return 'default';
    if (ts.isCallExpression(p) && isTest.test(n.getSourceFile().fileName) && /^(it|test|specify)\b/.test(p.expression.getText()) && p.arguments[1] === n && ts.isStringLiteralLike(p.arguments[0]) && p.arguments[0].text) {
      return p.arguments[0].text.replaceAll('.', '·');
    }
    return text(n.name);
  }
  return '';
}

// assigned returns how a.b = function is called: exports.b is b.
function assigned(left) {
  const parts = left.getText().split('.');
  if (parts.some((p) => !/^[\w$]+$/.test(p)) || parts[0] === 'this') return '';
  if (parts[0] === 'module' && parts.length === 2) return 'default';
  if (parts[0] === 'exports' || parts[0] === 'module') return parts[parts.length - 1];
  if (parts.length === 3 && parts[1] === 'prototype') return parts[0] + '.' + parts[2];
  return parts.length === 2 ? parts.join('.') : '';
}

// scope returns the dotted name of the definition around a node.
function scope(n) {
  const names = [];
  for (let at = n.parent; at; at = at.parent) {
    const name = named(at);
    if (name) names.unshift(name);
  }
  return names.join('.');
}

const full = (n) => [scope(n), named(n)].filter(Boolean).join('.');

// target returns the definition that a call leads to: undefined if unknown, null if
// it is not of this directory.
function target(call) {
  const callee = ts.isPropertyAccessExpression(call.expression) ? call.expression.name : call.expression;
  let symbol = checker.getSymbolAtLocation(callee);
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
  const declarations = (symbol && symbol.declarations) || [];
  let foreign = false;
  for (let d of declarations) {
    for (const inner of [d.initializer, d.parent && ts.isBinaryExpression(d.parent) && d.parent.right, ts.isBinaryExpression(d) && d.right]) {
      if (inner && (isFunction(inner) || ts.isClassExpression(inner))) d = inner;
    }
    const file = rel(d.getSourceFile().fileName);
    if (!file) foreign = true;
    else if (named(d)) return { file, name: full(d), how: ts.isPropertyAccessExpression(call.expression) ? 'method' : 'static' };
  }
  return foreign ? null : undefined;
}

for (const name of files) {
  const source = program.getSourceFile(name);
  const file = rel(name);
  if (!source) continue;
  out({ kind: 'file', file });
  const callers = new Map([['', new Set()]]);
  const load = (spec) => {
    const r = ts.resolveModuleName(spec, name, program.getCompilerOptions(), ts.sys).resolvedModule;
    const to = r && rel(fs.realpathSync(r.resolvedFileName));
    if (to && to !== file && /\.([cm]?[jt]s|[jt]sx)$/.test(to)) out({ kind: 'import', file, to });
  };
  const visit = (n) => {
    if (named(n)) {
      out({ kind: 'definition', file, name: full(n) });
      if (!callers.has(full(n))) callers.set(full(n), new Set());
    }
    if ((ts.isImportDeclaration(n) || ts.isExportDeclaration(n)) && n.moduleSpecifier) load(n.moduleSpecifier.text);
    if (ts.isCallExpression(n) || ts.isNewExpression(n)) {
      const first = n.arguments && n.arguments[0];
      if (first && ts.isStringLiteral(first) && (n.expression.kind === ts.SyntaxKind.ImportKeyword || n.expression.getText() === 'require')) load(first.text);
      const from = scope(n);
      if (!callers.has(from)) callers.set(from, new Set());
      const to = target(n);
      if (to) out({ kind: 'call', file, name: from, to: to.file, toName: to.name, how: to.how });
      else if (to === undefined) callers.get(from).add(n.expression.getText().split('.').pop());
    }
    ts.forEachChild(n, visit);
  };
  visit(source);
  for (const [caller, unknown] of callers) out({ kind: 'caller', file, name: caller, unknown: [...unknown] });
}
fs.writeSync(1, lines.join('\n') + '\n');
