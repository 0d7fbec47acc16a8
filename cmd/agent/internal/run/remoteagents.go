package run

import (
	"context"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/event"
)

// subagentsEnd is how long the end of subagents is waited for behind the result of their
// session: it is recorded when that is closed, unless the service dies at that moment.
const subagentsEnd = 10 * time.Second

// subagents are those of a remote session whose events are shown. The zero value has none.
type subagents struct {
	mu      sync.Mutex
	stop    []context.CancelFunc
	cursors map[string]uint64 // of those that were followed, by ID
	active  map[string]bool
	running sync.WaitGroup
}

// follow shows the events of a subagent since the session was opened, until it is closed.
func (s *subagents) follow(ctx context.Context, t *remoteTask, id string, view *oneAtATime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[id] {
		return
	}
	if s.active == nil {
		s.active, s.cursors = map[string]bool{}, map[string]uint64{}
	}
	s.active[id] = true
	ctx, stop := context.WithCancel(ctx)
	s.stop = append(s.stop, stop)
	since, cursor := t.opened, s.cursors[id]
	s.running.Go(func() {
		for r, err := range t.client.SubagentEvents(ctx, t.session, id, cursor) {
			if err != nil {
				break
			}
			cursor = max(cursor, r.Cursor)
			if r.Event.Time.Before(since) {
				continue
			}
			view.show(r.Event)
			switch b := r.Event.Body.(type) {
			case event.SubagentStart:
				s.follow(ctx, t, b.Child, view)
			case event.SessionEnd:
				s.left(id, cursor)
				return
			}
		}
		s.left(id, cursor)
	})
}

func (s *subagents) left(id string, cursor uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, id)
	s.cursors[id] = cursor
}

// end waits until all are closed, if they are going to be, and stops to follow them.
func (s *subagents) end(closing bool) {
	stop := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, stop := range s.stop {
			stop()
		}
	}
	if !closing {
		stop()
	}
	late := time.AfterFunc(subagentsEnd, stop)
	s.running.Wait()
	late.Stop()
	stop()
}
