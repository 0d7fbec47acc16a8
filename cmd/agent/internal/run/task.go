package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
)

// format is how a task's events are printed.
type format string

const (
	FormatText   format = "text"        // the answer on stdout, everything else on stderr
	FormatJSON   format = "json"        // one object: the result event
	FormatStream format = "stream-json" // one event per line
)

// Task is one prompt, run to completion non-interactively: by exec, and by demo
// with a scripted model and scripted approvals.
type Task struct {
	*cmdutil.IO
	Format  format
	verbose bool
	Narrate bool   // print text and calls on stdout, in one stream
	Forget  bool   // the session is deleted afterwards
	on      string // URL of the service that has the session

	Agent    agent.Options
	place    setup.Environment
	home     string // of the agent's files
	userHome string
	Session  agent.SessionOptions
	Mode     string // permission mode, for the init event
	// Otherwise is the model outside mode plan, as PROVIDER/MODEL.
	Otherwise string
	Scripted  bool
	Prompt    string // empty continues a parked or unfinished session
	reply     *reply // to its question; nil = none
}

// Run runs the task. With an error, the outcome is how far the task came.
func (t *Task) Run(ctx context.Context) (core.Outcome, error) {
	view := &oneAtATime{view: t.newView()}
	var reading sync.WaitGroup
	if t.Format == FormatStream {
		t.Session.OnSubagent = view.subagents(ctx, &reading)
	}
	var init event.Event
	h := host.New(t.Agent.Home, func(ctx context.Context, _ host.Open, _ core.Asker) (opened host.Opened, err error) {
		opened, init, err = t.open(ctx)
		return opened, err
	})
	defer h.Close()
	s, err := h.Open(ctx, host.Open{ID: t.Session.Resume, Dir: t.Agent.Dir})
	if err != nil {
		return core.Outcome{}, t.fail(err)
	}
	todo, err := t.todo(s)
	if err != nil {
		return core.Outcome{}, t.fail(err)
	}
	view.begin(init)
	reading.Go(func() {
		// The sequence ends when the session is closed.
		for e, err := range s.Events(context.WithoutCancel(ctx), s.Past()) {
			if err != nil {
				fmt.Fprintf(t.Err, "agent: reading the session's events: %v\n", err)
				return
			}
			if _, ok := e.Body.(event.Result); !ok { // it is shown in the end, with the exit code
				view.show(e)
			}
		}
	})
	quiet := view.tick()
	out, err := t.drive(ctx, s, todo)
	closed := h.Close()
	reading.Wait()
	quiet()
	if shown := view.end(resultEvent(s, out, err)); err == nil {
		err = shown
	}
	return out, errors.Join(err, closed)
}

// open opens the agent and the session. It returns the init event, too.
func (t *Task) open(ctx context.Context) (opened host.Opened, init event.Event, err error) {
	a, err := t.place.OpenAgent(ctx, t.Agent)
	if err != nil {
		return opened, init, err
	}
	defer func() {
		if err != nil {
			_ = a.Close()
		}
	}()
	setup.ReportPlugins(t.IO, a)
	if err := t.ready(ctx, a); err != nil {
		return opened, init, err
	}
	if t.Prompt != "" {
		if t.Prompt, err = setup.PluginPrompt(ctx, a, t.Prompt); err != nil {
			return opened, init, err
		}
	}
	s, err := a.NewSession(ctx, t.Session)
	if err != nil {
		return opened, init, err
	}
	setup.WarnUnrecorded(ctx, s, t.Agent.Home, t.Session.Ephemeral)
	setup.WarnIncomplete(t.IO, t.Agent.Skills.Library)
	return host.Opened{Session: s, Close: a.Close}, t.initEvent(ctx, a, s), nil
}

// subagents returns a function that shows the events of a subagent until it ends.
func (v *oneAtATime) subagents(ctx context.Context, reading *sync.WaitGroup) func(*core.Session) {
	return func(child *core.Session) {
		reading.Go(func() {
			for e, err := range child.Events(context.WithoutCancel(ctx), child.Opened()-1) {
				if err != nil {
					return
				}
				v.show(e)
			}
		})
	}
}

// drive carries out what there is to do. The first Ctrl-C cancels it, the next one and
// other signals close the session.
func (t *Task) drive(ctx context.Context, s *host.Session, todo host.Command) (out core.Outcome, err error) {
	watched, stop := cmdutil.Interrupts(ctx, t.Err, func() {
		_, _ = s.Do(ctx, host.Command{Type: "cancel", Reach: "model", Reason: "interrupted by Ctrl-C"})
	})
	closing := context.AfterFunc(watched, func() { _ = s.Close() })
	if out.Stop = core.StopParked; todo.Type != "" {
		out, err = s.Run(context.WithoutCancel(ctx), todo)
	}
	closing()
	if sig := stop(); sig != nil {
		err = sig
	}
	return out, err
}

