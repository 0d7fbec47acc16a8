package graph

import (
	"slices"
	"strings"
)

// rustScanner reads Rust item by item (doc.rust-lang.org/reference/items.html).
type rustScanner struct {
	braceScanner
	bounds [][2]string // type parameters of the impl or trait around, and their traits
}

func scanRust(o *outline, f *fileFacts, src []byte) {
	s := &rustScanner{braceScanner: braceScanner{language: "rust"}}
	s.jsScanner = jsScanner{o: o, f: f, src: src, t: lexBraces("rust", src)}
	s.pair()
	s.items(0, len(s.t), -1, "")
}

// items reads the items between two tokens, in a scope with a name.
func (s *rustScanner) items(i, end, scope int, prefix string) {
	for i < end {
		i = max(s.item(i, end, scope, prefix), i+1)
	}
}

// rustItem is where the parts of an item are.
type rustItem struct {
	first, start, at, end int // its attributes, what follows them, its keyword, the end of the scope
	scope                 int
	prefix                string
	test                  bool
}

// item reads the item that begins at a token and returns what follows it.
func (s *rustScanner) item(i, end, scope int, prefix string) int {
	it := rustItem{first: i, end: end, scope: scope, prefix: prefix}
	for s.op(i, "#") {
		open := i + 1
		if s.op(open, "!") {
			open++
		}
		close := max(s.close(open), i+1)
		it.test = it.test || s.op(open, "[") && s.name(close-2) == "test" && (close == open+3 || s.op(close-3, "::"))
		i = close
	}
	it.start = i
	it.at = s.modifiers(i)
	switch s.name(it.at) {
	case "use":
		semicolon := s.until(it.at, end, ";")
		s.rustUse(it, semicolon)
		return semicolon + 1
	case "mod":
		return s.module(it)
	case "fn":
		return s.fn(it)
	case "struct", "enum", "union", "trait":
		return s.typeItem(it)
	case "impl":
		return s.impl(it)
	case "const", "static":
		return s.constant(it)
	case "type":
		return s.until(it.at, end, ";") + 1
	case "extern":
		return s.extern(it)
	}
	return s.itemMacro(it)
}

// modifiers returns the keyword behind pub, unsafe, async …
func (s *rustScanner) modifiers(i int) int {
	for {
		switch next := i + 1; s.name(i) {
		case "pub":
			if s.op(next, "(") {
				next = s.close(next)
			}
			i = next
		case "unsafe", "async", "default", "auto", "safe":
			if s.name(next) == "" {
				return i
			}
			i = next
		case "const":
			switch s.name(next) {
			case "fn", "unsafe", "async", "extern":
				i = next
			default:
				return i
			}
		case "extern":
			if _, abi := s.str(next); abi {
				next++
			}
			if s.name(next) != "fn" {
				return i
			}
			i = next
		default:
			return i
		}
	}
}

// until returns the next of some operators outside of brackets and generic parameters.
func (s *rustScanner) until(i, end int, ops ...string) int {
	for i < end {
		switch {
		case slices.ContainsFunc(ops, func(text string) bool { return s.op(i, text) }):
			return i
		case s.op(i, "(") || s.op(i, "[") || s.op(i, "{"):
			i = s.close(i)
		case s.op(i, "<"):
			i = max(s.generic(i), i+1)
		default:
			i++
		}
	}
	return end
}

// addItem adds the definition of an item that ends before a token.
func (s *rustScanner) addItem(it rustItem, d definition, head, end int) int {
	def := s.add(d, it.start, head, end)
	if s.o.Defs[def].Doc == "" {
		s.o.Defs[def].Doc = s.comment(it.first)
	}
	return def
}

func (s *rustScanner) module(it rustItem) int {
	open := it.at + 2
	name := s.name(it.at + 1)
	if name == "" || !s.op(open, "{") {
		return it.at + 2
	}
	end := s.close(open)
	def := s.addItem(it, definition{Name: it.prefix + name, Kind: Package}, open, end)
	s.items(open+1, end-1, def, it.prefix+name+".")
	return end
}

