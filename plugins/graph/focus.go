package graph

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Focus is what a context section is about.
type Focus struct {
	Input  string         // the user's words: what they name is looked up
	Files  []string       // relative paths that were touched
	Errors []string       // of what was run last
	Tokens int            // the section fits into; a token is about four characters
	Limits map[string]int // tokens by section: errors, impact, dependencies, map, summary
	// Project adds figures of the whole graph, and is enough for a section.
	Project bool
}

// topic is what an input wants to know of the code that it names.
type topic int

const (
	askWork topic = iota // something is to be done, or it cannot be told
	askCallers
	askBreaks
	askTests
	askDefinition
)

// topicOf returns what a question asks; what is no question is work. The names of code
// in it do not count: a question about a test helper is none about tests.
func topicOf(input string) topic {
	var words []string
	for i, part := range strings.Split(input, "`") {
		for _, field := range strings.Fields(part) {
			if word := strings.ToLower(strings.TrimFunc(field, func(r rune) bool { return !unicode.IsLetter(r) })); i%2 == 0 && word != "" && !codeLike(strings.Trim(field, ".,;:?!()")) {
				words = append(words, word)
			}
		}
	}
	const maxWords = 60 // of a question
	if len(words) == 0 || len(words) > maxWords || !asking()[words[0]] && !strings.HasSuffix(strings.TrimSpace(input), "?") {
		return askWork
	}
	text := " " + strings.Join(words, " ") + " "
	has := func(list ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(text, " "+s+" ") })
	}
	switch {
	case has("test", "tests"):
		return askTests
	case has("break", "breaks", "broken", "affect", "affects", "affected", "impact", "depend", "depends", "dependents", "safe", "consequences", "ripple"):
		return askBreaks
	case has("call", "calls", "called", "caller", "callers", "calling", "use", "uses", "used", "usage", "usages", "using", "user", "users", "invoke", "invokes", "invoked", "reference", "references", "referenced"):
		return askCallers
	case has("defined", "declared", "implemented", "definition", "signature", "find", "located"):
		return askDefinition
	}
	return askWork
}

// asking are the words that questions begin with.
var asking = words(`who what which where whose when how is are does do did will would can could if list show find tell name give from`)

// subject is what a section is about.
type subject struct {
	nodes   []Node
	unclear []group // names that too many definitions have
}

// group are the definitions with a name.
type group struct {
	name  string
	nodes []Node
}

// How many definitions a name may have to be one that the user means: anywhere, in a file
// that is named, too, and to be told at all.
const (
	maxMeant   = 2
	maxLocated = 4
	maxTold    = 40
)

// subject returns what a focus is about: what the input names, if it names it clearly,
// and the files that were touched. A file named beside a name says where to look for it.
func (x *Index) subject(f Focus) subject {
	g := x.graph
	var s subject
	var files, symbols, located []Node
	var names []mention
	for _, m := range mentions(f.Input) {
		if found := g.filesNamed(m.text); len(found) > 0 {
			files = append(files, found...)
		} else {
			names = append(names, m)
		}
	}
	take := func(name string, found []Node, sure bool) {
		near := within(found, files)
		if len(near) > 0 {
			found, located = near, append(located, near...)
		}
		if len(found) <= maxMeant || len(near) > 0 && len(near) <= maxLocated {
			symbols = append(symbols, found...)
		} else if (sure || len(near) > 0) && len(found) <= maxTold {
			s.unclear = append(s.unclear, group{name, found})
		}
	}
	for _, m := range names {
		take(m.text, g.meant(m), m.sure)
	}
	if len(symbols)+len(s.unclear) == 0 && len(files) > 0 {
		for _, word := range plainWords(f.Input) {
			if near := within(g.named(word), files); len(near) > 0 {
				take(word, near, false)
			}
		}
	}
	if len(files) > 8 {
		files = nil // no name of one
	}
	files = slices.DeleteFunc(files, func(f Node) bool { return len(within(located, []Node{f})) > 0 }) // they say where to look
	for _, name := range f.Files {
		files = append(files, nearest(g.InFile(cleanPath(strings.TrimPrefix(name, x.root+"/"))), 1)...)
	}
	for _, n := range append(symbols, files...) {
		if len(s.nodes) < 8 && !slices.ContainsFunc(s.nodes, func(o Node) bool { return o.ID == n.ID }) {
			s.nodes = append(s.nodes, n)
		}
	}
	return s
}

// within returns the nodes that are in some files.
func within(nodes, files []Node) (in []Node) {
	for _, n := range nodes {
		if slices.ContainsFunc(files, func(f Node) bool { return f.File == n.File }) {
			in = append(in, n)
		}
	}
	return in
}

// plainWords returns the words of a text that can be a name.
func plainWords(text string) (words []string) {
	for _, field := range strings.Fields(text) {
		if word := strings.Trim(field, "`.,;:?!()\"'"); len(word) >= 2 && !fillers()[strings.ToLower(word)] && !cues()[strings.ToLower(word)] && !kinds()[strings.ToLower(word)] {
			words = append(words, word)
		}
	}
	return nearest(words, 60)
}

// text tells which definitions have a name.
func (a group) text() string {
	var at []string
	for _, n := range nearest(a.nodes, 5) {
		at = append(at, placeText(n))
	}
	text := a.name + " can be " + strings.Join(at, ", ")
	if n := len(a.nodes) - len(at); n > 0 {
		text += ", … " + itoa(n) + " more"
	}
	return text
}

// placeText names a node with its place.
func placeText(n Node) string {
	if n.Kind == File || n.Kind == Package {
		return n.Name()
	}
	return n.Name() + " (" + n.File + ":" + itoa(n.Line) + ")"
}

