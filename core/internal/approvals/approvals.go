package approvals

import (
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/event"
)

// Set is what is approved: rules or, where no rule can, accesses by their key. It
// is safe for concurrent use.
type Set struct {
	mu       sync.Mutex
	accesses map[string]struct{}
	rules    []string
	changed  chan struct{} // closed by the next Add
}

// New returns an empty set.
func New() *Set { return &Set{accesses: map[string]struct{}{}, changed: make(chan struct{})} }

// Add adds rules or, without any, the accesses of a tool.
func (s *Set) Add(tool string, rules []string, accesses []event.Access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, rules...)
	if len(rules) == 0 {
		for _, a := range accesses {
			s.accesses[key(tool, a)] = struct{}{}
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Restore returns a function that adds what the records of a session say was approved
// for it: not those that a fork has of its original, and not what was approved in
// another directory.
func (s *Set) Restore(session, dir string) func(event.Event) {
	here := false
	return func(e event.Event) {
		if e.Session != session {
			return
		}
		switch b := e.Body.(type) {
		case event.SessionStart:
			here = b.Cwd == dir
		case event.Permission:
			if here && b.Decision == "allow" && b.Choice == "session" {
				s.Add(b.Tool, b.Rules, b.Accesses)
			}
		}
	}
}

// Changed returns a channel that the next Add closes.
func (s *Set) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Rules returns the rules.
func (s *Set) Rules() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.rules)
}

// Has reports whether an access of a tool was added.
func (s *Set) Has(tool string, a event.Access) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.accesses[key(tool, a)]
	return ok
}

func key(tool string, a event.Access) string {
	key := strings.Join([]string{tool, a.Scope, a.Resource, strings.Join(a.Argv, "\x01")}, "\x00")
	if a.Recursive {
		key += "\x00r"
	}
	return key
}