// fn reads a function, or a method of a trait without a body.
func (s *rustScanner) fn(it rustItem) int {
	name, paren := s.name(it.at+1), s.generic(it.at+2)
	if name == "" || !s.op(paren, "(") {
		return it.at + 1
	}
	arrow := s.close(paren)
	open := s.until(arrow, it.end, "{", ";")
	end := s.close(open)
	d := definition{Name: it.prefix + name, Kind: Function}
	if it.scope >= 0 && (s.o.Defs[it.scope].Kind == Class || s.o.Defs[it.scope].Kind == Interface) || it.scope < 0 && strings.Contains(it.prefix, ".") {
		d.Kind = Method
	}
	if it.test {
		d.Kind = Test
	}
	if s.op(arrow, "->") {
		d.Result = s.plainType(arrow + 1)
	}
	def := s.addItem(it, d, open, end)
	for _, b := range append(slices.Clone(s.bounds), s.typeParameters(it.at+2, open)...) {
		s.o.Vars = append(s.o.Vars, variable{def, b[0], b[1]})
	}
	s.typedParams(def, paren)
	if s.op(open, "{") {
		s.body(open+1, end-1, def)
	}
	return end
}

// typeParameters returns the type parameters between two tokens and the one trait that
// tells what methods each has.
func (s *rustScanner) typeParameters(i, end int) [][2]string {
	var all [][2]string
	for ; i < end; i++ {
		if s.op(i, "(") || s.op(i, "[") {
			i = s.close(i) - 1
			continue
		}
		name := s.name(i)
		if name == "" || !s.op(i+1, ":") || !(s.op(i-1, "<") || s.op(i-1, ",") || s.name(i-1) == "where") {
			continue
		}
		bound, several := "", false
		for i += 2; i < end && !s.op(i, ",") && !s.op(i, ">") && !s.op(i, "{") && !s.op(i, "="); i++ {
			if s.op(i, "<") || s.op(i, "(") {
				i = max(s.generic(i), s.close(i)) - 1
				continue
			}
			if n := s.dottedName(i); n != "" && !marker()[n[strings.LastIndexByte(n, '.')+1:]] && !s.op(i-1, "::") && !s.op(i-1, "?") {
				several = several || bound != ""
				bound = n
			}
		}
		i-- // the , may lead to the next
		if several {
			bound = ""
		}
		all = append(all, [2]string{name, bound})
	}
	return all
}

// marker are traits of the standard library that bounds name beside others.
var marker = words(`Copy Clone Sized Send Sync Unpin Debug Default Eq PartialEq Ord PartialOrd Hash Fn FnMut FnOnce for`)

// typeItem reads a struct, enum, union or trait.
func (s *rustScanner) typeItem(it rustItem) int {
	name := s.name(it.at + 1)
	if name == "" {
		return it.at + 1
	}
	word := s.name(it.at)
	open := s.until(it.at+2, it.end, "{", ";")
	end := s.close(open)
	d := definition{Name: it.prefix + name, Kind: Class}
	colon := s.generic(it.at + 2)
	if word == "trait" {
		d.Kind = Interface
		for i := colon; i < open && s.name(i) != "where"; i++ {
			if s.op(i, ":") || s.op(i, "+") {
				if base := s.dottedName(i + 1); base != "" {
					d.Bases = append(d.Bases, base)
				}
			}
			i = max(s.generic(i)-1, i)
		}
	}
	def := s.addItem(it, d, open, end)
	switch {
	case !s.op(open, "{"):
	case word == "trait":
		s.knowing(it.at+2, open, func() { s.items(open+1, end-1, def, d.Name+".") })
	case word != "enum":
		s.fields(open+1, end-1, def)
	}
	return end
}

// fields remembers the fields of a struct of Rust.
func (s *rustScanner) fields(i, end, def int) {
	for ; i < end; i++ {
		if s.name(i) != "" && s.op(i+1, ":") {
			s.o.Vars = append(s.o.Vars, variable{def, s.name(i), s.plainType(i + 2)})
			i = s.until(i+1, end, ",")
		}
	}
}

