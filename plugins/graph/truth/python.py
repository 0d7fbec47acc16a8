"""Prints what Python's own parser and Jedi know of a directory, as reference facts
for "agent graph bench --truth". Jedi is asked about the calls of every file whose
number in the list is a multiple of STEP: it takes a while.

usage: python.py DIRECTORY [STEP]
"""

import ast
import json
import os
import sys

import jedi

SKIPPED = {"node_modules", "vendor", "third_party", "__pycache__", "venv", "testdata"}


def out(**fact):
    print(json.dumps(fact))


class Reader(ast.NodeVisitor):
    """States what one file defines and imports, and collects its calls."""

    def __init__(self, path):
        self.path = path
        self.scope = []
        self.calls = []  # of (scope, line, column, name)
        self.imports = []

    def define(self, node):
        for part in node.decorator_list:
            self.visit(part)
        out(kind="definition", file=self.path, name=".".join(self.scope + [node.name]))
        if not isinstance(node, ast.ClassDef):
            for part in [node.args, node.returns]:
                if part:
                    self.visit(part)
        else:
            for part in node.bases + node.keywords:
                self.visit(part)
        self.scope.append(node.name)
        for part in node.body:
            self.visit(part)
        self.scope.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = define

    def visit_Call(self, node):
        f = node.func
        if isinstance(f, (ast.Name, ast.Attribute)):
            name = f.id if isinstance(f, ast.Name) else f.attr
            self.calls.append((".".join(self.scope), f.end_lineno, f.end_col_offset - len(name.encode()), name))
        self.generic_visit(node)

    def visit_Import(self, node):
        for name in node.names:
            self.imports.append((0, name.name, None))

    def visit_ImportFrom(self, node):
        for name in node.names:
            self.imports.append((node.level, node.module or "", name.name))


def files(root):
    for at, dirs, names in os.walk(root):
        dirs[:] = sorted(d for d in dirs if d not in SKIPPED and not d.startswith("."))
        for name in sorted(names):
            path = os.path.join(at, name)
            if name.endswith(".py") and not os.path.islink(path) and os.path.getsize(path) <= 1 << 20:
                yield os.path.relpath(path, root)


def imported(root, path, level, module, name):
    """The files that an import names: the module, and the one within it."""
    base = root
    if level:
        base = os.path.join(root, path)
        for _ in range(level):
            base = os.path.dirname(base)
    at = os.path.join(base, *[p for p in module.split(".") if p])
    for stem in ([os.path.join(at, name)] if name else []) + [at]:
        for end in (".py", "/__init__.py"):
            if os.path.isfile(stem + end):
                yield os.path.relpath(stem + end, root)
                break


def target(root, d):
    """The definition that a name of Jedi stands for: path and dotted name."""
    path = str(d.module_path or "")
    if "/typeshed/" in path:  # the stub of a module that is here
        for end in (".py", "/__init__.py"):
            if os.path.isfile(os.path.join(root, d.module_name.replace(".", "/") + end)):
                path = os.path.join(root, d.module_name.replace(".", "/") + end)
    if not path.startswith(root + os.sep):
        return None
    names, at = [], d
    while at is not None and at.type != "module":
        names.insert(0, at.name)
        at = at.parent()
    return os.path.relpath(path, root), ".".join(names)


def resolve(root, project, reader, source):
    script = jedi.Script(source, path=os.path.join(root, reader.path), project=project)
    lines = source.split("\n")
    unknown = {"": set()}
    for scope, line, column, name in reader.calls:
        column = len(lines[line - 1].encode()[:column].decode(errors="replace"))
        try:
            found = script.goto(line, column, follow_imports=True)
        except Exception:  # Jedi fails on some code
            found = []
        found = [d for d in found if d.type in ("function", "class")]
        if len(found) != 1:
            unknown.setdefault(scope, set()).add(name)
            continue
        unknown.setdefault(scope, set())
        to = target(root, found[0])
        if to:
            out(kind="call", file=reader.path, name=scope, to=to[0], toName=to[1], how="static" if found[0].parent().type == "module" else "method")
    for scope, names in unknown.items():
        out(kind="caller", file=reader.path, name=scope, unknown=sorted(names))


def main():
    root = os.path.realpath(sys.argv[1])
    step = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    project = jedi.Project(root, smart_sys_path=False, added_sys_path=[root])
    for i, path in enumerate(files(root)):
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            source = f.read()
        reader = Reader(path)
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        out(kind="file", file=path)
        reader.visit(tree)
        for level, module, name in reader.imports:
            for to in imported(root, path, level, module, name):
                if to != path:
                    out(kind="import", file=path, to=to)
        if i % step == 0:
            resolve(root, project, reader, source)


main()
