package graph

import (
	"path"
	"slices"
	"strings"
)

// lexeme is a token of a scanner. Kinds: n name, o operator, s string, d number,
// and in Python N the end of a logical line and I the indentation of the next.
type lexeme struct {
	kind       byte
	fresh      bool // first on its line
	text       string
	line, col  int
	start, end int // offsets
}

func isName(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// pyLexer makes tokens of Python source (docs.python.org/3/reference/lexical_analysis.html).
type pyLexer struct {
	src    []byte
	tokens []lexeme
	nested int // f-strings within each other
}

func (l *pyLexer) push(kind byte, start, end, line int) {
	text := ""
	if kind == 'n' || kind == 'o' || kind == 's' {
		text = string(l.src[start:end])
	}
	l.tokens = append(l.tokens, lexeme{kind: kind, text: text, line: line, start: start, end: end})
}

// lex reads src[i:end]; within brackets lines go on.
func (l *pyLexer) lex(i, end, line, depth int) {
	begin := depth == 0
	for i < end {
		if begin {
			var col int
			if i, col = l.indent(i, end); i >= end {
				return
			}
			if l.src[i] == '#' {
				i = l.comment(i, end)
			}
			if i < end && l.src[i] == '\r' {
				i++
			}
			if i < end && l.src[i] == '\n' {
				i, line = i+1, line+1
				continue
			}
			l.tokens = append(l.tokens, lexeme{kind: 'I', line: line, col: col, start: i, end: i})
			begin = false
			continue
		}
		switch c := l.src[i]; {
		case c == '\n':
			if depth == 0 {
				l.push('N', i, i, line)
				begin = true
			}
			i, line = i+1, line+1
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			i++
		case c == '\\':
			i, line = l.join(i+1, end, line)
		case c == '#':
			i = l.comment(i, end)
		case c == '"' || c == '\'':
			i, line = l.text(i, end, line, false)
		case c >= '0' && c <= '9':
			start := i
			for i < end && (isName(l.src[i]) || l.src[i] == '.') {
				i++
			}
			l.push('d', start, i, line)
		case isName(c):
			i, line = l.word(i, end, line)
		default:
			if strings.IndexByte("([{", c) >= 0 {
				depth++
			} else if strings.IndexByte(")]}", c) >= 0 && depth > 0 {
				depth--
			}
			l.push('o', i, i+1, line)
			i++
		}
	}
}

// join skips the end of a line that continues on the next.
func (l *pyLexer) join(i, end, line int) (int, int) {
	if i < end && l.src[i] == '\r' {
		i++
	}
	if i < end && l.src[i] == '\n' {
		i, line = i+1, line+1
	}
	return i, line
}

func (l *pyLexer) indent(i, end int) (int, int) {
	col := 0
	for ; i < end && (l.src[i] == ' ' || l.src[i] == '\t' || l.src[i] == '\f'); i++ {
		if col++; l.src[i] == '\t' {
			col = (col + 7) / 8 * 8
		}
	}
	return i, col
}

func (l *pyLexer) comment(i, end int) int {
	for i < end && l.src[i] != '\n' {
		i++
	}
	return i
}

// word reads a name, or a string with a prefix.
func (l *pyLexer) word(i, end, line int) (int, int) {
	start := i
	for i < end && isName(l.src[i]) {
		i++
	}
	if i < end && (l.src[i] == '"' || l.src[i] == '\'') && i-start <= 2 {
		prefix := strings.ToLower(string(l.src[start:i]))
		if strings.Trim(prefix, "rbuft") == "" {
			return l.text(i, end, line, strings.ContainsAny(prefix, "ft"))
		}
	}
	l.push('n', start, i, line)
	return i, line
}

// text reads a string; the expressions of an f-string are read, too.
func (l *pyLexer) text(i, end, line int, format bool) (int, int) {
	quote, start, first := l.src[i], i, line
	width := 1
	if i+2 < end && l.src[i+1] == quote && l.src[i+2] == quote {
		width = 3
	}
	at := len(l.tokens)
	l.push('s', i, i, line)
	i += width
	for i < end {
		c := l.src[i]
		switch {
		case c == '\\':
			if i+1 < end && l.src[i+1] == '\n' {
				line++
			}
			i += 2
		case c == '\n' && width == 1:
			return i, line
		case c == '\n':
			i, line = i+1, line+1
		case c == quote && (width == 1 || i+2 < end && l.src[i+1] == quote && l.src[i+2] == quote):
			i += width
			if !format {
				l.tokens[at] = lexeme{kind: 's', text: string(l.src[start+width : i-width]), line: first, start: start, end: i}
			}
			return i, line
		case c == '{' && format && l.nested < 4:
			if i+1 < end && l.src[i+1] == '{' {
				i += 2
				continue
			}
			i, line = l.field(i, end, line, quote, width)
		default:
			i++
		}
	}
	return min(i, end), line
}

// field reads an expression of an f-string.
func (l *pyLexer) field(i, end, line int, quote byte, width int) (int, int) {
	j, depth, last := i+1, 1, line
	for j < end && depth > 0 {
		switch c := l.src[j]; {
		case c == '{' || c == '(' || c == '[':
			depth++
		case c == '}' || c == ')' || c == ']':
			depth--
		case c == '\n':
			last++
		case c == quote && width == 1:
			return i + 1, line
		}
		j++
	}
	if depth > 0 {
		return i + 1, line
	}
	l.nested++
	l.lex(i+1, j-1, line, 1)
	l.nested--
	l.tokens = append(l.tokens, lexeme{kind: 's', line: last, start: j, end: j})
	return j, last
}

var pyKeywords = words(`if elif else while for in not and or is return yield lambda assert del raise with as except try
	finally await async from import global nonlocal pass break continue None True False def class print`)

// pyScope is a class or function that the scanner is in.
type pyScope struct {
	col int
	def int // index in Defs
}

// pyScanner reads the tokens of a file.
type pyScanner struct {
	o      *outline
	f      *fileFacts
	src    []byte
	t      []lexeme
	scopes []pyScope
	first  int // token at which the line begins
	last   int // line of its last token
}

func scanPython(o *outline, f *fileFacts, src []byte) {
	l := &pyLexer{src: src, tokens: make([]lexeme, 0, len(src)/4)}
	l.lex(0, len(src), 1, 0)
	s := &pyScanner{o: o, f: f, src: src, t: l.tokens}
	s.o.Module = pyModule(f.path)
	for i := 0; i < len(s.t); {
		i = s.statement(i)
	}
	s.leave(-1)
}

// pyModule returns the dotted path of a file.
func pyModule(name string) string {
	name = strings.TrimSuffix(name, path.Ext(name))
	name = strings.TrimSuffix(name, "/__init__")
	return strings.ReplaceAll(name, "/", ".")
}

func (s *pyScanner) scope() int {
	if len(s.scopes) == 0 {
		return -1
	}
	return s.scopes[len(s.scopes)-1].def
}

func (s *pyScanner) op(i int, text string) bool {
	return i >= 0 && i < len(s.t) && s.t[i].kind == 'o' && s.t[i].text == text
}

func (s *pyScanner) name(i int) string {
	if i >= 0 && i < len(s.t) && s.t[i].kind == 'n' {
		return s.t[i].text
	}
	return ""
}

// leave ends the scopes that are indented at least as far as a column.
func (s *pyScanner) leave(col int) {
	for len(s.scopes) > 0 && s.scopes[len(s.scopes)-1].col >= col {
		d := &s.o.Defs[s.scopes[len(s.scopes)-1].def]
		d.End = max(s.last, d.Line)
		s.scopes = s.scopes[:len(s.scopes)-1]
	}
}

// statement reads one logical line and returns where the next begins.
func (s *pyScanner) statement(i int) int {
	if s.t[i].kind != 'I' {
		return i + 1
	}
	s.leave(s.t[i].col)
	col := s.t[i].col
	s.first = i
	end := i + 1
	for end < len(s.t) && s.t[end].kind != 'N' && s.t[end].kind != 'I' {
		end++
	}
	s.last = s.t[end-1].line
	i++
	word := s.name(i)
	if word == "async" && s.name(i+1) == "def" {
		i, word = i+1, "def"
	}
	switch {
	case (word == "def" || word == "class") && s.name(i+1) != "":
		s.define(i, end, col)
	case word == "import":
		s.imports(i+1, end)
	case word == "from":
		s.from(i, end)
	default:
		s.simple(i, end)
	}
	return end
}

// define reads the header of a class or function.
func (s *pyScanner) define(i, end, col int) {
	d := definition{Name: s.t[i+1].text, Kind: Function, Line: s.t[i].line}
	outer := s.scope()
	inClass := outer >= 0 && s.o.Defs[outer].Kind == Class
	if outer >= 0 {
		d.Name = s.o.Defs[outer].Name + "." + d.Name
		d.Local = !inClass
	}
	isClass := s.t[i].text == "class"
	switch {
	case isClass:
		d.Kind = Class
	case isPyTest(s.f.path, s.t[i+1].text):
		d.Kind = Test
	case inClass:
		d.Kind = Method
	}
	header := end
	for j, depth := i+2, 0; j < end; j++ {
		switch {
		case s.op(j, "(") || s.op(j, "[") || s.op(j, "{"):
			depth++
		case s.op(j, ")") || s.op(j, "]") || s.op(j, "}"):
			depth--
		case s.op(j, ":") && depth == 0:
			header = j
		}
		if header < end {
			break
		}
	}
	d.Sig = string(s.src[s.t[i].start:s.t[max(i+1, header-1)].end])
	if body := header + 1; body < len(s.t) { // a docstring is on the next line
		for body < len(s.t) && (s.t[body].kind == 'N' || s.t[body].kind == 'I') {
			body++
		}
		if body < len(s.t) && s.t[body].kind == 's' {
			d.Doc = firstSentence(s.t[body].text)
		}
	}
	d.Hash = contentHash(s.body(s.t[i].start, col))
	at := len(s.o.Defs)
	if isClass && s.op(i+2, "(") {
		d.Bases = s.dotted(i+3, header)
	}
	s.o.Defs = append(s.o.Defs, d)
	if outer >= 0 && !inClass {
		s.o.Vars = append(s.o.Vars, variable{outer, s.t[i+1].text, "def " + d.Name})
	}
	if !isClass {
		s.parameters(at, i+2, header)
	}
	s.expressions(outer, i+2, header)
	if header+1 < end { // the body is on the same line
		s.expressions(at, header+1, end)
		s.o.Defs[at].End = s.last
		return
	}
	s.scopes = append(s.scopes, pyScope{col, at})
}

// body returns the source of a definition: all lines that are indented further.
func (s *pyScanner) body(start, col int) []byte {
	rest := s.src[start:]
	pos := slices.Index(rest, '\n') + 1
	for end := pos; end > 0 && end < len(rest); {
		next := slices.Index(rest[end:], '\n')
		line := rest[end:]
		if next >= 0 {
			line = line[:next+1]
		}
		trimmed := strings.TrimLeft(string(line), " \t")
		if strings.TrimSpace(trimmed) != "" && len(line)-len(trimmed) <= col {
			break
		}
		end += len(line)
		pos = end
	}
	if pos == 0 {
		return rest
	}
	return rest[:pos]
}

func isPyTest(file, name string) bool {
	base := path.Base(file)
	return strings.HasPrefix(name, "test") && (strings.HasPrefix(base, "test") || strings.HasSuffix(base, "_test.py") || strings.Contains("/"+file, "/tests/"))
}

// dotted returns the dotted names between commas, without keyword arguments.
func (s *pyScanner) dotted(i, end int) []string {
	var names []string
	for i < end {
		name := ""
		for i < end && (s.name(i) != "" || s.op(i, ".")) {
			name += s.t[i].text
			i++
		}
		if name != "" && !s.op(i, "=") {
			names = append(names, name)
		}
		for depth := 0; i < end && (depth > 0 || !s.op(i, ",")); i++ {
			if s.op(i, "(") || s.op(i, "[") {
				depth++
			} else if s.op(i, ")") || s.op(i, "]") {
				depth--
			}
		}
		i++
	}
	return names
}

// parameters remembers the names of parameters, with the types of annotations.
func (s *pyScanner) parameters(def, i, end int) {
	depth := 0
	for ; i < end; i++ {
		switch {
		case s.op(i, "(") || s.op(i, "[") || s.op(i, "{"):
			depth++
		case s.op(i, ")") || s.op(i, "]") || s.op(i, "}"):
			depth--
		case depth == 1 && s.name(i) != "" && (s.op(i-1, "(") || s.op(i-1, ",") || s.op(i-1, "*")):
			if first := s.name(i); s.op(i-1, "(") && (first == "self" || first == "cls") {
				continue // not a local: the class is known
			}
			v := variable{def, s.name(i), ""}
			if s.op(i+1, ":") {
				v.Type = s.annotation(i + 2)
			}
			s.o.Vars = append(s.o.Vars, v)
		}
	}
	if s.op(end-2, ">") || s.op(end-1, ">") {
		return
	}
	for j := end - 1; j > 0 && j > end-8; j-- {
		if s.op(j, ">") && s.op(j-1, "-") {
			s.o.Defs[def].Result = s.annotation(j + 1)
		}
	}
}

// annotation returns the class that an annotation names, if it is a plain one.
func (s *pyScanner) annotation(i int) string {
	if i < len(s.t) && s.t[i].kind == 's' && strings.Trim(s.t[i].text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == "" {
		return s.t[i].text
	}
	name := ""
	for s.name(i) != "" || s.op(i, ".") {
		name += s.t[i].text
		i++
	}
	if s.op(i, "[") || pyKeywords()[name] {
		if name == "Optional" || name == "typing.Optional" {
			return s.annotation(i + 1)
		}
		return ""
	}
	return name
}

func (s *pyScanner) imports(i, end int) {
	for i < end {
		line, module := s.t[i].line, ""
		for i < end && s.name(i) != "as" && (s.name(i) != "" || s.op(i, ".")) {
			module += s.t[i].text
			i++
		}
		as, _, _ := strings.Cut(module, ".")
		im := imported{Module: module, As: as, Line: line}
		if s.name(i) == "as" {
			im.As = s.name(i + 1)
			i += 2
		} else if as != module { // binds the first part only
			s.o.Imports = append(s.o.Imports, imported{Module: as, As: as, Line: line})
			im.As = ""
		}
		if module != "" {
			s.o.Imports = append(s.o.Imports, im)
		}
		i++
	}
}

func (s *pyScanner) from(i, end int) {
	line := s.t[i].line
	module := ""
	for i++; i < end && s.name(i) != "import"; i++ {
		module += s.t[i].text
	}
	for i++; i < end; i++ {
		im := imported{Module: module, Name: s.name(i), As: s.name(i), Line: line, Again: true}
		switch {
		case s.op(i, "*"):
			im.Name, im.As = "*", ""
		case im.Name == "":
			continue
		case s.name(i+1) == "as":
			im.As = s.name(i + 2)
			i += 2
		}
		s.o.Imports = append(s.o.Imports, im)
	}
}

// simple reads a statement that defines nothing: assignments and expressions.
func (s *pyScanner) simple(i, end int) {
	scope := s.scope()
	s.assignment(scope, i, end)
	switch s.name(i) {
	case "for", "with", "except", "async":
		for j := i + 1; j < end && !s.op(j, ":"); j++ {
			if n := s.name(j); n != "" && (s.name(j-1) == "as" || s.name(i) == "for" && !pyKeywords()[n] && !s.op(j+1, "(") && !s.op(j-1, ".")) {
				s.local(scope, n, "")
			}
			if s.name(j) == "in" {
				break
			}
		}
	}
	s.expressions(scope, i, end)
}

// assignment remembers what names are bound to: NAME = Class(…), self.x = Class(…).
func (s *pyScanner) assignment(scope, i, end int) {
	if s.name(i) == "" || pyKeywords()[s.name(i)] {
		return
	}
	target := s.name(i)
	j := i + 1
	field := false
	if target == "self" && s.op(j, ".") && s.name(j+1) != "" {
		target, field = s.name(j+1), true
		j += 2
	}
	typ := ""
	if s.op(j, ":") {
		typ = s.annotation(j + 1)
		for j < end && !s.op(j, "=") {
			j++
		}
	}
	if !s.op(j, "=") || s.op(j+1, "=") {
		for k := i; k < end && (s.name(k) != "" || s.op(k, ",") || s.op(k, "(") || s.op(k, ")")); k++ { // a, b = …
			if s.name(k) != "" && !pyKeywords()[s.name(k)] && (s.op(k+1, ",") || s.op(k+1, "=")) && !s.op(k+2, "=") && tupleTarget(s, i, end) {
				s.local(scope, s.name(k), "")
			}
		}
		if typ == "" {
			return
		}
	}
	if typ == "" {
		typ = s.constructed(j+1, end)
	}
	if !field {
		s.local(scope, target, typ)
		return
	}
	if class := s.class(); class >= 0 {
		s.o.Vars = append(s.o.Vars, variable{class, target, typ})
	}
}

// tupleTarget reports whether a line begins with names that are assigned together.
func tupleTarget(s *pyScanner, i, end int) bool {
	for k := i; k < end; k++ {
		if s.op(k, "=") {
			return !s.op(k+1, "=")
		}
		if s.name(k) == "" && !s.op(k, ",") && !s.op(k, "(") && !s.op(k, ")") {
			return false
		}
	}
	return false
}

// constructed returns the name in NAME(…) if the whole value is that call.
func (s *pyScanner) constructed(i, end int) string {
	name := ""
	if s.name(i) == "await" {
		i++
	}
	for i < end && (s.name(i) != "" || s.op(i, ".")) {
		name += s.t[i].text
		i++
	}
	if !s.op(i, "(") || name == "" || pyKeywords()[name] {
		return ""
	}
	depth := 0
	for ; i < end; i++ {
		if s.op(i, "(") {
			depth++
		} else if s.op(i, ")") {
			if depth--; depth == 0 {
				break
			}
		}
	}
	if i < end-1 {
		return ""
	}
	return name + "()"
}

// class returns the innermost class that the scanner is in.
func (s *pyScanner) class() int {
	for _, sc := range slices.Backward(s.scopes) {
		if s.o.Defs[sc.def].Kind == Class {
			return sc.def
		}
	}
	return -1
}

// local remembers a local name; those of the file itself become its variables.
func (s *pyScanner) local(scope int, name, typ string) {
	if name == "" || name == "_" {
		return
	}
	s.o.Vars = append(s.o.Vars, variable{scope, name, typ})
	if scope < 0 {
		s.o.Defs = append(s.o.Defs, definition{Name: name, Kind: Variable, Line: s.last, End: s.last, Hash: contentHash([]byte(s.lineText()))})
	}
}

// lineText returns the source of the line that is being read.
func (s *pyScanner) lineText() string {
	start := s.t[s.first].start
	end := slices.Index(s.src[start:], '\n')
	if end < 0 {
		return string(s.src[start:])
	}
	return string(s.src[start : start+end])
}

// expressions remembers the calls in some tokens, and dotted names used as values.
func (s *pyScanner) expressions(scope, i, end int) {
	for i < end {
		if s.t[i].kind != 'n' || pyKeywords()[s.t[i].text] && !s.op(i-1, ".") {
			if s.name(i) == "lambda" {
				for j := i + 1; j < end && !s.op(j, ":"); j++ {
					if s.name(j) != "" && (s.name(j-1) == "lambda" || s.op(j-1, ",")) {
						s.local(scope, s.name(j), "")
					}
				}
			}
			i++
			continue
		}
		start, name := i, s.t[i].text
		switch {
		case s.op(i-1, ".") && s.op(i-2, ")") && s.op(i-3, "(") && s.name(i-4) == "super":
			name = "super." + name
		case s.op(i-1, "."):
			name = "." + name
		}
		for s.op(i+1, ".") && s.name(i+2) != "" && i+2 < end {
			name += "." + s.t[i+2].text
			i += 2
		}
		called := s.op(i+1, "(")
		keyword := s.op(i+1, "=") && !s.op(i+2, "=") && (s.op(start-1, "(") || s.op(start-1, ","))
		if called && name != "super" || !called && !keyword && name != "self" && name != "cls" && name[0] != '.' && !(s.op(i+1, ":") && s.name(start-1) == "") {
			s.o.Calls = append(s.o.Calls, call{scope, name, s.t[i].line, !called})
		}
		i++
	}
}
