package graph

// reach finds which tests can run which code. Unlike a wave, which follows a change to
// everything that may call it, it takes a method behind an interface only as called by
// tests that also reach its type: a value of a type that a test does not reach cannot be
// there (rapid type analysis; D. Bacon, 1996). It does so for all tests at once, with a
// bit for each.
type reach struct {
	g       *Graph
	nodes   []reached
	ids     []string
	numbers map[string]int
	queue   []int
	words   int
}

// reached is a node that a test reaches.
type reached struct {
	tests  []uint64
	next   []int      // what it depends on
	calls  []dispatch // the methods behind an interface's method, and behind others of this type
	known  bool       // next and calls are set
	queued bool
}

// dispatch is a call of an interface's method that leads to a method of a type.
type dispatch struct{ from, owner, to int }

// reaching returns those of the tests that can run any of the changed nodes.
func (g *Graph) reaching(tests, changed []string) map[string]bool {
	r := &reach{g: g, numbers: map[string]int{}, words: (len(tests) + 63) / 64}
	for i, id := range tests {
		n := r.number(id)
		r.nodes[n].tests[i/64] |= 1 << (i % 64)
		r.push(n)
	}
	for len(r.queue) > 0 {
		n := r.queue[0]
		r.queue = r.queue[1:]
		r.nodes[n].queued = false
		r.look(n)
		for _, to := range r.nodes[n].next {
			r.add(to, r.nodes[n].tests, nil)
		}
		for _, d := range r.nodes[n].calls {
			r.add(d.to, r.nodes[d.from].tests, r.nodes[d.owner].tests)
		}
	}
	found := map[string]bool{}
	for _, id := range changed {
		if n, ok := r.numbers[id]; ok {
			for i, test := range tests {
				if r.nodes[n].tests[i/64]&(1<<(i%64)) != 0 {
					found[test] = true
				}
			}
		}
	}
	return found
}

func (r *reach) number(id string) int {
	n, ok := r.numbers[id]
	if !ok {
		n = len(r.nodes)
		r.numbers[id] = n
		r.ids = append(r.ids, id)
		r.nodes = append(r.nodes, reached{tests: make([]uint64, r.words)})
	}
	return n
}

func (r *reach) push(n int) {
	if !r.nodes[n].queued {
		r.nodes[n].queued = true
		r.queue = append(r.queue, n)
	}
}

// add says that tests reach a node, of these only those that reach its type, too.
func (r *reach) add(n int, tests, owner []uint64) {
	grown := false
	for i, word := range tests {
		if owner != nil {
			word &= owner[i]
		}
		if have := &r.nodes[n].tests[i]; word&^*have != 0 {
			*have |= word
			grown = true
		}
	}
	if grown {
		r.push(n)
	}
}

// look lists what a node depends on, once.
func (r *reach) look(n int) {
	if r.nodes[n].known {
		return
	}
	r.nodes[n].known = true
	for _, ref := range r.g.out[r.ids[n]] {
		f := ref.fact()
		to := r.g.nodes[f.to]
		switch {
		case !causes[f.kind] || to == nil:
		case !f.dispatches():
			r.nodes[n].next = append(r.nodes[n].next, r.number(f.to))
		case to.Kind == Method:
			if owner := r.g.owner(f.to); owner != "" {
				d := dispatch{n, r.number(owner), r.number(f.to)}
				r.nodes[n].calls = append(r.nodes[n].calls, d)
				r.nodes[d.owner].calls = append(r.nodes[d.owner].calls, d)
			} else {
				r.nodes[n].next = append(r.nodes[n].next, r.number(f.to))
			}
		}
	}
}

// dispatches reports whether an edge leads from an interface of Go to what implements it.
func (f *fact) dispatches() bool { return f.kind == Implement && f.rule == methodSet }

// owner returns the type that a method of Go belongs to, or "".
func (g *Graph) owner(id string) string {
	for _, ref := range g.in[id] {
		if f := ref.fact(); f.kind == Contains && g.nodes[f.from] != nil && (g.nodes[f.from].Kind == Class || g.nodes[f.from].Kind == Interface) {
			return f.from
		}
	}
	return ""
}
