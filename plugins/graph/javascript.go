package graph

import (
	"path"
	"slices"
	"strings"
)

var jsKeywords = words(`if for while switch catch with return typeof await function in of new delete void throw case else do yield
	instanceof import export super async class extends keyof infer is asserts as satisfies const let var interface enum type namespace
	module declare abstract from default try finally break continue null undefined true false this get set static public private
	protected readonly override implements`)

var jsModifiers = words("public private protected static async readonly override abstract get set declare accessor")

// ownModule is the module of an imported that gives a name of the file itself
// another one: export { a as b }.
const ownModule = "\x00own"

// jsScope is a function or class body that the scanner is in.
type jsScope struct {
	def   int // index in Defs; that of the outer scope for other braces
	class bool
	open  int // token of the {
}

type jsScanner struct {
	o      *outline
	f      *fileFacts
	src    []byte
	t      []lexeme
	match  []int // of each bracket token, its partner, or -1
	within []int // of each token, the innermost bracket around it, or -1
	scopes []jsScope
	bodies map[int]jsScope // by the token of their {
	ends   []jsScope       // open arrow functions; open is where they end
	skip   map[int]bool    // tokens that are no calls
	next   map[int]bool    // tokens at which a further declaration of a statement begins
}

func scanJavaScript(o *outline, f *fileFacts, src []byte) {
	l := &jsLexer{src: src, tokens: make([]lexeme, 0, len(src)/4)}
	l.lex()
	s := &jsScanner{o: o, f: f, src: src, t: l.tokens, bodies: map[int]jsScope{}, skip: map[int]bool{}, next: map[int]bool{}}
	s.pair()
	for i := 0; i < len(s.t); {
		for len(s.ends) > 0 && i >= s.ends[len(s.ends)-1].open {
			s.ends = s.ends[:len(s.ends)-1]
		}
		i = s.token(i)
	}
}

// pair finds the partner of each bracket.
func (s *jsScanner) pair() {
	s.match, s.within = make([]int, len(s.t)), make([]int, len(s.t))
	var open []int
	for i, t := range s.t {
		s.match[i], s.within[i] = -1, -1
		if len(open) > 0 {
			s.within[i] = open[len(open)-1]
		}
		if t.kind != 'o' {
			continue
		}
		switch t.text {
		case "(", "[", "{", "${":
			open = append(open, i)
		case ")", "]", "}":
			for len(open) > 0 {
				j := open[len(open)-1]
				open = open[:len(open)-1]
				if pairs(s.t[j].text, t.text) {
					s.match[i], s.match[j] = j, i
					break
				}
			}
		}
	}
}

func pairs(open, shut string) bool {
	return open == "(" && shut == ")" || open == "[" && shut == "]" || (open == "{" || open == "${") && shut == "}"
}

func (s *jsScanner) op(i int, text string) bool {
	return i >= 0 && i < len(s.t) && s.t[i].kind == 'o' && s.t[i].text == text
}

func (s *jsScanner) name(i int) string {
	if i >= 0 && i < len(s.t) && s.t[i].kind == 'n' {
		return s.t[i].text
	}
	return ""
}

func (s *jsScanner) str(i int) (string, bool) {
	if i >= 0 && i < len(s.t) && s.t[i].kind == 's' {
		return s.t[i].text, true
	}
	return "", false
}

// scope returns the definition that the scanner is in.
func (s *jsScanner) scope() int {
	if n := len(s.ends); n > 0 && (len(s.scopes) == 0 || s.ends[n-1].def > s.scopes[len(s.scopes)-1].def) {
		return s.ends[n-1].def
	}
	if n := len(s.scopes); n > 0 {
		return s.scopes[n-1].def
	}
	return -1
}

// inClass reports whether a token is directly in the body of a class.
func (s *jsScanner) inClass(i int) bool {
	n := len(s.scopes)
	return n > 0 && s.scopes[n-1].class && s.within[i] == s.scopes[n-1].open
}

