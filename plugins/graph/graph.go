package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Kind is the kind of a [Node].
type Kind string

// The kinds of nodes.
const (
	File      Kind = "file"
	Package   Kind = "package" // a directory of Go files
	Class     Kind = "class"   // also a struct or another type
	Interface Kind = "interface"
	Function  Kind = "function"
	Method    Kind = "method"
	Variable  Kind = "variable" // also a constant; not a local one
	Test      Kind = "test"
)

// Node is something that other code can depend on.
type Node struct {
	// ID is "LANGUAGE:PATH" of a file or directory, and "LANGUAGE:PATH#NAME" of
	// what a file defines. The path is relative to the root, with slashes.
	ID        string `json:"id"`
	Kind      Kind   `json:"kind"`
	File      string `json:"file"`
	Line      int    `json:"line,omitempty"`
	EndLine   int    `json:"endLine,omitempty"`
	Signature string `json:"signature,omitempty"` // the beginning of the definition
	Doc       string `json:"doc,omitempty"`       // its first sentence
	Hash      string `json:"hash,omitempty"`      // of its source text
}

// Name returns the name within the file, such as "Session.Run", and the path of
// files and packages.
func (n *Node) Name() string {
	if _, name, ok := strings.Cut(n.ID, "#"); ok {
		return name
	}
	return n.File
}

// Language returns the language: "go", "python", "javascript" …
func (n *Node) Language() string {
	lang, _, _ := strings.Cut(n.ID, ":")
	return lang
}

// Relation is the kind of an [Edge].
type Relation string

// The relations of edges.
const (
	Contains  Relation = "contains"
	Imports   Relation = "import"
	Calls     Relation = "call"
	Refers    Relation = "reference"
	Inherits  Relation = "inherit"
	Implement Relation = "implement" // from an interface or its method to what implements it
	Inits     Relation = "init"      // to code that runs before
)

// Confidence says how often edges of a class are right. It is a promise that the
// benchmark holds (docs/graph.md).
type Confidence string

// The classes of confidence.
const (
	High   Confidence = "high"   // at least 98 of 100 edges are right
	Medium Confidence = "medium" // at least 80
	Low    Confidence = "low"    // at least 20
	Unsafe Confidence = "unsafe" // a place whose target is unknown, such as reflection
)

// Edge says that From depends on To.
type Edge struct {
	From       string     `json:"from"`
	To         string     `json:"to"`
	Kind       Relation   `json:"kind"`
	Confidence Confidence `json:"confidence"`
	Rule       string     `json:"rule"` // the evidence: how it was found
	File       string     `json:"file"`
	Line       int        `json:"line"`
}

// Warning is something that the analysis could not do or does not know.
type Warning struct {
	Code string `json:"code"`
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// Graph holds what is known of all files. It changes when its [Index] is
// refreshed; its methods are safe for concurrent use.
//
// Walks over it go by number: they look at most IDs of the graph, and a map of texts
// costs ten times what an array does.
type Graph struct {
	mu       sync.RWMutex
	files    map[string]*fileFacts
	sources  []*fileFacts     // by the number of the file; nil if it is gone
	numbers  map[string]int32 // of each ID; an ID keeps its number even if it is gone
	vertices []vertex         // by number

	namesMu sync.Mutex         // while mu is locked for reading
	names   map[string][]int32 // numbers by the last part of a name; nil after a change
}

// vertex is an ID with what is known of it.
type vertex struct {
	id      string
	node    *Node // nil if no file defines it (any longer)
	out, in []ref // its edges, even if the other end is not there (yet)
}

// fact is an edge as a file states it; the node that it leads to may not exist.
type fact struct {
	from, to   string
	line       int32
	kind       Relation
	confidence Confidence
	rule       string
}

// ref names a fact of a file, and has of it what walks need. It has no pointers, so the
// garbage collector does not read what is most of a graph.
type ref struct {
	file       int32 // the number of the file
	index      int32 // of the fact
	other      int32 // the number of the other end
	tier       int8  // the rank of its confidence; -1 if no change spreads along it
	dispatches bool  // it leads from an interface of Go to what implements it
}

// unresolved is the other end of a call of which nothing is known but the name of the
// method. There is never a node with this ID, so no walk gets there.
func unresolved(language, name string) string { return language + ":?#" + name }

func (g *Graph) fact(r ref) *fact { return &g.sources[r.file].facts[r.index] }

// newGraph returns a graph with room for a number of nodes.
func newGraph(nodes int) *Graph {
	return &Graph{files: map[string]*fileFacts{}, numbers: make(map[string]int32, nodes), vertices: make([]vertex, 0, nodes)}
}

// number returns the number of an ID, a new one if it has none.
func (g *Graph) number(id string) int32 {
	n, ok := g.numbers[id]
	if !ok {
		n = int32(len(g.vertices))
		g.numbers[id] = n
		g.vertices = append(g.vertices, vertex{id: id})
	}
	return n
}

// vertex returns what is known of an ID; an empty one if nothing is.
func (g *Graph) vertex(id string) vertex {
	if n, ok := g.numbers[id]; ok {
		return g.vertices[n]
	}
	return vertex{}
}

// node returns the node with an ID, or nil.
func (g *Graph) node(id string) *Node { return g.vertex(id).node }

// put replaces what is known of a file, whose facts are in their normal order; f is nil
// if the file is gone.
func (g *Graph) put(path string, f *fileFacts) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names = nil
	old := g.files[path]
	if old != nil {
		g.remove(old)
	}
	if f == nil {
		return
	}
	if old != nil {
		f.number = old.number
	} else {
		f.number = int32(len(g.sources))
		g.sources = append(g.sources, nil)
	}
	g.files[path], g.sources[f.number] = f, f
	for i := range f.nodes {
		g.vertices[g.number(f.nodes[i].ID)].node = &f.nodes[i]
	}
	g.link(f)
}

