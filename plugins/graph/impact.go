package graph

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// Affected is something that a change may break.
type Affected struct {
	Node
	Distance   int        `json:"distance"` // edges from the change
	Confidence Confidence `json:"confidence"`
	Via        string     `json:"via"` // the node before it on the way from the change
}

// AffectedFile is a file with something that a change may break.
type AffectedFile struct {
	Path       string     `json:"path"`
	Distance   int        `json:"distance"`
	Confidence Confidence `json:"confidence"`
}

// Report says what a change may break. All lists are ordered: the most certain
// first, then the nearest.
type Report struct {
	Changed   []Node             `json:"changed"`
	Files     []AffectedFile     `json:"files"`
	Functions []Affected         `json:"functions"`
	Tests     []Affected         `json:"tests"`
	Commands  []Command          `json:"commands"` // that run the tests
	Edges     map[Confidence]int `json:"edges"`    // by which something was found
	Unsafe    []Warning          `json:"unsafe,omitempty"`
	Unknown   []string           `json:"unknown,omitempty"` // changed files that are not in the graph
	Complete  bool               `json:"complete"`          // nothing unsafe or unknown is among it
}

// causes are the relations along which a change spreads, against their direction.
var causes = map[Relation]bool{Calls: true, Refers: true, Inherits: true, Implement: true, Inits: true}

// Impact reports what changes of some nodes may break. Changing a file is changing
// everything in it.
func (g *Graph) Impact(ids ...string) *Report {
	g.mu.RLock()
	defer g.mu.RUnlock()
	r := &Report{Edges: map[Confidence]int{}, Complete: true}
	w := wave{g: g, r: r, reached: map[string]*Affected{}}
	start := func(n *Node) {
		if w.reached[n.ID] == nil {
			w.reach(n, &Affected{Confidence: High})
			r.Changed = append(r.Changed, *n)
		}
	}
	for _, id := range ids {
		n := g.nodes[id]
		if n == nil {
			continue
		}
		start(n)
		if n.Kind == File && g.files[n.File] != nil {
			for i := range g.files[n.File].nodes {
				if inner := &g.files[n.File].nodes[i]; inner.Kind != Package {
					start(inner)
				}
			}
		}
	}
	w.spread()
	w.prune()
	g.collect(w.reached, r)
	return r
}

// wave spreads a change: along edges of high confidence as far as they lead, then along
// those of medium and of low confidence, and each time to the nearest nodes first, so
// that each node is found in the best way.
type wave struct {
	g       *Graph
	r       *Report
	reached map[string]*Affected
	front   [][]*Affected    // found with the confidence at hand, by distance
	later   [3][][]laterEdge // of less confidence, by the distance of where they start
	types   bool             // a method was reached through an interface
}

// laterEdge is an edge to a node that was reached, from one that was not yet.
type laterEdge struct {
	from       string
	at         *Affected
	confidence Confidence
	dispatches bool
}

func (w *wave) spread() {
	for tier, confidence := range []Confidence{High, Medium, Low} {
		for d := 0; d < max(len(w.front), len(w.later[tier])); d++ {
			if d < len(w.later[tier]) {
				for _, e := range w.later[tier][d] {
					w.follow(e, confidence)
				}
			}
			if d < len(w.front) {
				for _, at := range w.front[d] {
					w.edges(at, tier, confidence)
				}
			}
		}
		w.front = nil
	}
}

// edges follows the edges to a node, or keeps them for later.
func (w *wave) edges(at *Affected, tier int, confidence Confidence) {
	for _, ref := range w.g.in[at.ID] {
		f := ref.fact()
		if !causes[f.kind] || w.reached[f.from] != nil {
			continue
		}
		e := laterEdge{f.from, at, f.confidence, f.dispatches()}
		switch n := rank(f.confidence); {
		case n <= tier:
			w.follow(e, confidence)
		case n < len(w.later):
			w.later[n] = put(w.later[n], at.Distance, e)
		}
	}
}

func (w *wave) follow(e laterEdge, confidence Confidence) {
	if n := w.g.nodes[e.from]; n != nil && w.reached[e.from] == nil {
		w.r.Edges[e.confidence]++
		w.types = w.types || e.dispatches
		w.reach(n, &Affected{Distance: e.at.Distance + 1, Confidence: confidence, Via: e.at.ID})
	}
}

// prune takes back the Go tests that cannot have a value of the types whose methods
// lie between them and the change.
func (w *wave) prune() {
	var tests, changed []string
	for id, a := range w.reached {
		switch {
		case a.Distance == 0:
			changed = append(changed, id)
		case a.Kind == Test && a.Language() == "go":
			tests = append(tests, id)
		}
	}
	if !w.types || len(tests) == 0 {
		return
	}
	can := w.g.reaching(tests, changed)
	for _, id := range tests {
		if !can[id] {
			delete(w.reached, id)
		}
	}
}

func (w *wave) reach(n *Node, a *Affected) {
	a.Node = *n
	w.reached[n.ID] = a
	w.front = put(w.front, a.Distance, a)
}

// put adds an element to the list at an index.
func put[T any](lists [][]T, i int, e T) [][]T {
	for len(lists) <= i {
		lists = append(lists, nil)
	}
	lists[i] = append(lists[i], e)
	return lists
}