// mention is a part of a text that may name code.
type mention struct {
	text string
	sure bool // it is marked as code: in backquotes, or followed by (
}

// mentions returns the parts of a text that look like paths or names of code: in
// backquotes, followed by (, with a dot, slash, underscore or inner capital, or
// beside a word that says what it is, such as "function".
func mentions(text string) (all []mention) {
	add := func(word string, sure bool) {
		m := mention{strings.Trim(word, "().*[]@&-"), sure}
		if n := len(m.text); n < 2 || n > 200 || n < 3 && !sure || len(all) == 32 || slices.ContainsFunc(all, func(o mention) bool { return o.text == m.text }) {
			return
		}
		all = append(all, m)
	}
	for i, part := range strings.Split(strings.NewReplacer("::", ".", "->", ".", "?.", ".").Replace(text), "`") {
		fields := strings.FieldsFunc(part, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"',;:?!<>{}|=`, r) })
		for j, field := range fields {
			word, call := field, false
			if at := strings.IndexByte(field, '('); at > 0 {
				word, call = field[:at], true
			}
			word = strings.TrimRight(word, ".)")
			before, after := "", ""
			if j > 0 {
				before = fields[j-1]
			}
			if j+1 < len(fields) {
				after = strings.Trim(fields[j+1], ".)")
			}
			quoted := i%2 == 1 && len(fields) == 1
			if quoted || call || codeLike(word) || plainName(word) && (cues()[strings.ToLower(before)] || kinds()[strings.ToLower(after)]) {
				add(word, quoted || call)
			}
		}
	}
	return all
}

// codeLike reports whether a word is none of a natural language.
func codeLike(word string) bool {
	if word == "" {
		return false
	}
	inner := strings.IndexFunc(word[1:], unicode.IsUpper) >= 0 && strings.ToUpper(word) != word
	return inner || strings.ContainsAny(word, "./_#")
}

// plainName reports whether a word can be a name and is none of the words that cues
// often stand beside.
func plainName(word string) bool { return len(word) >= 3 && !fillers()[strings.ToLower(word)] }

// Words that stand before and after a name of code, and such that stand there without
// being one.
var (
	cues = words(`call calls calling callers of function func method class type struct interface trait variable constant use uses using
		change changing rename renaming remove removing delete deleting alter altering modify modifying edit touch reference references invoke invokes`)
	kinds   = words(`function func method class type struct interface trait is gets changes breaks called used`)
	fillers = words(`the this that these those its all any and for from our your their each every some functions methods classes types tests
		code file files what who which where how are can not new one two it`)
)

// filesNamed returns the file with a path, or all whose path ends so.
func (g *Graph) filesNamed(text string) []Node {
	text = cleanPath(text)
	if strings.Contains(text, "#") || !strings.ContainsAny(text, "./") {
		return nil
	}
	if nodes := g.InFile(text); len(nodes) > 0 {
		return nodes[:1]
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	var found []Node
	for name, f := range g.files {
		if strings.HasSuffix(name, "/"+text) && len(f.nodes) > 0 {
			found = append(found, f.nodes[0])
		}
	}
	slices.SortFunc(found, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	return found
}

// meant returns what a mention can mean: what has this name; else methods of a type
// or variable with a name like the one before the dot; else what has nearly this name.
func (g *Graph) meant(m mention) []Node {
	if file, name, ok := strings.Cut(m.text, "#"); ok {
		return within(g.named(name), g.filesNamed(file))
	}
	if n, ok := g.Node(m.text); ok {
		return []Node{n}
	}
	if found := g.named(m.text); len(found) > 0 {
		return found
	}
	last := lastPart(m.text)
	if receiver := strings.TrimSuffix(m.text, "."+last); receiver != m.text && last != "" {
		if found := ofReceiver(g.named(last), lastPart(receiver)); len(found) > 0 {
			return found
		}
	}
	if !m.sure && (!codeLike(m.text) || strings.ContainsAny(m.text, "/.")) {
		return nil
	}
	return g.nearlyNamed(last)
}

// ofReceiver returns the definitions whose type is most like a receiver, which may be
// a variable or misspelt. One that is like none of them leaves a name that only one has.
func ofReceiver(found []Node, receiver string) []Node {
	best, at := max(2, len(receiver)/3), []Node(nil)
	for _, n := range found {
		outer := strings.TrimSuffix(strings.TrimSuffix(n.Name(), lastPart(n.Name())), ".")
		if outer == "" {
			outer = strings.TrimSuffix(path.Base(n.File), path.Ext(n.File)) // module.function
		}
		switch d := distance(folded(receiver), folded(lastPart(outer))); {
		case d < best:
			best, at = d, []Node{n}
		case d == best && at != nil:
			at = append(at, n)
		}
	}
	if at == nil && len(found) == 1 {
		return found
	}
	return at
}

// nearlyNamed returns what has a name that is only written another way, or the only
// name that differs in one letter, or in two if it is long.
func (g *Graph) nearlyNamed(name string) (found []Node) {
	want := folded(name)
	if len(want) < 5 {
		return nil
	}
	most := 1
	if len(want) >= 9 {
		most = 2
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	best, same := most, []string(nil)
	for other := range g.byName() {
		if n := len(other) - len(name); n > 3 || n < -3 {
			continue
		}
		switch d := distance(want, folded(other)); {
		case d < best || d == best && same == nil:
			best, same = d, []string{other}
		case d == best:
			same = append(same, other)
		}
	}
	slices.Sort(same)
	for _, other := range same {
		for _, number := range g.byName()[other] {
			found = append(found, *g.vertices[number].node)
		}
	}
	if best > 0 && len(same) > 1 {
		return nil // a guess
	}
	return found
}

// folded returns a name without its way of writing: parse_URL and parseUrl are the same.
func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}