// close returns the token behind the partner of a bracket.
func (s *jsScanner) close(i int) int {
	if i >= 0 && i < len(s.t) && s.match[i] > i {
		return s.match[i] + 1
	}
	return i + 1
}

// generic returns the token behind <…>, or i if there is none.
func (s *jsScanner) generic(i int) int {
	if !s.op(i, "<") {
		return i
	}
	depth := 0
	for j := i; j < len(s.t) && j < i+400; j++ {
		switch {
		case s.op(j, "<"):
			depth++
		case s.op(j, ">"):
			if depth--; depth == 0 {
				return j + 1
			}
		case s.op(j, ";"), s.op(j, "&") && s.op(j+1, "&"):
			return i
		case s.op(j, "(") || s.op(j, "{") || s.op(j, "["):
			j = s.close(j) - 1
		}
	}
	return i
}

// token reads what begins at a token and returns where to go on.
func (s *jsScanner) token(i int) int {
	t := s.t[i]
	if t.kind == 'o' {
		switch t.text {
		case "{", "${":
			sc, ok := s.bodies[i]
			if !ok {
				sc = jsScope{def: s.scope()}
			}
			sc.open = i
			s.scopes = append(s.scopes, sc)
		case "}":
			if n := len(s.scopes); n > 0 && s.match[i] == s.scopes[n-1].open {
				s.scopes = s.scopes[:n-1]
			}
		}
		return i + 1
	}
	if s.next[i] {
		s.declare(i)
	}
	if t.kind != 'n' {
		return i + 1
	}
	if s.op(i-1, ".") {
		return s.chain(i)
	}
	switch t.text {
	case "import":
		return s.imports(i)
	case "export":
		return s.export(i)
	case "function":
		return s.function(i)
	case "class", "interface", "enum":
		if next := s.classDef(i); next > i {
			return next
		}
	case "const", "let", "var":
		s.declare(i + 1)
		s.declarations(i + 1)
		return i + 1
	case "require":
		if spec, ok := s.str(i + 2); ok && s.op(i+1, "(") && s.op(i+3, ")") {
			s.require(i, spec)
			return i + 4
		}
	}
	if s.inClass(i) {
		if next := s.memberDef(i); next > i {
			return next
		}
	}
	if next := s.propertyDef(i); next > i {
		return next
	}
	return s.chain(i)
}

// define adds a definition whose body is at a token: { or an expression.
func (s *jsScanner) define(name string, kind Kind, from, params, body int) int {
	outer := s.scope()
	local := false
	if outer >= 0 {
		name = s.o.Defs[outer].Name + "." + name
		local = !s.inClass(from)
	}
	d := definition{Name: name, Kind: kind, Line: s.t[from].line, Local: local}
	end := s.bodyEnd(body)
	last := min(max(end-1, from), len(s.t)-1)
	d.End = s.t[last].line
	head := min(max(body, from+1), len(s.t)-1)
	d.Sig = string(s.src[s.t[from].start:s.t[head].start])
	d.Hash = contentHash(s.src[s.t[from].start:s.t[last].end])
	d.Doc = s.doc(from)
	at := len(s.o.Defs)
	s.o.Defs = append(s.o.Defs, d)
	if local {
		s.o.Vars = append(s.o.Vars, variable{outer, name[strings.LastIndexByte(name, '.')+1:], "def " + name})
	}
	if s.op(body, "{") {
		s.bodies[body] = jsScope{def: at, class: kind == Class || kind == Interface}
	} else if body > from {
		s.ends = append(s.ends, jsScope{def: at, open: end})
	}
	s.parameters(at, params)
	return at
}

// doc returns the first sentence of the comment before a token.
func (s *jsScanner) doc(i int) string {
	for i > 0 && s.t[i-1].kind == 'n' && (s.t[i-1].text == "export" || s.t[i-1].text == "default" || s.t[i-1].text == "async" || jsModifiers()[s.t[i-1].text]) {
		i--
	}
	start := 0
	if i > 0 {
		start = s.t[i-1].end
	}
	text := strings.TrimSpace(string(s.src[start:s.t[i].start]))
	if !strings.HasSuffix(text, "*/") {
		return ""
	}
	text = text[strings.LastIndex(text, "/*")+2 : len(text)-2]
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "*"))
		if strings.HasPrefix(line, "@") {
			break
		}
		lines = append(lines, line)
	}
	return firstSentence(strings.Join(lines, " "))
}

