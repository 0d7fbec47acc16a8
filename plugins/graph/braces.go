package graph

import (
	"path"
	"strings"
)

// braceScanner reads the structure of languages with braces: what stands before a
// { or ; says what it is.
type braceScanner struct {
	jsScanner
	language string
}

var braceKeywords = map[string]func() map[string]bool{
	"java": words(`if for while switch catch return new throw case else do try finally synchronized assert instanceof super this
		import package class interface enum record extends implements throws public private protected static final abstract native default
		void int long short byte char float double boolean var null true false yield`),
	"rust": words(`if for while match return loop in as let mut ref move fn struct enum trait impl mod use pub crate self Self super
		where unsafe async await dyn const static type break continue else true false Some None Ok Err extern box`),
	"c": words(`if for while switch catch return new throw case else do try sizeof alignof decltype typeof delete goto static inline
		extern const volatile struct class enum union namespace template typename public private protected virtual override operator using
		void int long short char float double bool unsigned signed auto this static_cast dynamic_cast reinterpret_cast const_cast
		static_assert _Static_assert __attribute__ defined noexcept constexpr typedef friend explicit default register asm __asm__ nullptr NULL true false`),
}

func scanBraces(o *outline, f *fileFacts, src []byte) {
	s := &braceScanner{language: f.language}
	s.jsScanner = jsScanner{o: o, f: f, src: src, t: lexBraces(f.language, src)}
	s.pair()
	s.block(0, len(s.t), -1, "")
}

func (s *braceScanner) keyword(name string) bool { return braceKeywords[s.language]()[name] }

// block reads declarations between two tokens, in a scope with a name.
func (s *braceScanner) block(i, end, scope int, prefix string) {
	start := i
	for i < end {
		switch t := s.t[i]; {
		case t.kind == 's' && strings.HasPrefix(t.text, "#"):
			s.o.Imports = append(s.o.Imports, imported{Module: t.text[1:], Line: t.line})
			i++
			start = i
		case s.op(i, "@") && s.language == "java" && s.name(i+1) != "interface":
			for i += 2; s.op(i, "."); i += 2 {
			}
			if s.op(i, "(") {
				i = s.close(i)
			}
			start = s.after(start, i)
		case s.op(i, ";"):
			s.statement(start, i, scope, prefix)
			i++
			start = i
		case s.op(i, "="), s.op(i, "("):
			if s.op(i, "(") {
				i = s.close(i)
				continue
			}
			for i < end && !s.op(i, ";") { // an initial value
				if s.op(i, "{") || s.op(i, "(") || s.op(i, "[") {
					i = s.close(i)
				} else {
					i++
				}
			}
			s.statement(start, min(i, end), scope, prefix)
			i++
			start = i
		case s.op(i, "{"):
			i = s.braced(start, i, scope, prefix)
			start = i
		case s.op(i, "}"), (s.op(i, ":") && start == i-1 && s.language == "c"):
			i++
			start = i
		default:
			i++
		}
	}
}

// after returns where a declaration begins whose annotations end at i: behind them
// if nothing but modifiers came before.
func (s *braceScanner) after(start, i int) int {
	for j := start; j < i; j++ {
		if s.op(j, "@") {
			return i
		}
		if n := s.name(j); n == "" || !s.keyword(n) {
			return start
		}
	}
	return i
}

// braced reads what { … } belongs to and returns what follows.
func (s *braceScanner) braced(start, open, scope int, prefix string) int {
	end := s.close(open)
	inner := max(open+1, end-1)
	word, at := s.leading(start, open)
	switch word {
	case "namespace":
		name := s.name(at + 1)
		for j := at + 2; s.op(j, "::"); j += 2 {
			name += "." + s.name(j+1)
		}
		if name != "" {
			name += "."
		}
		s.block(open+1, inner, scope, prefix+name)
	case "extern":
		if s.params(start, open) < 0 {
			s.block(open+1, inner, scope, prefix)
		} else {
			s.function(start, open, end, scope, prefix)
		}
	case "class", "struct", "union", "interface", "enum", "record":
		if s.language == "c" && s.params(at, open) >= 0 {
			s.function(start, open, end, scope, prefix)
			break
		}
		s.class(word, at, open, end, prefix)
	default:
		if s.params(start, open) >= 0 {
			s.function(start, open, end, scope, prefix)
		} else if scope >= 0 {
			s.calls(open+1, inner, scope) // a static initializer
		}
	}
	return end
}

