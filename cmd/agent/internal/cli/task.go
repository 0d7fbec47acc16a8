package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// format is how a task's result is printed.
type format string

const (
	formatText   format = "text"        // the answer on stdout, the work on stderr
	formatJSON   format = "json"        // one object: the result event
	formatStream format = "stream-json" // every event on a line of its own
)

// task is one prompt run to its end without a person at the keyboard: what
// exec does, and demo with a script for a model and an answerer for a person.
type task struct {
	*streams
	format  format
	verbose bool
	// narrate prints text and work in one stream on stdout, as for a person
	// who watches.
	narrate bool
	forget  bool // the record is removed afterwards

	agent    agent.Options
	place    workplace
	session  agent.SessionOptions
	mode     string // permission mode, for the record
	scripted bool
	prompt   string
}

// run runs the task. The error says why it could not be brought to its end;
// the outcome says how far it came.
func (t *task) run(ctx context.Context) (core.Outcome, error) {
	a, err := t.place.openAgent(ctx, t.agent)
	if err != nil {
		return core.Outcome{}, t.failed(err)
	}
	defer a.Close()
	t.reportPlugins(a)
	if err := t.ready(ctx, a); err != nil {
		return core.Outcome{}, t.failed(err)
	}
	if t.prompt, err = pluginPrompt(ctx, a, t.prompt); err != nil {
		return core.Outcome{}, t.failed(err)
	}
	view := &oneAtATime{view: t.view()}
	var reading sync.WaitGroup
	if t.format == formatStream { // every event of subagents, too
		t.session.OnSubagent = func(child *core.Session) {
			reading.Go(func() {
				for e, err := range child.Events(context.WithoutCancel(ctx), 0) {
					if err != nil {
						return
					}
					view.show(e)
				}
			})
		}
	}
	s, err := a.NewSession(ctx, t.session)
	if err != nil {
		return core.Outcome{}, t.failed(err)
	}
	defer s.Close()

	view.begin(t.initEvent(ctx, a, s))
	reading.Go(func() {
		// The sequence ends when the session is closed.
		for e, err := range s.Events(context.WithoutCancel(ctx), s.Opened()-1) {
			if err != nil {
				fmt.Fprintf(t.err, "agent: the session's events cannot be read any more: %v\n", err)
				return
			}
			view.show(e)
		}
	})
	watched, stop := interrupts(ctx, t.err, func() { s.Cancel("interrupted by Ctrl-C") })
	out, err := s.Submit(watched, core.TextInput(t.prompt))
	if sig := stop(); sig != nil {
		err = sig
	}
	closed := s.Close()
	reading.Wait()
	if shown := view.end(resultEvent(s, out, err)); err == nil {
		err = shown
	}
	return out, errors.Join(err, closed)
}

// ready waits for the MCP servers that are required, and names those whose tools
// are not known in time.
func (t *task) ready(ctx context.Context, a *agent.Agent) error {
	watched, stop := interrupts(ctx, io.Discard, func() {})
	missing, err := a.Ready(watched)
	if sig := stop(); sig != nil {
		return sig
	}
	for _, name := range missing {
		fmt.Fprintf(t.err, "agent: the tools of the MCP server %s are not known yet and may come late; to read them now: agent mcp test %s\n", name, name)
	}
	return err
}

// failed reports an error from before there was a session.
func (t *task) failed(err error) error {
	if t.format != formatText {
		v := t.view()
		_ = v.end(event.Event{V: event.Version, ID: "result", Time: time.Now(), Body: result(core.Outcome{Stop: core.StopError}, err)})
	}
	return err
}

// view shows a task's events in its format. Its methods are called one at a
// time, begin and end once.
type view interface {
	begin(init event.Event)
	show(e event.Event)
	end(result event.Event) error
}

// oneAtATime is a view for several sessions at once.
type oneAtATime struct {
	view
	mu sync.Mutex
}

func (v *oneAtATime) show(e event.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.view.show(e)
}

func (t *task) view() view {
	switch t.format {
	case formatStream:
		return &streamView{out: json.NewEncoder(t.out)}
	case formatJSON:
		return &jsonView{out: t.out}
	}
	return newTextView(t)
}

func (t *task) initEvent(ctx context.Context, a *agent.Agent, s *agent.Session) event.Event {
	info := t.session.Provider.Info()
	body := event.Init{
		Agent: buildVersion(), Cwd: a.Env().Info().Dir, Provider: info.Name, Model: t.session.Model, Profile: t.session.Profile.Name,
		Mode: t.mode, Log: s.Log(), Scripted: t.scripted,
	}
	if body.Model == "" {
		body.Model = info.Model
	}
	if p, ok := a.Policy().(*permissions.Policy); ok {
		body.Mode = string(p.Mode())
	}
	if snapshot, _ := a.ToolsOf(t.session.Profile.Name).Snapshot(ctx); snapshot != nil {
		body.Tools = snapshot.Names()
	}
	return event.Event{V: event.Version, ID: s.ID() + "-init", Time: time.Now(), Session: s.ID(), Body: body}
}

func resultEvent(s *agent.Session, out core.Outcome, err error) event.Event {
	return event.Event{V: event.Version, ID: s.ID() + "-result", Time: time.Now(), Session: s.ID(), Tokens: out.Usage.Total(), Body: result(out, err)}
}

func result(out core.Outcome, err error) event.Result {
	r := event.Result{
		Outcome: string(out.Stop), ExitCode: outcomeCode(out, err), Text: out.Text, Rounds: out.Rounds,
		DurationMS: out.Duration.Milliseconds(), Usage: out.Usage, Denied: out.Denied,
	}
	if r.Denied == nil {
		r.Denied = []event.Permission{}
	}
	if out.Priced && out.Cost > 0 {
		r.CostUSD = &out.Cost
	}
	if err != nil {
		e := model.AsError(err)
		r.Error = &event.Error{Code: string(e.Code), Message: err.Error(), Retryable: e.Retryable()}
	}
	return r
}

// streamView prints every event as a line of JSON.
type streamView struct {
	out *json.Encoder
	err error
}

func (v *streamView) begin(init event.Event) { v.show(init) }

func (v *streamView) show(e event.Event) {
	if v.err == nil {
		v.err = v.out.Encode(e)
	}
}

func (v *streamView) end(result event.Event) error {
	v.show(result)
	return v.err
}

// jsonView prints the result event and nothing else.
type jsonView struct{ out io.Writer }

func (*jsonView) begin(event.Event) {}
func (*jsonView) show(event.Event)  {}

func (v *jsonView) end(result event.Event) error {
	return printJSON(v.out, result)
}