// bodyEnd returns the token behind a body.
func (s *jsScanner) bodyEnd(body int) int {
	if s.op(body, "{") {
		return s.close(body)
	}
	i := body
	for i < len(s.t) {
		switch {
		case s.op(i, "(") || s.op(i, "[") || s.op(i, "{"):
			i = s.close(i)
			continue
		case s.op(i, ";") || s.op(i, ",") || s.op(i, ")") || s.op(i, "]") || s.op(i, "}"):
			return i
		case s.t[i].fresh && i > body && s.t[i].kind == 'n' && (s.t[i-1].kind != 'o' || s.op(i-1, ")") || s.op(i-1, "]") || s.op(i-1, "}")):
			return i
		}
		i++
	}
	return i
}

// parameters remembers the names of parameters, with plain types.
func (s *jsScanner) parameters(def, open int) {
	if !s.op(open, "(") {
		if n := s.name(open); n != "" {
			s.o.Vars = append(s.o.Vars, variable{def, n, ""})
		}
		return
	}
	end := s.close(open) - 1
	for i := open + 1; i < end; i++ {
		n := s.name(i)
		if n == "" || s.op(i-1, ".") || s.op(i-1, ":") && s.op(i-2, ")") {
			continue
		}
		if !(s.op(i-1, "(") || s.op(i-1, ",") || s.op(i-1, "{") || s.op(i-1, "[") || s.op(i-1, "...") || jsModifiers()[s.name(i-1)]) || jsModifiers()[n] && s.name(i+1) != "" {
			continue
		}
		j := i + 1
		if s.op(j, "?") {
			j++
		}
		typ := ""
		if s.op(j, ":") {
			typ = s.typeName(j + 1)
		}
		s.o.Vars = append(s.o.Vars, variable{def, n, typ})
		if jsModifiers()[s.name(i-1)] && def >= 0 { // a field of the class
			if class := strings.LastIndexByte(s.o.Defs[def].Name, '.'); class > 0 {
				s.field(s.o.Defs[def].Name[:class], n, typ)
			}
		}
	}
}

func (s *jsScanner) field(class, name, typ string) {
	if i := slices.IndexFunc(s.o.Defs, func(d definition) bool { return d.Name == class }); i >= 0 {
		s.o.Vars = append(s.o.Vars, variable{i, name, typ})
	}
}

// typeName returns the class that a type annotation names, if it is a plain one.
func (s *jsScanner) typeName(i int) string {
	name := ""
	for s.name(i) != "" && (name == "" || strings.HasSuffix(name, ".")) || name != "" && s.op(i, ".") {
		name += s.t[i].text
		i++
	}
	if i = s.generic(i); s.op(i, "<") || s.op(i, "[") || s.op(i, "|") || s.op(i, "&") || jsKeywords()[name] {
		return ""
	}
	return name
}

func (s *jsScanner) function(i int) int {
	j := i + 1
	if s.op(j, "*") {
		j++
	}
	name := s.name(j)
	if name != "" {
		j++
	}
	open := s.generic(j)
	if !s.op(open, "(") {
		return i + 1
	}
	body := s.afterType(s.close(open))
	if name != "" {
		s.define(name, s.kind(name), i, open, body)
		if !s.op(body, "{") { // a declaration without a body
			s.ends = s.ends[:len(s.ends)-1]
		}
		return open + 1
	}
	s.anonymous(open)
	return open + 1
}

// anonymous binds the parameters of a function without a name in the scope it is
// in: they hide what has the same name outside.
func (s *jsScanner) anonymous(open int) {
	if at := s.scope(); at >= 0 {
		before := len(s.o.Vars)
		s.parameters(at, open)
		for i := before; i < len(s.o.Vars); i++ {
			s.o.Vars[i].Scope = at
		}
	}
}

