package graph

// reach finds which tests can run which code. Unlike a wave, which follows a change to
// everything that may call it, it takes a method behind an interface only as called by
// tests that also reach its type: a value of a type that a test does not reach cannot be
// there (rapid type analysis; D. Bacon, 1996). It does so for all tests at once, with a
// bit for each.
type reach struct {
	g     *Graph
	uses  []uses
	nodes []reached
	at    []int32 // by the number of a node in the graph: 1 + its index in nodes
	queue []int32
	words int
	bits  []uint64 // not yet used
}

// reached is a node that a test reaches.
type reached struct {
	number int32
	queued bool
	tests  []uint64
}

// uses are what a node depends on, by number.
type uses struct {
	next  []int32
	calls []dispatch // the methods behind an interface's method, and behind others of this type
}

// dispatch is a call of an interface's method that leads to a method of a type.
type dispatch struct{ from, owner, to int32 }

// reaching returns a bit for each of the tests: whether it can run any of the changed
// nodes. Both are given by number.
func (g *Graph) reaching(tests, changed []int32) []uint64 {
	r := &reach{g: g, uses: g.allUses(), at: make([]int32, len(g.vertices)), words: (len(tests) + 63) / 64}
	for i, number := range tests {
		n := r.index(number)
		r.nodes[n].tests[i/64] |= 1 << (i % 64)
		r.push(n)
	}
	for len(r.queue) > 0 {
		n := r.queue[0]
		r.queue = r.queue[1:]
		r.nodes[n].queued = false
		r.spread(r.nodes[n])
	}
	found := make([]uint64, r.words)
	for _, number := range changed {
		for i, word := range r.tests(number) {
			found[i] |= word
		}
	}
	return found
}

// spread takes the tests that reach a node to what it depends on.
func (r *reach) spread(at reached) {
	for _, to := range r.uses[at.number].next {
		r.add(r.index(to), at.tests, nil)
	}
	for _, d := range r.uses[at.number].calls {
		if from, owner := r.tests(d.from), r.tests(d.owner); from != nil && owner != nil {
			r.add(r.index(d.to), from, owner)
		}
	}
}

// tests returns the bits of the tests that reach a node, nil if none does.
func (r *reach) tests(number int32) []uint64 {
	if at := r.at[number]; at != 0 {
		return r.nodes[at-1].tests
	}
	return nil
}

// index returns the index of a node.
func (r *reach) index(number int32) int32 {
	if r.at[number] == 0 {
		if len(r.bits) < r.words {
			r.bits = make([]uint64, 1024*r.words)
		}
		r.nodes = append(r.nodes, reached{number: number, tests: r.bits[:r.words:r.words]})
		r.bits = r.bits[r.words:]
		r.at[number] = int32(len(r.nodes))
	}
	return r.at[number] - 1
}

func (r *reach) push(n int32) {
	if !r.nodes[n].queued {
		r.nodes[n].queued = true
		r.queue = append(r.queue, n)
	}
}

// add says that tests reach a node, of these only those that reach its type, too.
func (r *reach) add(n int32, tests, owner []uint64) {
	grown, all := false, r.nodes[n].tests
	for i, word := range tests {
		if owner != nil {
			word &= owner[i]
		}
		if word&^all[i] != 0 {
			all[i] |= word
			grown = true
		}
	}
	if grown {
		r.push(n)
	}
}

// allUses returns what each node depends on. It is made once after each change.
func (g *Graph) allUses() []uses {
	g.usesMu.Lock()
	defer g.usesMu.Unlock()
	if g.uses == nil {
		g.uses = make([]uses, len(g.vertices))
		for n := range g.vertices {
			g.addUses(int32(n))
		}
	}
	return g.uses
}

func (g *Graph) addUses(n int32) {
	for _, ref := range g.vertices[n].out {
		f := ref.fact()
		to := g.vertices[ref.other].node
		if to == nil || !f.kind.causes() || f.dispatches() && to.Kind != Method {
			continue
		}
		owner := int32(-1)
		if f.dispatches() {
			owner = g.owner(ref.other)
		}
		if owner < 0 {
			g.uses[n].next = append(g.uses[n].next, ref.other)
			continue
		}
		d := dispatch{n, owner, ref.other}
		g.uses[n].calls = append(g.uses[n].calls, d)
		g.uses[owner].calls = append(g.uses[owner].calls, d)
	}
}

// dispatches reports whether an edge leads from an interface of Go to what implements it.
func (f *fact) dispatches() bool { return f.kind == Implement && f.rule == methodSet }

// owner returns the number of the type that a method of Go belongs to, or -1.
func (g *Graph) owner(method int32) int32 {
	for _, ref := range g.vertices[method].in {
		if n := g.vertices[ref.other].node; n != nil && ref.fact().kind == Contains && (n.Kind == Class || n.Kind == Interface) {
			return ref.other
		}
	}
	return -1
}