// leading returns the first word that says what a declaration is.
func (s *braceScanner) leading(start, end int) (string, int) {
	for i := start; i < end; i++ {
		if s.op(i, "<") {
			i = max(s.generic(i)-1, i)
			continue
		}
		switch n := s.name(i); n {
		case "class", "struct", "union", "interface", "enum", "namespace", "extern":
			if n == "enum" && s.name(i+1) == "class" {
				i++
			}
			return n, i
		case "record":
			if s.name(i+1) != "" && s.op(s.generic(i+2), "(") {
				return n, i
			}
		}
		if s.op(i, "(") && s.name(i-1) != "pub" && s.name(i-1) != "__attribute__" {
			break
		}
	}
	return "", start
}

// params returns the ( of a function's parameters, or -1.
func (s *braceScanner) params(start, end int) int {
	for i := start; i < end; i++ {
		switch {
		case s.op(i, "<"):
			i = max(s.generic(i)-1, i)
		case s.op(i, "="):
			return -1
		case s.op(i, "(") && s.language == "c" && strings.ToUpper(s.name(i-1)) == s.name(i-1) && (s.name(s.close(i)) != "" && !s.keyword(s.name(s.close(i))) || s.op(s.close(i), "*")):
			i = s.close(i) - 1 // a macro: EXPORT(type) name(…)
		case s.op(i, "(") && s.name(i-1) != "" && s.name(i-1) != "pub" && s.name(i-1) != "__attribute__" && s.name(i-1) != "decltype" && s.name(i-1) != "alignas":
			return i
		case s.op(i, "(") && s.op(i-1, ">"):
			return i
		case s.op(i, "("):
			i = s.close(i) - 1
		}
	}
	return -1
}

// add adds a definition whose source is from a token to before another.
func (s *braceScanner) add(d definition, from, head, end int) int {
	last := min(max(end-1, from), len(s.t)-1)
	d.Line, d.End = s.t[from].line, s.t[last].line
	d.Sig = string(s.src[s.t[from].start:s.t[min(head, len(s.t)-1)].start])
	d.Hash = contentHash(s.src[s.t[from].start:s.t[last].end])
	d.Doc = s.comment(from)
	s.o.Defs = append(s.o.Defs, d)
	return len(s.o.Defs) - 1
}

// comment returns the first sentence of the comment before a token.
func (s *braceScanner) comment(i int) string {
	if text := s.doc(i); text != "" {
		return text
	}
	start := 0
	if i > 0 {
		start = s.t[i-1].end
	}
	var lines []string
	for line := range strings.Lines(string(s.src[start:s.t[i].start])) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "//"); ok {
			lines = append(lines, strings.TrimLeft(rest, "/! "))
		} else {
			lines = nil
		}
	}
	return firstSentence(strings.Join(lines, " "))
}