// afterType skips the type that a function returns.
func (s *jsScanner) afterType(i int) int {
	if !s.op(i, ":") {
		return i
	}
	for j := i + 1; j < len(s.t) && j < i+300; {
		switch {
		case s.op(j, "{") && (s.op(j-1, ":") || s.op(j-1, "|") || s.op(j-1, "&")): // an object type
			j = s.close(j)
		case s.op(j, "{"), s.op(j, ";"), s.op(j, "=>") && !s.op(j-1, ")"):
			return j
		case s.op(j, "=>"):
			j++
		case s.op(j, "(") || s.op(j, "["):
			j = s.close(j)
		case s.op(j, "<"):
			j = max(s.generic(j), j+1)
		case s.op(j, ",") || s.op(j, ")") || s.op(j, "}") || s.op(j, "="):
			return j
		default:
			j++
		}
	}
	return i
}

func (s *jsScanner) kind(name string) Kind {
	if isJSTest(s.f.path) && strings.HasPrefix(name, "test") && s.scope() < 0 {
		return Test
	}
	return Function
}

func isJSTest(file string) bool {
	base := path.Base(file)
	return strings.Contains(base, ".test.") || strings.Contains(base, ".spec.") || strings.Contains("/"+file, "/test/") || strings.Contains("/"+file, "/tests/") || strings.Contains("/"+file, "/__tests__/")
}

// functionValue defines a function that is the value of a name; it returns where
// to go on, 0 if the value is none.
func (s *jsScanner) functionValue(name string, kind Kind, from, i int) int {
	if s.name(i) == "async" && !s.op(i+1, "=>") {
		i++
	}
	if s.name(i) == "function" {
		j := i + 1
		if s.op(j, "*") {
			j++
		}
		if s.name(j) != "" {
			j++
		}
		if open := s.generic(j); s.op(open, "(") {
			s.define(name, kind, from, open, s.afterType(s.close(open)))
			return open + 1
		}
		return 0
	}
	if s.name(i) != "" && s.op(i+1, "=>") {
		s.define(name, kind, from, i, i+2)
		return i + 2
	}
	if open := s.generic(i); s.op(open, "(") {
		if arrow := s.afterType(s.close(open)); s.op(arrow, "=>") {
			s.define(name, kind, from, open, arrow+1)
			return open + 1
		}
	}
	return 0
}

// declarations finds the further ones of a statement: var a = 1, b = 2.
func (s *jsScanner) declarations(i int) {
	for i < len(s.t) {
		switch {
		case s.op(i, ",") && s.name(i+1) != "" && (s.op(i+2, "=") || s.op(i+2, ":") || s.op(i+2, ",") || s.op(i+2, ";")):
			s.next[i+1] = true
			i += 2
		case s.op(i, "(") || s.op(i, "[") || s.op(i, "{"):
			i = s.close(i)
		case s.op(i, "<") && s.name(i-1) != "":
			i = max(s.generic(i), i+1)
		case s.op(i, ";") || s.op(i, ")") || s.op(i, "]") || s.op(i, "}"):
			return
		case s.t[i].fresh && s.t[i].kind == 'n' && (s.t[i-1].kind != 'o' || s.op(i-1, ")") || s.op(i-1, "]") || s.op(i-1, "}")):
			return
		default:
			i++
		}
	}
}

