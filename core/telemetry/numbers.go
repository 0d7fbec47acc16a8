package telemetry

import (
	"maps"
	"slices"
	"sync"
)

// Number is read when it is wanted, such as how many inputs wait. Those with the same
// name and attributes are added up.
type Number struct {
	Name       string
	Attributes []Attr
	Value      int64
}

// Numbers are what returns numbers. The zero value has none. It is safe for concurrent use.
type Numbers struct {
	mu    sync.Mutex
	last  int
	reads map[int]func() []Number
}

// Observe adds what returns numbers, until stop is called. A call may still be under
// way then.
func (n *Numbers) Observe(read func() []Number) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.reads == nil {
		n.reads = map[int]func() []Number{}
	}
	n.last++
	id := n.last
	n.reads[id] = read
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.reads, id)
	}
}

// Read returns all numbers as they are now.
func (n *Numbers) Read() (list []Number) {
	n.mu.Lock()
	reads := slices.Collect(maps.Values(n.reads))
	n.mu.Unlock()
	for _, read := range reads {
		list = append(list, read()...)
	}
	return list
}
