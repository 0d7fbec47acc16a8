package agent

import (
	"context"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// Telemetry learns what sessions do, such as an otlp.Exporter of core/telemetry/otlp.
// It is used concurrently, and must not block.
type Telemetry interface {
	// Event takes an event of a session or a subagent, in their order.
	Event(e event.Event)
	// Context returns the context in which an input is processed, such as one whose
	// trace is handed on to MCP servers, plugins and commands.
	Context(ctx context.Context) context.Context
	// Close sends what is left.
	Close() error
}

// reports passes the events of sessions on to a [Telemetry].
type reports struct {
	ctx     context.Context
	stop    context.CancelFunc
	readers sync.WaitGroup
	waiting []event.Body // until there is a session; guarded by the agent's mutex
}

// reportWithin limits the wait for sessions that the host has not closed.
const reportWithin = time.Second

// open prepares for sessions. What telemetry has to say becomes a warning of them.
func (r *reports) open(a *Agent) {
	r.ctx, r.stop = context.WithCancel(context.Background())
	if t, ok := a.opts.Telemetry.(interface{ OnWarning(func(string) bool) }); ok {
		t.OnWarning(func(message string) bool {
			return a.noteAll(func(s *core.Session) { s.Warn(r.ctx, "TELEMETRY", message) })
		})
	}
}

// report passes the events of a session on until it is closed.
func (a *Agent) report(s *core.Session) {
	t := a.opts.Telemetry
	if t == nil {
		return
	}
	a.reports.readers.Go(func() {
		for e, err := range s.Events(a.reports.ctx, s.Opened()-1) {
			if err != nil {
				return
			}
			t.Event(e)
		}
	})
}

// note adds what happened before there was a session. The caller holds the agent's
// mutex.
func (r *reports) note(s *core.Session) {
	for _, body := range r.waiting {
		s.Note(r.ctx, body)
	}
	r.waiting = nil
}

// close waits until all events are passed on.
func (r *reports) close(t Telemetry) error {
	late := time.AfterFunc(reportWithin, r.stop)
	r.readers.Wait()
	late.Stop()
	r.stop()
	if t == nil {
		return nil
	}
	return t.Close()
}

// noteAll calls f for the sessions that are open, without subagents, and reports
// whether there are any.
func (a *Agent) noteAll(f func(*core.Session)) bool {
	a.mu.Lock()
	var open []*core.Session
	for _, n := range a.nodes {
		n.mu.Lock()
		if n.parent == nil && n.session != nil {
			open = append(open, n.session)
		}
		n.mu.Unlock()
	}
	a.mu.Unlock()
	for _, s := range open {
		f(s)
	}
	return len(open) > 0
}

// sourceStarted returns what records that a plugin or an MCP server was started.
func (a *Agent) sourceStarted(kind string) func(name string, took time.Duration, err error) {
	return func(name string, took time.Duration, err error) {
		body := event.SourceStarted{Kind: kind, Name: name, DurationMS: took.Milliseconds()}
		if err != nil {
			body.Error = err.Error()
		}
		if a.noteAll(func(s *core.Session) { s.Note(a.reports.ctx, body) }) {
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.nodes) == 0 {
			a.reports.waiting = append(a.reports.waiting, body)
		}
	}
}

// Telemetry returns what learns of the sessions; nil if nothing does.
func (a *Agent) Telemetry() Telemetry { return a.opts.Telemetry }
