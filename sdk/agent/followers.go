package agent

import (
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

// followers are the functions that get the subagents of a session.
type followers struct {
	mu  sync.Mutex // held while a subagent begins
	all []*func(*core.Session)
}

// newFollowers returns followers with a first one, which may be nil.
func newFollowers(first func(*core.Session)) *followers {
	f := &followers{}
	if first != nil {
		f.all = append(f.all, &first)
	}
	return f
}

// begin makes an open subagent part of its tree, and shows it to the followers.
func (f *followers) begin(child *node, s *core.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	child.open(s)
	for _, see := range f.all {
		(*see)(s)
	}
}

// Subagents calls see with every open subagent of the session, of any depth, and with
// every later one before it starts, until stop is called. See must not block.
func (s *Session) Subagents(see func(*core.Session)) (stop func()) {
	f := s.node.seen
	f.mu.Lock()
	defer f.mu.Unlock()
	s.node.eachChild(see)
	f.all = append(f.all, &see)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = slices.DeleteFunc(f.all, func(one *func(*core.Session)) bool { return one == &see })
	}
}

// eachChild calls see with the open subagents below a node.
func (f *node) eachChild(see func(*core.Session)) {
	f.mu.Lock()
	children := slices.Clone(f.children)
	f.mu.Unlock()
	for _, c := range children {
		see(c.session)
		c.eachChild(see)
	}
}
