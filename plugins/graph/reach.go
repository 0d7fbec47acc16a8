package graph

// reach finds which tests can run what changed. Unlike a wave, which follows a change to
// everything that may call it, it takes a method behind an interface only as called by
// tests that also reach its type: a value of a type that a test does not reach cannot be
// there (rapid type analysis; D. Bacon, 1996). It does so for all tests at once, with a
// bit for each, and only for the nodes that count: those that lead to what changed, and
// to the types of methods among them.
type reach struct {
	g     *Graph
	nodes []reached
	at    []int32 // by the number of a node in the graph: 1 + its index in nodes
	order []int32 // of nodes: users come first, but for cycles
	users []user
	words int
	bits  []uint64 // the tests that reach each node
}

// reached is a node that leads to what changed.
type reached struct {
	number     int32
	first, end int32 // its users; first is -1 before its visit
	next       int32 // the first of them that was not visited
	grown      int32 // the time when tests were last added to it; 0 for never
	looked     int32 // the time when it last looked at its users
}

// user is a node that uses another. If it does so through an interface, only those tests
// count that reach the owner, too. Both are indices of nodes; there may be no owner (-1).
type user struct{ from, owner int32 }

// reaching returns a bit for each of the tests: whether it can run any of the changed
// nodes. Both are given by number.
func (g *Graph) reaching(tests, changed []int32) []uint64 {
	r := &reach{g: g, at: make([]int32, len(g.vertices)), words: (len(tests) + 63) / 64}
	for _, number := range changed {
		r.visit(r.index(number))
	}
	r.bits = make([]uint64, r.words*len(r.nodes))
	for i, number := range tests {
		if at := r.at[number]; at != 0 {
			r.nodes[at-1].grown = 1
			r.tests(at - 1)[i/64] |= 1 << (i % 64)
		}
	}
	r.spread()
	found := make([]uint64, r.words)
	for _, number := range changed {
		for i, word := range r.tests(r.at[number] - 1) {
			found[i] |= word
		}
	}
	return found
}

// index returns the index of a node.
func (r *reach) index(number int32) int32 {
	if r.at[number] == 0 {
		r.nodes = append(r.nodes, reached{number: number, first: -1})
		r.at[number] = int32(len(r.nodes))
	}
	return r.at[number] - 1
}

// tests returns the bits of the tests that reach a node.
func (r *reach) tests(n int32) []uint64 { return r.bits[int(n)*r.words:][:r.words] }

// visit puts a node into the order, after those that lead to it.
func (r *reach) visit(root int32) {
	stack := r.enter(nil, root)
	for len(stack) > 0 {
		n := &r.nodes[stack[len(stack)-1]]
		if n.next == n.end {
			r.order = append(r.order, stack[len(stack)-1])
			stack = stack[:len(stack)-1]
			continue
		}
		u := r.users[n.next]
		n.next++
		stack = r.enter(stack, u.from)
		if u.owner >= 0 {
			stack = r.enter(stack, u.owner)
		}
	}
}

// enter begins the visit of a node, unless it was visited.
func (r *reach) enter(stack []int32, n int32) []int32 {
	if r.nodes[n].first >= 0 {
		return stack
	}
	first := int32(len(r.users))
	r.addUsers(r.nodes[n].number)
	r.nodes[n].first, r.nodes[n].next, r.nodes[n].end = first, first, int32(len(r.users))
	return append(stack, n)
}

// addUsers lists what uses a node.
func (r *reach) addUsers(number int32) {
	v := &r.g.vertices[number]
	owner, known := int32(-1), false
	for _, ref := range v.in {
		if ref.tier < 0 || r.g.vertices[ref.other].node == nil || ref.dispatches && v.node.Kind != Method {
			continue
		}
		u := user{from: r.index(ref.other), owner: -1}
		if ref.dispatches {
			if !known {
				owner, known = r.g.owner(number), true
			}
			if owner >= 0 {
				u.owner = r.index(owner)
			}
		}
		r.users = append(r.users, u)
	}
}

// spread takes the tests that reach nodes to what these use, until nothing is added. A
// node looks only at users to which tests were added since it last did.
func (r *reach) spread() {
	now := int32(1)
	for more := true; more; {
		more = false
		for _, n := range r.order {
			now++
			node := &r.nodes[n]
			last := node.looked
			node.looked = now
			for _, u := range r.users[node.first:node.end] {
				fresh := r.nodes[u.from].grown > last || u.owner >= 0 && r.nodes[u.owner].grown > last
				if fresh && r.add(n, u) {
					node.grown, more = now, true
				}
			}
		}
	}
}

// add adds the tests that reach a user to those that reach what it uses.
func (r *reach) add(n int32, u user) (grown bool) {
	all, from := r.tests(n), r.tests(u.from)
	if u.owner < 0 {
		for i, word := range from {
			grown = grown || word&^all[i] != 0
			all[i] |= word
		}
		return grown
	}
	owner := r.tests(u.owner)
	for i, word := range from {
		word &= owner[i]
		grown = grown || word&^all[i] != 0
		all[i] |= word
	}
	return grown
}

// dispatches reports whether an edge leads from an interface of Go to what implements it.
func (f *fact) dispatches() bool { return f.kind == Implement && f.rule == methodSet }

// owner returns the number of the type that a method of Go belongs to, or -1.
func (g *Graph) owner(method int32) int32 {
	for _, ref := range g.vertices[method].in {
		if n := g.vertices[ref.other].node; n != nil && g.fact(ref).kind == Contains && (n.Kind == Class || n.Kind == Interface) {
			return ref.other
		}
	}
	return -1
}