// ready waits for required MCP servers, and reports those whose tools are not
// known in time.
func (t *Task) ready(ctx context.Context, a *agent.Agent) error {
	watched, stop := cmdutil.Interrupts(ctx, io.Discard, func() {})
	missing, err := a.Ready(watched)
	if sig := stop(); sig != nil {
		return sig
	}
	for _, name := range missing {
		fmt.Fprintf(t.Err, "agent: the tools of MCP server %s are not known yet and may arrive late; to load them now: agent mcp test %s\n", name, name)
	}
	if host := a.MCP(); host != nil {
		skipped := host.Skipped()
		for _, name := range cmdutil.SortedKeys(skipped) {
			fmt.Fprintf(t.Err, "agent: MCP server %s: %s left out; why: agent mcp get %s\n", name, display.Plural(skipped[name], "tool"), name)
		}
	}
	return err
}

// fail prints the result of a task that failed before the session was open, and
// returns err.
func (t *Task) fail(err error) error {
	if t.Format != FormatText {
		v := t.newView()
		_ = v.end(event.Event{V: event.Version, ID: "result", Time: time.Now(), Body: result(core.Outcome{Stop: core.StopError}, err)})
	}
	return err
}

// view prints a task's events. Calls do not overlap; begin and end are called
// once.
type view interface {
	begin(init event.Event)
	show(e event.Event)
	end(result event.Event) error
}

// oneAtATime is a view that may be called concurrently.
type oneAtATime struct {
	view
	mu sync.Mutex
}

func (v *oneAtATime) show(e event.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.view.show(e)
}

// tick updates the view every second, until stop is called.
func (v *oneAtATime) tick() (stop func()) {
	ticking, ok := v.view.(interface{ tick(now time.Time) })
	if !ok {
		return func() {}
	}
	ticker, done, ended := time.NewTicker(time.Second), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				v.mu.Lock()
				ticking.tick(now)
				v.mu.Unlock()
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-ended
	}
}

func (t *Task) newView() view {
	switch t.Format {
	case FormatStream:
		return &streamView{out: json.NewEncoder(t.Out)}
	case FormatJSON:
		return &jsonView{out: t.Out}
	}
	return newTextView(t)
}

func (t *Task) initEvent(ctx context.Context, a *agent.Agent, s *agent.Session) event.Event {
	info := t.Session.Provider.Info()
	body := event.Init{
		Agent: cmdutil.Version(), Cwd: a.Env().Info().Dir, Provider: info.Name, Model: t.Session.Model, Profile: t.Session.Profile.Name,
		Mode: t.Mode, Log: s.Log(), Scripted: t.Scripted,
	}
	if body.Model == "" {
		body.Model = info.Model
	}
	if p, ok := a.Policy().(*permissions.Policy); ok {
		body.Mode = string(p.Mode())
	}
	if snapshot, _ := a.ToolsOf(t.Session.Profile.Name).Snapshot(ctx); snapshot != nil {
		body.Tools = snapshot.Names()
	}
	return event.Event{V: event.Version, ID: s.ID() + "-init", Time: time.Now(), Session: s.ID(), Body: body}
}

func resultEvent(s *host.Session, out core.Outcome, err error) event.Event {
	body := result(out, err)
	if out.Stop == core.StopParked {
		body.Questions = s.Now().Questions
	}
	return event.Event{V: event.Version, ID: s.ID() + "-result", Time: time.Now(), Session: s.ID(), Tokens: out.Usage.Total(), Body: body}
}

func result(out core.Outcome, err error) event.Result {
	r := event.Result{
		Outcome: string(out.Stop), ExitCode: OutcomeCode(out, err), Text: out.Text, Rounds: out.Rounds,
		DurationMS: out.Duration.Milliseconds(), Usage: out.Usage, Denied: out.Denied,
	}
	if r.Denied == nil {
		r.Denied = []event.Permission{}
	}
	if out.Priced && out.Cost > 0 {
		r.CostUSD = &out.Cost
	}
	if err != nil {
		e := event.ErrorOf(err)
		r.Error = &e
	}
	return r
}

// streamView prints each event as a line of JSON.
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

// jsonView prints only the result event.
type jsonView struct{ out io.Writer }

func (*jsonView) begin(event.Event) {}

func (*jsonView) show(event.Event) {}

func (v *jsonView) end(result event.Event) error {
	return cmdutil.WriteJSON(v.out, result)
}