// typedParams remembers the parameters of a function.
func (s *rustScanner) typedParams(def, paren int) {
	for i := paren + 1; i < s.close(paren)-1; i++ {
		if s.name(i) != "" && s.op(i+1, ":") {
			s.o.Vars = append(s.o.Vars, variable{def, s.name(i), s.plainType(i + 2)})
		}
	}
}

// plainType returns the type that a declaration names, without what surrounds it
// in Rust: references, Box, Arc …
func (s *rustScanner) plainType(i int) string {
	for s.op(i, "&") || s.name(i) == "mut" || s.name(i) == "dyn" || s.name(i) == "impl" || s.name(i) == "const" {
		i++
	}
	name := s.dottedName(i)
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "Box", "Arc", "Rc", "RefCell", "Mutex":
		for ; i < len(s.t) && !s.op(i, "<"); i++ {
			if s.op(i, ",") || s.op(i, ";") {
				return ""
			}
		}
		return s.plainType(i + 1)
	}
	if s.keyword(headOf(name)) && headOf(name) != "crate" && headOf(name) != "super" && headOf(name) != "Self" {
		return ""
	}
	return name
}

// knowing reads what knows the type parameters of an impl or trait.
func (s *rustScanner) knowing(i, end int, read func()) {
	before := s.bounds
	s.bounds = append(slices.Clone(before), s.typeParameters(i, end)...)
	read()
	s.bounds = before
}

// impl reads the methods of a type.
func (s *rustScanner) impl(it rustItem) int {
	open := s.until(it.at+1, it.end, "{", ";")
	end := s.close(open)
	i := s.generic(it.at + 1)
	trait, name := "", s.implemented(i)
	for j := i; j < open && s.name(j) != "where"; j++ {
		if s.name(j) == "for" && !s.op(j+1, "<") {
			trait, name = s.dottedName(i), s.implemented(j+1)
		}
		j = max(s.generic(j)-1, j)
	}
	if name == "" || !s.op(open, "{") {
		return end
	}
	own := it.prefix + name
	def := slices.IndexFunc(s.o.Defs, func(d definition) bool { return d.Name == own })
	if def >= 0 && trait != "" {
		s.o.Defs[def].Bases = append(s.o.Defs[def].Bases, trait)
	}
	s.knowing(it.at+1, open, func() { s.items(open+1, end-1, def, own+".") })
	return end
}

// implemented returns the name of the type that an impl is for, without references;
// [T] for slices and arrays.
func (s *rustScanner) implemented(i int) string {
	for s.op(i, "&") || s.op(i, "!") || s.op(i, "*") || s.name(i) == "mut" || s.name(i) == "dyn" || s.name(i) == "const" {
		i++
	}
	if s.op(i, "[") {
		if name := s.dottedName(i + 1); name != "" {
			return "[" + name + "]"
		}
	}
	return s.dottedName(i)
}

// constant reads a const or static.
func (s *rustScanner) constant(it rustItem) int {
	at := it.at + 1
	if s.name(at) == "mut" || s.name(at) == "ref" {
		at++
	}
	end := s.until(at, it.end, ";")
	eq := s.until(at, end, "=")
	if name := s.name(at); name != "" && name != "_" {
		s.o.Vars = append(s.o.Vars, variable{it.scope, name, s.plainType(at + 2)})
		if it.scope < 0 && it.prefix == "" || it.scope >= 0 && s.o.Defs[it.scope].Kind == Package {
			s.addItem(it, definition{Name: it.prefix + name, Kind: Variable}, end, end)
		}
	}
	s.body(eq, end, it.scope)
	return end + 1
}

