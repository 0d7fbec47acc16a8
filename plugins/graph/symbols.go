package graph

import (
	"cmp"
	"go/token"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Search returns up to n functions, types and variables whose names resemble a
// query, the best first: the same name, its beginning, a part of it, the initials of
// its words, or at least its characters in this order. "PATH#NAME" looks only in
// files whose path ends or begins so.
func (g *Graph) Search(query string, n int) []Node {
	file, name, inFile := strings.Cut(query, "#")
	if !inFile {
		file, name = "", query
	}
	file = cleanPath(file)
	type match struct {
		node  *Node
		score int
	}
	var found []match
	g.mu.RLock()
	defer g.mu.RUnlock()
	for i := range g.vertices {
		node := g.vertices[i].node
		if node == nil || node.Kind == File || node.Kind == Package || !strings.HasPrefix(node.File, file) && !strings.HasSuffix(node.File, "/"+file) {
			continue
		}
		if score := resembles(node.Name(), name); score >= 0 {
			if node.Kind == Variable || node.Kind == Test {
				score++
			}
			found = append(found, match{node, score})
		}
	}
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(len(a.node.Name()), len(b.node.Name())), cmp.Compare(a.node.ID, b.node.ID))
	})
	var nodes []Node
	for _, m := range nearest(found, max(n, 0)) {
		nodes = append(nodes, *m.node)
	}
	return nodes
}

// resembles returns how far a name is from a query, in steps of two; -1 if it does
// not match.
func resembles(name, query string) int {
	lower, want := strings.ToLower(name), strings.ToLower(query)
	last := lower[strings.LastIndexByte(lower, '.')+1:]
	switch {
	case query == name:
		return 0
	case last == want || lower == want:
		return 2
	case strings.HasPrefix(last, want):
		return 4
	case strings.HasPrefix(lower, want):
		return 6
	case strings.HasPrefix(initials(name), want):
		return 8
	case strings.Contains(lower, want):
		return 10
	}
	for _, r := range lower {
		if first, size := utf8.DecodeRuneInString(want); r == first {
			want = want[size:]
		}
	}
	if want == "" {
		return 12
	}
	return -1
}

// initials returns the first letters of the words of a name: "nst" of newSession.Text.
func initials(name string) string {
	var b strings.Builder
	before := '.'
	for _, r := range name {
		if !unicode.IsLetter(before) && unicode.IsLetter(r) || unicode.IsUpper(r) && !unicode.IsUpper(before) {
			b.WriteRune(unicode.ToLower(r))
		}
		before = r
	}
	return b.String()
}

// Touched is something that a change of a file touched.
type Touched struct {
	Node
	Change string // create, modify or delete
}

// Touches compares two texts of a file, of which one may be empty, and returns the
// innermost definitions that differ. It looks at nothing else, needs no [Index], and
// returns nil for a file that cannot be analysed.
func Touches(name string, before, after []byte) []Touched {
	was, is := definitions(name, before), definitions(name, after)
	var all []Touched
	for id, n := range is {
		if old, ok := was[id]; !ok {
			all = append(all, Touched{n, "create"})
		} else if old.Hash != n.Hash {
			all = append(all, Touched{n, "modify"})
		}
	}
	for id, n := range was {
		if _, ok := is[id]; !ok {
			all = append(all, Touched{n, "delete"})
		}
	}
	inside := map[string]bool{} // what has something in it that is listed, too
	for _, t := range all {
		for name := t.Name(); strings.Contains(name, "."); inside[name] = true {
			name = name[:strings.LastIndexByte(name, '.')]
		}
	}
	all = slices.DeleteFunc(all, func(t Touched) bool {
		apart := t.Kind == Class && t.Language() == "go" // its methods are not in its text
		return t.Change == "modify" && inside[t.Name()] && !apart
	})
	slices.SortFunc(all, func(a, b Touched) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.ID, b.ID)) })
	return all
}

// definitions returns what a text defines, by ID.
func definitions(name string, data []byte) (found map[string]Node) {
	lang := languageOf(name)
	if lang == "" || len(data) == 0 || len(data) > maxFile {
		return nil
	}
	f := &fileFacts{path: name, language: lang, hash: contentHash(data)}
	defer func() {
		if recover() != nil { // a fault of the analysis: nothing is known
			found = nil
		}
	}()
	if lang == "go" {
		fset := token.NewFileSet()
		if tree, _ := parseText(fset, name, data); tree != nil {
			goNodes(fset, tree, f, data)
		}
	} else {
		outlineFile(f, data)
	}
	found = make(map[string]Node, len(f.nodes))
	for _, n := range f.nodes {
		if n.Kind != File && n.Kind != Package {
			found[n.ID] = n
		}
	}
	return found
}
