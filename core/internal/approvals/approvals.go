package approvals

import (
	"slices"
	"sync"
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

// Add adds the rules or, without any, the accesses.
func (s *Set) Add(rules, accesses []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, rules...)
	if len(rules) == 0 {
		for _, key := range accesses {
			s.accesses[key] = struct{}{}
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
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

// Has reports whether an access was added.
func (s *Set) Has(access string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.accesses[access]
	return ok
}