// extern reads extern crate NAME, and skips the declarations of foreign functions.
func (s *rustScanner) extern(it rustItem) int {
	end := s.until(it.at, it.end, ";")
	if s.name(it.at+1) != "crate" {
		return s.close(s.until(it.at, it.end, "{", ";"))
	}
	name, as := s.name(it.at+2), s.name(it.at+2)
	if s.name(it.at+3) == "as" {
		as = s.name(it.at + 4)
	}
	if name != "self" && as != "_" {
		s.bind("", name, as, s.name(it.start) == "pub", s.t[it.at].line)
	}
	return end + 1
}

// itemMacro skips a macro in the place of an item, and reads the items within it if it
// has some, as cfg_if! does.
func (s *rustScanner) itemMacro(it rustItem) int {
	i := it.at
	for s.name(i) != "" && s.op(i+1, "::") {
		i += 2
	}
	if s.name(i) == "" || !s.op(i+1, "!") {
		return it.at + 1
	}
	open, rules := i+2, s.name(i) == "macro_rules"
	if s.name(open) != "" {
		open++
	}
	end := s.close(open)
	if rules || !s.op(open, "{") {
		return end
	}
	for j := open + 1; j < end-1; {
		switch n := s.name(j); {
		case n == "if" || n == "else":
			j = s.until(j, end-1, "{")
			s.items(j+1, s.close(j)-1, it.scope, it.prefix)
			j = s.close(j)
		default:
			j = max(s.item(j, end-1, it.scope, it.prefix), j+1)
		}
	}
	return end
}

// rustUse reads a use. In a module within the file super is the module around it.
func (s *rustScanner) rustUse(it rustItem, end int) {
	from := len(s.o.Imports)
	s.use(it.at+1, end, "", s.name(it.start) == "pub", s.t[it.at].line)
	inner := ""
	for scope := it.scope; scope >= 0 && inner == ""; scope = s.parent(scope) {
		if s.o.Defs[scope].Kind == Package {
			inner = s.o.Defs[scope].Name
		}
	}
	if inner == "" {
		return
	}
	for i := range s.o.Imports[from:] {
		im := &s.o.Imports[from+i]
		path := strings.Split(inner, ".")
		rest := im.Module
		for len(path) > 0 && headOf(rest) == "super" {
			path, rest = path[:len(path)-1], strings.TrimPrefix(strings.TrimPrefix(rest, "super"), ".")
		}
		if rest != im.Module {
			im.Module = strings.TrimSuffix(join(join("self", strings.Join(path, ".")), rest), ".")
		}
	}
}

// parent returns the definition around another, or -1.
func (s *rustScanner) parent(def int) int {
	name := s.o.Defs[def].Name
	outer := name[:max(strings.LastIndexByte(name, '.'), 0)]
	return slices.IndexFunc(s.o.Defs, func(d definition) bool { return outer != "" && d.Name == outer })
}

// use reads a tree of use: a::b::{self, c as d, e::*}.
func (s *rustScanner) use(i, end int, prefix string, again bool, line int) {
	for i < end {
		module, last := prefix, ""
		for i < end && !s.op(i, ",") && !s.op(i, "}") {
			switch {
			case s.name(i) == "as":
				s.bind(module, last, s.name(i+1), again, line)
				last = ""
				i++
			case s.op(i, "::"):
				module, last = join(module, last), ""
			case s.op(i, "*"):
				s.o.Imports = append(s.o.Imports, imported{Module: module, Name: "*", Line: line, Again: again})
			case s.op(i, "{"):
				s.use(i+1, s.close(i)-1, module, again, line)
				i = s.close(i) - 1
			case s.name(i) != "":
				last = s.name(i)
			}
			i++
		}
		if last == "self" {
			dot := strings.LastIndexByte(module, '.')
			s.bind(module[:max(dot, 0)], module[dot+1:], module[dot+1:], again, line)
		} else if last != "" {
			s.bind(module, last, last, again, line)
		}
		i++
	}
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "." + b
}

func (s *rustScanner) bind(module, name, as string, again bool, line int) {
	if name != "" {
		s.o.Imports = append(s.o.Imports, imported{Module: module, Name: name, As: as, Line: line, Again: again})
	}
}