// declare reads what follows const, let or var.
func (s *jsScanner) declare(i int) {
	if s.op(i, "{") || s.op(i, "[") {
		s.pattern(i)
		return
	}
	name := s.name(i)
	if name == "" {
		return
	}
	j := i + 1
	typ := ""
	if s.op(j, ":") {
		typ = s.typeName(j + 1)
		for j < len(s.t) && j < i+300 && !s.op(j, "=") && !s.op(j, ";") && !s.op(j, ")") && s.name(j) != "of" && s.name(j) != "in" {
			j = s.skipType(j)
		}
	}
	if s.op(j, "=") {
		if spec, ok := s.requireAt(j + 1); ok && !s.op(j+5, ".") {
			s.o.Imports = append(s.o.Imports, imported{Module: spec, As: name, Line: s.t[i].line})
			return
		} else if part := s.name(j + 6); ok && part != "" && !s.op(j+7, ".") && !s.op(j+7, "(") {
			s.o.Imports = append(s.o.Imports, imported{Module: spec, Name: part, As: name, Line: s.t[i].line})
			return
		}
		if s.functionValue(name, s.kind(name), i, j+1) > 0 {
			s.valueDefined(i, j)
			return
		}
		switch {
		case s.name(j+1) == "new":
			typ = s.typeNew(j + 2)
		case s.name(j+1) == "class":
			return
		case typ == "":
			typ = s.called(j + 1)
		}
	}
	at := s.scope()
	s.o.Vars = append(s.o.Vars, variable{at, name, typ})
	if at < 0 {
		end := s.bodyEnd(j + 1)
		last := min(max(end-1, i), len(s.t)-1)
		s.o.Defs = append(s.o.Defs, definition{Name: name, Kind: Variable, Line: s.t[i].line, End: s.t[last].line, Hash: contentHash(s.src[s.t[i].start:s.t[last].end])})
	}
}

// pattern reads the names that are declared together: { a, b: c } and [a, b].
func (s *jsScanner) pattern(i int) {
	end := s.close(i) - 1
	spec, required := s.requireAt(end + 2)
	for j := i + 1; j < end; j++ {
		n := s.name(j)
		if n == "" || s.op(j-1, "=") || s.op(j+1, ":") {
			continue
		}
		from := n
		if s.op(j-1, ":") {
			from = s.name(j - 2)
		}
		if required && s.op(i, "{") {
			s.o.Imports = append(s.o.Imports, imported{Module: spec, Name: from, As: n, Line: s.t[j].line})
		} else if at := s.scope(); at >= 0 {
			s.o.Vars = append(s.o.Vars, variable{at, n, ""})
		}
	}
}

// valueDefined marks the tokens of a function's head as read: declare does not
// move on, so that token must not define it again.
func (s *jsScanner) valueDefined(from, to int) {
	for i := from; i <= to; i++ {
		s.skip[i] = true
	}
	if s.name(to+1) == "function" || s.name(to+1) == "async" && s.name(to+2) == "function" {
		s.skip[to+1], s.skip[to+2] = true, true
	}
}

// called returns "name()" if the whole value is a call of it.
func (s *jsScanner) called(i int) string {
	if s.name(i) == "await" {
		i++
	}
	name := ""
	for s.name(i) != "" || s.op(i, ".") {
		name += s.t[i].text
		i++
	}
	if name == "" || !s.op(i, "(") || jsKeywords()[headOf(name)] && headOf(name) != "this" {
		return ""
	}
	if end := s.close(i); s.op(end, ".") || s.op(end, "(") || s.op(end, "[") {
		return ""
	}
	return name + "()"
}

func (s *jsScanner) requireAt(i int) (string, bool) {
	spec, ok := s.str(i + 2)
	return spec, ok && s.name(i) == "require" && s.op(i+1, "(") && s.op(i+3, ")")
}

func (s *jsScanner) require(i int, spec string) {
	im := imported{Module: spec, Line: s.t[i].line}
	if !slices.ContainsFunc(s.o.Imports, func(o imported) bool { return o.Module == spec }) {
		s.o.Imports = append(s.o.Imports, im)
	}
}