func (s *braceScanner) class(word string, at, open, end int, prefix string) {
	name := ""
	i := at + 1
	for ; i < open; i++ {
		if next := s.name(i + 1); s.language == "c" && next != "" && next != "final" && !s.keyword(next) {
			continue // a macro: class EXPORT Name
		}
		if n := s.name(i); n != "" && !s.keyword(n) && !s.op(i+1, "(") {
			name = n
			break
		} else if n != "" && word == "record" {
			name = n
			break
		}
	}
	if name == "" { // of a typedef, or without a name
		if s.language != "c" || s.name(at-1) != "typedef" {
			return
		}
		if name = s.name(end); name == "" || s.keyword(name) {
			return
		}
	}
	kind := Class
	if word == "interface" {
		kind = Interface
	}
	d := definition{Name: prefix + name, Kind: kind}
	for j := i + 1; j < open; j++ {
		if s.op(j, "<") {
			j = max(s.generic(j)-1, j)
			continue
		}
		if n := s.name(j); n != "" && !s.keyword(n) && (s.name(j-1) == "extends" || s.name(j-1) == "implements" || s.op(j-1, ",") || s.op(j-1, ":") || s.name(j-1) == "public") {
			d.Bases = append(d.Bases, s.dottedName(j))
		}
	}
	def := s.add(d, at, open, end)
	if word == "enum" && s.language == "c" {
		return
	}
	body := open + 1
	if word == "enum" { // constants come first
		for body < end-1 && !s.op(body, ";") {
			if s.op(body, "(") || s.op(body, "{") {
				s.calls(body+1, s.close(body)-1, def)
				body = s.close(body)
				continue
			}
			body++
		}
	}
	s.block(body, end-1, def, d.Name+".")
}

// dottedName reads A::B or a.b, with the separator made a dot.
func (s *braceScanner) dottedName(i int) string {
	name := s.name(i)
	for name != "" && (s.op(i+1, "::") || s.op(i+1, ".") && s.language == "java") && s.name(i+2) != "" {
		name += "." + s.name(i+2)
		i += 2
	}
	return name
}

// function reads a function with a body.
func (s *braceScanner) function(start, open, end, scope int, prefix string) {
	def := s.signature(start, open, end, scope, prefix)
	if def < 0 {
		return
	}
	s.calls(open+1, max(open+1, end-1), def)
}

// signature adds the definition of a function; -1 if it is none.
func (s *braceScanner) signature(start, open, end, scope int, prefix string) int {
	paren := s.params(start, open)
	if paren < 0 {
		return -1
	}
	at := paren - 1
	name := s.name(at)
	if name == "" || s.keyword(name) && name != "new" && name != "default" || s.language == "c" && strings.ToUpper(name) == name && paren == start+1 {
		return -1
	}
	for s.language == "c" && (s.op(at-1, "::") || s.op(at-1, "~")) {
		if s.op(at-1, "~") {
			name, at = "~"+name, at-1
			continue
		}
		j := at - 2
		if s.op(j, ">") {
			for j > start && !s.op(j, "<") {
				j--
			}
			j--
		}
		if s.name(j) == "" {
			break
		}
		name, at = s.name(j)+"."+name, j
	}
	from := start
	d := definition{Name: prefix + name, Kind: Function}
	inClass := scope >= 0 && (s.o.Defs[scope].Kind == Class || s.o.Defs[scope].Kind == Interface)
	if inClass || strings.Contains(name, ".") {
		d.Kind = Method
	}
	for i := start; i < at; i++ {
		d.Local = d.Local || s.language == "c" && s.name(i) == "static" && !inClass && !strings.HasPrefix(path.Ext(s.f.path), ".h")
	}
	if s.isTest(start, name) {
		d.Kind = Test
	}
	d.Result = s.resultType(start, at)
	def := s.add(d, from, open, end)
	s.typedParams(def, paren)
	return def
}

// isTest reports whether the attributes before a function make it a test.
func (s *braceScanner) isTest(start int, name string) bool {
	switch s.language {
	case "java":
		for i := start - 1; i > 0 && i > start-12; i-- {
			if s.op(i, ";") || s.op(i, "}") || s.op(i, "{") {
				return false
			}
			if n := s.name(i); n == "Test" && s.op(i-1, "@") || n == "ParameterizedTest" {
				return true
			}
		}
		for i := start; i < start+6; i++ {
			if s.name(i) == "Test" && s.op(i-1, "@") {
				return true
			}
		}
	case "c":
		base := path.Base(s.f.path)
		return strings.HasPrefix(name, "test_") && strings.Contains(base, "test")
	}
	return false
}

