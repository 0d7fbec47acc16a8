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
	found [3]int           // the edges by which something was reached, by the rank of their confidence
	types bool             // a method was reached through an interface
}

// hit is a node that was reached.
type hit struct {
	number   int32 // of the node
	via      int32 // the hit before it on the way from the change; -1 for what changed
	distance int32
	tier     int8 // the rank of its confidence
	pruned   bool
}

// laterEdge is an edge to a hit, from a node that was not reached yet.
type laterEdge struct {
	from, via  int32
	tier       int8 // the rank of its confidence
	dispatches bool
}

func (w *wave) start(n *Node) {
	if number := w.g.numbers[n.ID]; w.at[number] == 0 {
		w.reach(hit{number: number, via: -1})
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
		e := laterEdge{ref.other, at, ref.tier, ref.dispatches}
		switch n := int(ref.tier); {
		case n < 0: // no change spreads along it
		case n <= tier:
			w.follow(e, tier)
		case n < len(w.later):
			w.later[n] = put(w.later[n], int(w.hits[at].distance), e)
		}
	}
}

func (w *wave) follow(e laterEdge, tier int) {
	if w.at[e.from] == 0 && w.g.vertices[e.from].node != nil {
		w.found[e.tier]++
		w.types = w.types || e.dispatches
		w.reach(hit{number: e.from, via: e.via, distance: w.hits[e.via].distance + 1, tier: int8(tier)})
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
		default:
			if n := w.node(h); n.Kind == Test && n.Language() == "go" {
				tests = append(tests, h.number)
			}
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

// byRank are the confidences of edges by their rank.
var byRank = [...]Confidence{High, Medium, Low}

func (w *wave) node(h *hit) *Node { return w.g.vertices[h.number].node }

// affected returns hits for a report; nil for none.
func (w *wave) affected(hits []*hit) (list []Affected) {
	list = slices.Grow(list, len(hits))
	for _, h := range hits {
		a := Affected{Node: *w.node(h), Distance: int(h.distance), Confidence: byRank[h.tier]}
		if h.via >= 0 {
			a.Via = w.g.vertices[w.hits[h.via].number].id
		}
		list = append(list, a)
	}
	return list
}

// sorted returns the hits for a report: the most certain first, then the nearest, as they
// were reached, and of the same kind by ID.
func (w *wave) sorted() []*hit {
	list := make([]*hit, 0, len(w.hits))
	for i := range w.hits {
		if h := &w.hits[i]; !h.pruned && w.node(h).Kind != Package {
			list = append(list, h)
		}
	}
	for rest := list; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].tier == rest[0].tier && rest[n].distance == rest[0].distance {
			n++
		}
		slices.SortFunc(rest[:n], func(a, b *hit) int { return cmp.Compare(w.g.vertices[a.number].id, w.g.vertices[b.number].id) })
		rest = rest[n:]
	}
	return list
}

// collect fills the lists of the report.
func (w *wave) collect() {
	r := w.r
	for tier, n := range w.found {
		if n > 0 {
			r.Edges[byRank[tier]] = n
		}
	}
	var tests, functions []*hit
	files := map[string]bool{} // with something that a change may break
	unsafe := map[string]bool{}
	for _, h := range w.sorted() {
		n := w.node(h)
		unsafe[n.File] = true
		if n.Kind == Test {
			tests = append(tests, h)
		}
		if h.distance == 0 {
			continue
		}
		if n.Kind == Function || n.Kind == Method {
			functions = append(functions, h)
		}
		if !files[n.File] {
			files[n.File] = true
			r.Files = append(r.Files, AffectedFile{n.File, int(h.distance), byRank[h.tier]})
		}
	}
	r.Tests, r.Functions = w.affected(tests), w.affected(functions)
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
				f := g.fact(r)
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
		f := g.fact(before[at])
		steps = append(steps, f.edge(g.sources[before[at].file].path))
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
			f := t.g.fact(out[top.next])
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