// propertyDef reads a function as a property or an assignment: NAME: function,
// NAME(…) {, a.b = function. They are named by their last part where that is clear.
func (s *jsScanner) propertyDef(i int) int {
	name := s.t[i].text
	if jsKeywords()[name] && name != "module" || s.skip[i] {
		return i
	}
	inObject := s.op(i-1, "{") || s.op(i-1, ",") || s.op(i-1, "*") || s.name(i-1) == "async" || s.name(i-1) == "get" || s.name(i-1) == "set"
	if inObject && s.op(i+1, "(") && s.op(s.afterType(s.close(i+1)), "{") && len(s.scopes) > 0 && s.objectLiteral() {
		s.skip[i] = true
		s.anonymous(i + 1)
		return i + 1
	}
	if !s.t[i].fresh && i > 0 && !s.op(i-1, ";") && !s.op(i-1, "}") && !s.op(i-1, "{") {
		return i
	}
	j, full := i, name
	for s.op(j+1, ".") && s.name(j+2) != "" {
		full += "." + s.name(j+2)
		j += 2
	}
	if j == i || !s.op(j+1, "=") || s.op(j+2, "=") || s.op(j+2, "=>") {
		return i
	}
	parts := strings.Split(full, ".")
	last := parts[len(parts)-1]
	switch {
	case parts[0] == "this" || s.scope() >= 0:
		return i
	case parts[0] == "module" && len(parts) == 2 && last == "exports":
		if s.name(j+2) != "" && (s.op(j+3, ";") || j+3 >= len(s.t) || s.t[j+3].fresh) {
			s.o.Imports = append(s.o.Imports, imported{Module: ownModule, Name: s.name(j + 2), As: "default", Line: s.t[i].line})
		}
		last = "default"
	case parts[0] == "exports" || parts[0] == "module":
	case len(parts) == 3 && parts[1] == "prototype":
		last = parts[0] + "." + parts[2]
	case len(parts) == 2:
		last = full
	default:
		return i
	}
	if next := s.functionValue(last, Function, i, j+2); next > 0 {
		if s.name(j+2) == "function" {
			s.skip[j+2] = true
		}
		return next
	}
	return i
}

// objectLiteral reports whether the innermost braces are those of an object.
func (s *jsScanner) objectLiteral() bool {
	open := s.scopes[len(s.scopes)-1].open
	return s.op(open-1, "=") || s.op(open-1, "(") || s.op(open-1, ",") || s.op(open-1, ":") || s.op(open-1, "[") || s.name(open-1) == "return" || s.name(open-1) == "default" || s.op(open-1, "?")
}

// chain reads a dotted name, which is a call if ( follows.
func (s *jsScanner) chain(i int) int {
	name := s.t[i].text
	if jsKeywords()[name] && name != "this" && name != "super" && !s.op(i-1, ".") || s.skip[i] {
		if s.name(i) == "import" {
			return i + 1
		}
		return s.arrow(i)
	}
	j := i
	if s.op(i-1, ".") {
		name = "." + name
	}
	for s.op(j+1, ".") && s.name(j+2) != "" {
		name += "." + s.t[j+2].text
		j += 2
	}
	open := s.generic(j + 1)
	if s.op(open, ".") {
		open++
	}
	property := s.op(j+1, ":") && (s.op(i-1, "{") || s.op(i-1, ","))
	switch {
	case s.op(j+1, "=>"):
		return s.arrow(j)
	case s.op(open, "(") && s.testCase(i, name, open):
		return open + 1
	case s.op(open, "("):
		s.o.Calls = append(s.o.Calls, call{s.scope(), name, s.t[j].line, false})
	case !property && name[0] != '.':
		s.o.Calls = append(s.o.Calls, call{s.scope(), name, s.t[j].line, true})
	}
	return j + 1
}

// testCase defines a test of Jest, Mocha, Vitest or node:test: it("title", () => …).
func (s *jsScanner) testCase(i int, name string, open int) bool {
	title, ok := s.str(open + 1)
	switch headOf(name) {
	case "it", "test", "specify":
	default:
		return false
	}
	if !ok || title == "" || !s.op(open+2, ",") || !isJSTest(s.f.path) || s.scope() >= 0 && s.o.Defs[s.scope()].Kind == Test {
		return false
	}
	return s.functionValue(strings.ReplaceAll(title, ".", "·"), Test, i, open+3) > 0
}

// arrow binds the parameter of an arrow function without parentheses.
func (s *jsScanner) arrow(i int) int {
	if at := s.scope(); at >= 0 && s.op(i+1, "=>") && s.name(i) != "" {
		s.o.Vars = append(s.o.Vars, variable{at, s.name(i), ""})
	}
	return i + 1
}
