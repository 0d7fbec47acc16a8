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

// causes reports whether a change spreads along a relation, against its direction.
func (r Relation) causes() bool {
	switch r {
	case Calls, Refers, Inherits, Implement, Inits:
		return true
	}
	return false
}

// Impact reports what changes of some nodes may break. Changing a file is changing
// everything in it.
func (g *Graph) Impact(ids ...string) *Report {
	g.mu.RLock()
	defer g.mu.RUnlock()
	r := &Report{Edges: map[Confidence]int{}, Complete: true}
	w := wave{g: g, r: r, at: make([]int32, len(g.vertices))}
	for _, id := range ids {
		n := g.node(id)
		if n == nil {
			continue
		}
		w.start(n)
		if f := g.files[n.File]; n.Kind == File && f != nil {
			for i := range f.nodes {
				if inner := &f.nodes[i]; inner.Kind != Package {
					w.start(inner)
				}
			}
		}
	}
	w.spread()
	w.prune()
	w.collect()
	return r
}

// wave spreads a change: along edges of high confidence as far as they lead, then along
// those of medium and of low confidence, and each time to the nearest nodes first, so
// that each node is found in the best way.
type wave struct {
	g     *Graph
	r     *Report
	hits  []hit
	at    []int32          // by the number of a node: 1 + the index of its hit; 0 if it was not reached
	front [][]int32        // the hits with the confidence at hand, by distance
	later [3][][]laterEdge // of less confidence, by the distance of where they start
	types bool             // a method was reached through an interface
}

// hit is a node that was reached.
type hit struct {
	node     *Node
	number   int32
	via      int32 // the hit before it on the way from the change; -1 for what changed
	distance int32
	tier     int8 // the rank of its confidence
	pruned   bool
}

// laterEdge is an edge to a hit, from a node that was not reached yet.
type laterEdge struct {
	from, via  int32
	confidence Confidence
	dispatches bool
}

func (w *wave) start(n *Node) {
	if number := w.g.numbers[n.ID]; w.at[number] == 0 {
		w.reach(hit{node: n, number: number, via: -1})
		w.r.Changed = append(w.r.Changed, *n)
	}
}

func (w *wave) reach(h hit) {
	w.front = put(w.front, int(h.distance), int32(len(w.hits)))
	w.hits = append(w.hits, h)
	w.at[h.number] = int32(len(w.hits))
}

func (w *wave) spread() {
	for tier := range w.later {
		for d := 0; d < max(len(w.front), len(w.later[tier])); d++ {
			if d < len(w.later[tier]) {
				for _, e := range w.later[tier][d] {
					w.follow(e, tier)
				}
			}
			if d < len(w.front) {
				for _, at := range w.front[d] {
					w.edges(at, tier)
				}
			}
		}
		w.front = nil
	}
}

// edges follows the edges to a hit, or keeps them for later.
func (w *wave) edges(at int32, tier int) {
	for _, ref := range w.g.vertices[w.hits[at].number].in {
		if w.at[ref.other] != 0 {
			continue
		}
		f := ref.fact()
		if !f.kind.causes() {
			continue
		}
		e := laterEdge{ref.other, at, f.confidence, f.dispatches()}
		switch n := rank(f.confidence); {
		case n <= tier:
			w.follow(e, tier)
		case n < len(w.later):
			w.later[n] = put(w.later[n], int(w.hits[at].distance), e)
		}
	}
}

func (w *wave) follow(e laterEdge, tier int) {
	if n := w.g.vertices[e.from].node; n != nil && w.at[e.from] == 0 {
		w.r.Edges[e.confidence]++
		w.types = w.types || e.dispatches
		w.reach(hit{node: n, number: e.from, via: e.via, distance: w.hits[e.via].distance + 1, tier: int8(tier)})
	}
}

// prune takes back the Go tests that cannot have a value of the types whose methods
// lie between them and the change.
func (w *wave) prune() {
	var tests, changed []int32 // numbers
	for i := range w.hits {
		switch h := &w.hits[i]; {
		case h.distance == 0:
			changed = append(changed, h.number)
		case h.node.Kind == Test && h.node.Language() == "go":
			tests = append(tests, h.number)
		}
	}
	if !w.types || len(tests) == 0 {
		return
	}
	can := w.g.reaching(tests, changed)
	for i, number := range tests {
		w.hits[w.at[number]-1].pruned = can[i/64]&(1<<(i%64)) == 0
	}
}