func byCertainty(a, b *Affected) int {
	if c := cmp.Or(rank(a.Confidence)-rank(b.Confidence), a.Distance-b.Distance); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// collect fills the lists of a report.
func (g *Graph) collect(reached map[string]*Affected, r *Report) {
	files := map[string]*AffectedFile{}
	unsafe := map[string]bool{}
	for _, a := range slices.SortedFunc(maps.Values(reached), byCertainty) {
		if a.Kind == Package {
			continue
		}
		unsafe[a.File] = true
		if a.Kind == Test {
			r.Tests = append(r.Tests, *a)
		}
		if a.Distance == 0 {
			continue
		}
		if a.Kind == Function || a.Kind == Method {
			r.Functions = append(r.Functions, *a)
		}
		if files[a.File] == nil {
			files[a.File] = &AffectedFile{a.File, a.Distance, a.Confidence}
			r.Files = append(r.Files, *files[a.File])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unsafe)) {
		if f := g.files[name]; f != nil {
			for _, w := range f.warnings {
				if w.Code == "unsafe" && inCone(reached, f, w.Line) {
					r.Unsafe = append(r.Unsafe, w)
				}
			}
		}
	}
	r.Complete = len(r.Unsafe) == 0 && len(r.Unknown) == 0
	r.Commands = testCommands(r.Tests)
}

// inCone reports whether a line of a file belongs to something reached.
func inCone(reached map[string]*Affected, f *fileFacts, line int) bool {
	for i := range f.nodes {
		if n := &f.nodes[i]; n.Kind != Package && n.Line <= line && line <= n.EndLine && reached[n.ID] != nil {
			return true
		}
	}
	return false
}

// fixtures returns the tests of the package that a file below testdata belongs to.
func (g *Graph) fixtures(name string) []string {
	dir, _, ok := strings.Cut("/"+name, "/testdata/")
	if !ok {
		return nil
	}
	dir = cmp.Or(strings.TrimPrefix(dir, "/"), ".")
	var ids []string
	for _, n := range g.Nodes() {
		if n.Kind == Test && path.Dir(n.File) == dir {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// Step is an edge on a path from one node to another.
type Step = Edge

// Why returns a shortest path of dependencies from one node to another, with its
// evidence: how from depends on to. It returns nil if there is none.
func (g *Graph) Why(from, to string) []Step {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.nodes[from] == nil || g.nodes[to] == nil {
		return nil
	}
	before := map[string]ref{}
	seen := map[string]bool{from: true}
	for _, tier := range []Confidence{High, Medium, Low} {
		queue := slices.Sorted(maps.Keys(seen))
		for len(queue) > 0 && !seen[to] {
			at := queue[0]
			queue = queue[1:]
			for _, r := range g.out[at] {
				f := r.fact()
				if seen[f.to] || g.nodes[f.to] == nil || !(causes[f.kind] || f.kind == Imports) || rank(f.confidence) > rank(tier) {
					continue
				}
				seen[f.to], before[f.to] = true, r
				queue = append(queue, f.to)
			}
		}
	}
	if !seen[to] || from == to {
		return nil
	}
	var steps []Step
	for at := to; at != from; {
		r := before[at]
		steps = append(steps, r.fact().edge(r.file.path))
		at = r.fact().from
	}
	slices.Reverse(steps)
	return steps
}

// Cycles returns the groups of files, or of Go packages, that import each other in
// a circle, each sorted; Go does not allow them.
func (g *Graph) Cycles() [][]string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	t := tarjan{g: g, index: map[string]int{}, low: map[string]int{}, on: map[string]bool{}}
	for _, id := range slices.Sorted(maps.Keys(g.nodes)) {
		if g.nodes[id].Kind == File && t.index[id] == 0 {
			t.visit(id)
		}
	}
	slices.SortFunc(t.found, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return t.found
}

// tarjan finds strongly connected components (R. Tarjan, 1972), without recursion.
type tarjan struct {
	g          *Graph
	index, low map[string]int
	on         map[string]bool
	stack      []string
	found      [][]string
}

func (t *tarjan) visit(root string) {
	type frame struct {
		id   string
		next int
	}
	frames := []frame{{id: root}}
	t.enter(root)
	for len(frames) > 0 {
		top := &frames[len(frames)-1]
		if out := t.g.out[top.id]; top.next < len(out) {
			f := out[top.next].fact()
			top.next++
			switch {
			case f.kind != Imports || t.g.nodes[f.to] == nil || t.g.nodes[f.to].Kind != File:
			case t.index[f.to] == 0:
				t.enter(f.to)
				frames = append(frames, frame{id: f.to})
			case t.on[f.to]:
				t.low[top.id] = min(t.low[top.id], t.index[f.to])
			}
			continue
		}
		done := top.id
		frames = frames[:len(frames)-1]
		if len(frames) > 0 {
			parent := frames[len(frames)-1].id
			t.low[parent] = min(t.low[parent], t.low[done])
		}
		if t.low[done] == t.index[done] {
			t.leave(done)
		}
	}
}

func (t *tarjan) enter(id string) {
	t.index[id] = len(t.index) + 1
	t.low[id] = t.index[id]
	t.stack, t.on[id] = append(t.stack, id), true
}

func (t *tarjan) leave(id string) {
	i := slices.Index(t.stack, id)
	group := slices.Clone(t.stack[i:])
	t.stack = t.stack[:i]
	for _, member := range group {
		t.on[member] = false
	}
	if len(group) > 1 {
		slices.Sort(group)
		t.found = append(t.found, group)
	}
}
