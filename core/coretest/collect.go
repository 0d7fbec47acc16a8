package coretest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// Patience is how long a test waits for something that must happen. It is long,
// because only a failing test waits that long.
const Patience = 2 * time.Minute

// EventSource is a source of events, such as *core.Session.
type EventSource interface {
	Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error]
}

var _ EventSource = (*core.Session)(nil)

// Collector reads a session's events in a goroutine. It is safe for concurrent
// use.
type Collector struct {
	done chan struct{} // closed when no more events come

	mu     sync.Mutex
	events []event.Event
	err    error
	more   chan struct{} // closed at the next event
}

// Collect reads all events of src, from the first on, until src or the test
// ends. Keep, if not nil, is called for every event, in order, and drops those
// for which it returns false.
func Collect(t testing.TB, src EventSource, keep func(event.Event) bool) *Collector {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &Collector{done: make(chan struct{}), more: make(chan struct{})}
	go c.run(ctx, src, keep)
	t.Cleanup(func() {
		cancel()
		<-c.done
	})
	return c
}

func (c *Collector) run(ctx context.Context, src EventSource, keep func(event.Event) bool) {
	defer close(c.done)
	for e, err := range src.Events(ctx, 0) {
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			return
		}
		if keep != nil && !keep(e) {
			continue
		}
		c.mu.Lock()
		c.events = append(c.events, e)
		close(c.more)
		c.more = make(chan struct{})
		c.mu.Unlock()
	}
}

// Events returns the events so far.
func (c *Collector) Events() []event.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// Drain waits until the source has ended (a session: until it is closed) and
// returns all events. It fails the test if that takes longer than [Patience].
func (c *Collector) Drain(t testing.TB) []event.Event {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		t.Fatalf("the events did not end within %s; is the session closed? Types so far: %v", Patience, Types(c.Events()))
	}
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("reading events: %v", err)
	}
	return c.Events()
}

// Await returns the first event for which match returns true, past or future. It
// returns an error when ctx is done or the events end.
func (c *Collector) Await(ctx context.Context, match func(event.Event) bool) (event.Event, error) {
	for next := 0; ; {
		c.mu.Lock()
		events, more := c.events, c.more
		c.mu.Unlock()
		for ; next < len(events); next++ {
			if match(events[next]) {
				return events[next], nil
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return event.Event{}, ctx.Err()
		case <-c.done:
			if c.mu.Lock(); len(c.events) == next {
				defer c.mu.Unlock()
				return event.Event{}, errors.Join(errors.New("the events ended without the expected one"), c.err)
			}
			c.mu.Unlock()
		}
	}
}

// Wait returns the first event of a type, past or future. It fails the test when
// none comes within [Patience], so it must run in the test's goroutine.
func (c *Collector) Wait(t testing.TB, eventType string) event.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	e, err := c.Await(ctx, func(e event.Event) bool { return e.Body.Type() == eventType })
	if err != nil {
		t.Fatalf("waiting for an event of type %q: %v; types so far: %v", eventType, err, Types(c.Events()))
	}
	return e
}

// Types returns the events' types in order.
func Types(events []event.Event) []string {
	types := make([]string, len(events))
	for i, e := range events {
		types[i] = e.Body.Type()
	}
	return types
}

// Bodies returns the bodies of one Go type in order.
func Bodies[B event.Body](events []event.Event) []B {
	var out []B
	for _, e := range events {
		if b, ok := e.Body.(B); ok {
			out = append(out, b)
		}
	}
	return out
}