func (s *braceScanner) resultType(start, at int) string {
	for i := at - 1; i >= start; i-- {
		if n := s.name(i); n != "" && !s.keyword(n) {
			return n
		}
	}
	return ""
}

// typedParams remembers parameters: "Type name".
func (s *braceScanner) typedParams(def, paren int) {
	for i := paren + 1; i < s.close(paren)-1; i++ {
		n := s.name(i)
		if n == "" {
			continue
		}
		if s.op(i+1, ",") || s.op(i+1, ")") || s.op(i+1, "[") || s.op(i+1, "=") {
			if typ := s.typeBefore(i, paren); typ != n {
				s.o.Vars = append(s.o.Vars, variable{def, n, typ})
			}
		}
	}
}

// typeBefore returns the type that is declared before a name.
func (s *braceScanner) typeBefore(i, from int) string {
	j := i - 1
	for j > from && (s.op(j, "*") || s.op(j, "&") || s.name(j) == "const" || s.op(j, "]") || s.op(j, "[")) {
		j--
	}
	if s.op(j, ">") {
		return ""
	}
	name := s.name(j)
	for (s.op(j-1, "::") || s.op(j-1, ".")) && s.name(j-2) != "" {
		name = s.name(j-2) + "." + name
		j -= 2
	}
	if name == "" || s.keyword(headOf(name)) {
		return ""
	}
	return name
}

// statement reads a declaration without braces.
func (s *braceScanner) statement(start, end, scope int, prefix string) {
	if start >= end {
		return
	}
	switch word := s.name(start); {
	case word == "package" && s.language == "java":
		s.o.Module = s.dottedName(start + 1)
		return
	case word == "import" && s.language == "java":
		s.javaImport(start, end)
		return
	case word == "using" || word == "typedef":
		return
	}
	eq := start
	for eq < end && !s.op(eq, "=") {
		eq++
	}
	inClass := scope >= 0 && (s.o.Defs[scope].Kind == Class || s.o.Defs[scope].Kind == Interface)
	if s.params(start, eq) >= 0 && eq == end {
		if inClass && s.language != "c" { // a method without a body
			s.signature(start, end, end, scope, prefix)
		}
		return
	}
	s.variable(start, eq, end, scope, prefix)
	if eq < end {
		s.calls(eq+1, end, scope)
	}
}

// variable reads the declaration of a field, constant or global variable.
func (s *braceScanner) variable(start, eq, end, scope int, prefix string) {
	name, typ := "", ""
	if last := eq - 1; last > start {
		for s.op(last, "]") {
			last = s.match[last] - 1
		}
		name, typ = s.name(last), s.typeBefore(last, start)
	}
	if name == "" || s.keyword(name) {
		return
	}
	s.o.Vars = append(s.o.Vars, variable{scope, name, typ})
	if scope < 0 || s.o.Defs[scope].Kind == Package || s.language == "java" {
		local := s.language == "c" && (s.name(start) == "static" || s.name(start) == "extern")
		if s.name(start) != "extern" {
			s.add(definition{Name: prefix + name, Kind: Variable, Local: local}, start, end, end)
		}
	}
}

func (s *braceScanner) javaImport(start, end int) {
	i := start + 1
	static := s.name(i) == "static"
	if static {
		i++
	}
	full := s.dottedName(i)
	line := s.t[start].line
	if s.op(end-1, "*") {
		s.o.Imports = append(s.o.Imports, imported{Module: full, Name: "*", Line: line, Type: static})
		return
	}
	dot := strings.LastIndexByte(full, '.')
	if dot > 0 {
		s.o.Imports = append(s.o.Imports, imported{Module: full[:dot], Name: full[dot+1:], As: full[dot+1:], Line: line, Type: static})
	}
}