// link adds the edges that a file states.
func (g *Graph) link(f *fileFacts) {
	for first := 0; first < len(f.facts); {
		n := first + 1
		for n < len(f.facts) && f.facts[n].from == f.facts[first].from {
			n++
		}
		from := g.number(f.facts[first].from)
		out := slices.Grow(g.vertices[from].out, n-first)
		for i, x := range f.facts[first:n] {
			r := ref{file: f.number, index: int32(first + i), other: g.number(x.to), tier: -1, dispatches: x.dispatches()}
			if x.kind.causes() {
				r.tier = int8(rank(x.confidence))
			}
			out = append(out, r)
			in := &g.vertices[r.other].in
			r.other = from
			*in = append(*in, r)
		}
		g.vertices[from].out = out
		first = n
	}
}

// fit gives back the room that lists of edges grew into and do not fill.
func (g *Graph) fit() {
	for i := range g.vertices {
		if v := &g.vertices[i]; cap(v.in) > len(v.in) {
			v.in = slices.Clone(v.in)
		}
	}
}

// remove removes a file with its nodes and the edges that it states; each list of edges
// is gone through once.
func (g *Graph) remove(old *fileFacts) {
	for i := range old.nodes {
		if v := &g.vertices[g.number(old.nodes[i].ID)]; v.node == &old.nodes[i] {
			v.node = nil
		}
	}
	out, in := map[int32]bool{}, map[int32]bool{}
	for i := range old.facts {
		out[g.number(old.facts[i].from)], in[g.number(old.facts[i].to)] = true, true
	}
	for n := range out {
		g.vertices[n].out = without(g.vertices[n].out, old.number)
	}
	for n := range in {
		g.vertices[n].in = without(g.vertices[n].in, old.number)
	}
	delete(g.files, old.path)
	g.sources[old.number] = nil
}

// without removes a file's edges from a list.
func without(list []ref, file int32) []ref {
	if list = slices.DeleteFunc(list, func(r ref) bool { return r.file == file }); len(list) == 0 {
		return nil
	}
	return list
}

// file returns what is known of a file; nil if nothing is.
func (g *Graph) file(path string) *fileFacts {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.files[path]
}

// Node returns the node with an ID.
func (g *Graph) Node(id string) (Node, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if n := g.node(id); n != nil {
		return *n, true
	}
	return Node{}, false
}

// Nodes returns all nodes, by file and line.
func (g *Graph) Nodes() []Node {
	g.mu.RLock()
	defer g.mu.RUnlock()
	nodes := make([]Node, 0, len(g.vertices))
	for _, path := range slices.Sorted(maps.Keys(g.files)) {
		nodes = append(nodes, g.files[path].nodes...)
	}
	return nodes
}

// Edges returns all edges, by file.
func (g *Graph) Edges() []Edge {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var edges []Edge
	for _, path := range slices.Sorted(maps.Keys(g.files)) {
		for i := range g.files[path].facts {
			if f := &g.files[path].facts[i]; g.node(f.from) != nil && g.node(f.to) != nil {
				edges = append(edges, f.edge(path))
			}
		}
	}
	return edges
}

// Warnings returns the warnings of all files, by file.
func (g *Graph) Warnings() []Warning {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var all []Warning
	for _, path := range slices.Sorted(maps.Keys(g.files)) {
		all = append(all, g.files[path].warnings...)
	}
	return all
}

func (f *fact) edge(path string) Edge {
	return Edge{f.from, f.to, f.kind, f.confidence, f.rule, path, int(f.line)}
}

// Out returns the edges from a node, of the relations given or of all.
func (g *Graph) Out(id string, kinds ...Relation) []Edge {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.edges(g.vertex(id).out, kinds)
}