// put adds an element to the list at an index.
func put[T any](lists [][]T, i int, e T) [][]T {
	for len(lists) <= i {
		lists = append(lists, nil)
	}
	lists[i] = append(lists[i], e)
	return lists
}

func byCertainty(a, b hit) int {
	if c := cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.distance, b.distance)); c != 0 {
		return c
	}
	return cmp.Compare(a.node.ID, b.node.ID)
}

// affected returns a hit for a report.
func (w *wave) affected(h hit) Affected {
	a := Affected{Node: *h.node, Distance: int(h.distance), Confidence: [...]Confidence{High, Medium, Low}[h.tier]}
	if h.via >= 0 {
		a.Via = w.hits[h.via].node.ID
	}
	return a
}

// collect fills the lists of the report.
func (w *wave) collect() {
	r := w.r
	files := map[string]bool{} // with something that a change may break
	unsafe := map[string]bool{}
	sorted := slices.DeleteFunc(slices.Clone(w.hits), func(h hit) bool { return h.pruned || h.node.Kind == Package })
	slices.SortFunc(sorted, byCertainty)
	for _, h := range sorted {
		unsafe[h.node.File] = true
		if h.node.Kind == Test {
			r.Tests = append(r.Tests, w.affected(h))
		}
		if h.distance == 0 {
			continue
		}
		if h.node.Kind == Function || h.node.Kind == Method {
			r.Functions = append(r.Functions, w.affected(h))
		}
		if !files[h.node.File] {
			files[h.node.File] = true
			a := w.affected(h)
			r.Files = append(r.Files, AffectedFile{a.File, a.Distance, a.Confidence})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unsafe)) {
		if f := w.g.files[name]; f != nil {
			for _, warning := range f.warnings {
				if warning.Code == "unsafe" && w.inCone(f, warning.Line) {
					r.Unsafe = append(r.Unsafe, warning)
				}
			}
		}
	}
	r.Complete = len(r.Unsafe) == 0 && len(r.Unknown) == 0
	r.Commands = testCommands(r.Tests)
}

// inCone reports whether a line of a file belongs to something reached.
func (w *wave) inCone(f *fileFacts, line int) bool {
	for i := range f.nodes {
		n := &f.nodes[i]
		if n.Kind == Package || n.Line > line || line > n.EndLine {
			continue
		}
		if at := w.at[w.g.numbers[n.ID]]; at != 0 && !w.hits[at-1].pruned {
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
	if g.node(from) == nil || g.node(to) == nil || from == to {
		return nil
	}
	start, end := g.numbers[from], g.numbers[to]
	before := map[int32]ref{}
	seen := map[int32]bool{start: true}
	for _, tier := range []Confidence{High, Medium, Low} {
		queue := slices.SortedFunc(maps.Keys(seen), func(a, b int32) int { return cmp.Compare(g.vertices[a].id, g.vertices[b].id) })
		for len(queue) > 0 && !seen[end] {
			at := queue[0]
			queue = queue[1:]
			for _, r := range g.vertices[at].out {
				f := r.fact()
				if seen[r.other] || g.vertices[r.other].node == nil || !(f.kind.causes() || f.kind == Imports) || rank(f.confidence) > rank(tier) {
					continue
				}
				seen[r.other], before[r.other] = true, r
				queue = append(queue, r.other)
			}
		}
	}
	if !seen[end] {
		return nil
	}
	var steps []Step
	for at := end; at != start; {
		f := before[at].fact()
		steps = append(steps, f.edge(before[at].file.path))
		at = g.numbers[f.from]
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
	for _, path := range slices.Sorted(maps.Keys(g.files)) {
		for i := range g.files[path].nodes {
			if n := &g.files[path].nodes[i]; n.Kind == File && t.index[n.ID] == 0 {
				t.visit(n.ID)
			}
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
		if out := t.g.vertex(top.id).out; top.next < len(out) {
			f := out[top.next].fact()
			top.next++
			switch {
			case f.kind != Imports || t.g.node(f.to) == nil || t.g.node(f.to).Kind != File:
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
