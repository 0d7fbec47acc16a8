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
	reached := map[string]*Affected{}
	var queue []*Affected
	start := func(n *Node) {
		if reached[n.ID] == nil {
			reached[n.ID] = &Affected{Node: *n, Confidence: High}
			queue = append(queue, reached[n.ID])
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
	g.spread(queue, reached, r)
	g.collect(reached, r)
	return r
}

// spread follows edges of high confidence as far as they lead, then those of
// medium and of low confidence, so that each node is found in the best way.
func (g *Graph) spread(queue []*Affected, reached map[string]*Affected, r *Report) {
	for _, tier := range []Confidence{High, Medium, Low} {
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for _, ref := range g.in[at.ID] {
				f := ref.fact()
				if !causes[f.kind] || rank(f.confidence) > rank(tier) || reached[f.from] != nil || g.nodes[f.from] == nil {
					continue
				}
				next := &Affected{Node: *g.nodes[f.from], Distance: at.Distance + 1, Confidence: tier, Via: at.ID}
				reached[f.from] = next
				r.Edges[f.confidence]++
				queue = append(queue, next)
			}
		}
		queue = slices.SortedFunc(maps.Values(reached), byDistance) // for the next tier
	}
}

func byDistance(a, b *Affected) int {
	return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.ID, b.ID))
}

// collect fills the lists of a report.
func (g *Graph) collect(reached map[string]*Affected, r *Report) {
	files := map[string]*AffectedFile{}
	unsafe := map[string]bool{}
	for _, a := range slices.SortedFunc(maps.Values(reached), func(a, b *Affected) int {
		return cmp.Or(cmp.Compare(rank(a.Confidence), rank(b.Confidence)), byDistance(a, b))
	}) {
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