// In returns the edges to a node, of the relations given or of all.
func (g *Graph) In(id string, kinds ...Relation) []Edge {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.edges(g.vertex(id).in, kinds)
}

func (g *Graph) edges(list []ref, kinds []Relation) []Edge {
	var edges []Edge
	for _, r := range list {
		f := g.fact(r)
		if g.node(f.from) != nil && g.node(f.to) != nil && (len(kinds) == 0 || slices.Contains(kinds, f.kind)) {
			edges = append(edges, f.edge(g.sources[r.file].path))
		}
	}
	slices.SortStableFunc(edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return edges
}

// InFile returns the nodes of a file, the file's own first.
func (g *Graph) InFile(path string) []Node {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if f := g.files[path]; f != nil {
		return slices.Clone(f.nodes)
	}
	return nil
}

// Find returns the nodes that a user can mean by a text: an ID, a path, PATH#NAME,
// NAME, or the last part of a name. The error names similar ones.
func (g *Graph) Find(text string) ([]Node, error) {
	if n, ok := g.Node(text); ok {
		return []Node{n}, nil
	}
	path, name, qualified := strings.Cut(text, "#")
	var found []Node
	if qualified {
		for _, n := range g.InFile(cleanPath(path)) {
			if n.Name() == name || strings.HasSuffix(n.Name(), "."+name) {
				found = append(found, n)
			}
		}
	} else if nodes := g.InFile(cleanPath(text)); len(nodes) > 0 {
		return nodes[:1], nil
	} else {
		found = g.named(text)
	}
	if len(found) == 0 {
		return nil, g.unknown(text)
	}
	return found, nil
}

// named returns the nodes with a name; a qualified name wins over its last part.
func (g *Graph) named(name string) []Node {
	var whole, part []Node
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, number := range g.byName()[lastPart(name)] {
		n := g.vertices[number].node
		switch own := n.Name(); {
		case own == name, goName(n) == name:
			whole = append(whole, *n)
		case strings.HasSuffix(own, "."+name):
			part = append(part, *n)
		}
	}
	if len(whole) > 0 {
		return whole
	}
	return part
}

// byName returns the numbers of what files define by the last part of its name, in the
// order of files and lines. It is made once after each change.
func (g *Graph) byName() map[string][]int32 {
	g.namesMu.Lock()
	defer g.namesMu.Unlock()
	if g.names == nil {
		g.names = map[string][]int32{}
		for _, path := range slices.Sorted(maps.Keys(g.files)) {
			for i := range g.files[path].nodes {
				if n := &g.files[path].nodes[i]; n.Kind != File && n.Kind != Package {
					last := lastPart(n.Name())
					g.names[last] = append(g.names[last], g.numbers[n.ID])
				}
			}
		}
	}
	return g.names
}

// lastPart returns what follows the last dot of a name.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// goName returns how Go code of another package names a node: "http.Get".
func goName(n *Node) string {
	if n.Language() != "go" {
		return ""
	}
	dir := strings.TrimSuffix(n.File, "/"+n.File[strings.LastIndex(n.File, "/")+1:])
	return dir[strings.LastIndex(dir, "/")+1:] + "." + n.Name()
}

// UnknownError says that nothing in the graph has a name or path.
type UnknownError struct {
	Text        string
	Suggestions []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%q is not in the graph: expected a path, a name, or PATH#NAME", e.Text)
	if len(e.Suggestions) > 0 {
		text += "; similar: " + strings.Join(e.Suggestions, ", ")
	}
	return text
}

func (g *Graph) unknown(text string) error {
	type match struct {
		id    string
		score int
	}
	want := strings.ToLower(text[strings.LastIndexAny(text, "#/.")+1:])
	var best []match
	for _, n := range g.Nodes() {
		name := strings.ToLower(n.Name())
		name = name[strings.LastIndexAny(name, "/.")+1:]
		if d := distance(want, name); d <= max(2, len(want)/3) {
			best = append(best, match{n.ID, d})
		} else if len(want) > 2 && strings.Contains(name, want) {
			best = append(best, match{n.ID, len(name)})
		}
	}
	slices.SortFunc(best, func(a, b match) int { return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.id, b.id)) })
	e := &UnknownError{Text: text}
	for _, m := range best[:min(3, len(best))] {
		e.Suggestions = append(e.Suggestions, m.id)
	}
	return e
}

// distance returns the edit distance of two short texts.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) > 8 || len(b)-len(a) > 8 {
		return 99
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j+1]+1, row[j]+1)
			if a[i] == b[j] {
				next = min(next, last)
			} else {
				next = min(next, last+1)
			}
			last, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// cleanPath removes what users write before a path: "./", and a trailing slash.
func cleanPath(path string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(path, `\`, "/"), "./"), "/")
}
