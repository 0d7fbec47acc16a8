package agent

import (
	"context"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/telemetry"
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

// Observer is a [Telemetry] that also has metrics of the host: it reads numbers whenever
// it sends metrics.
type Observer interface {
	Observe(read func() []telemetry.Number) (stop func())
}

// reports passes the events of sessions on to a [Telemetry].
type reports struct {
	ctx     context.Context
	stop    context.CancelFunc
	readers sync.WaitGroup
	waiting []event.Body    // until there is a session; guarded by the agent's mutex
	starts  map[start]int64 // guarded by the agent's mutex
}

// start is that of a plugin or an MCP server.
type start struct {
	kind, name string
	failed     bool
}

// reportWithin limits the wait for sessions that the host has not closed.
const reportWithin = time.Second

// open prepares for sessions. What telemetry has to say becomes a warning of them.
func (r *reports) open(a *Agent) {
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.starts = map[start]int64{}
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
		a.mu.Lock()
		a.reports.starts[start{kind, name, err != nil}]++
		a.mu.Unlock()
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

// observe adds numbers of the agent to the metrics, until [Agent.Close].
func (a *Agent) observe() {
	if o, ok := a.opts.Telemetry.(Observer); ok {
		o.Observe(a.numbers)
	}
}

// numbers returns which plugins and MCP servers run, and how often they were started.
func (a *Agent) numbers() (list []telemetry.Number) {
	add := func(name string, value int64, kind, source string, more ...telemetry.Attr) {
		list = append(list, telemetry.Number{Name: name, Value: value, Attributes: append(more,
			telemetry.Attr{Key: "agent.source.kind", Value: kind}, telemetry.Attr{Key: "agent.source.name", Value: source})})
	}
	running := func(kind string, all map[string]bool) {
		for name, runs := range all {
			n := int64(0)
			if runs {
				n = 1
			}
			add("agent.source.running", n, kind, name)
		}
	}
	if a.plugins != nil {
		running("plugin", a.plugins.Running())
	}
	if a.mcp != nil {
		running("mcp", a.mcp.Running())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for s, n := range a.reports.starts {
		if s.failed {
			add("agent.source.starts", n, s.kind, s.name, telemetry.Attr{Key: "error.type", Value: "START_FAILED"})
		} else {
			add("agent.source.starts", n, s.kind, s.name)
		}
	}
	return list
}

// Observe adds numbers of the session's driver to the metrics, until stop is called.
func (s *Session) Observe(read func() []telemetry.Number) (stop func()) {
	if o, ok := s.agent.opts.Telemetry.(Observer); ok {
		return o.Observe(read)
	}
	return func() {}
}
