package task

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tasks"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/worktree"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// work opens an agent, and works on the task that open opens until it ends.
func (o *options) work(ctx context.Context, open func(*agent.Agent, agent.TaskOptions) (*agent.Task, error)) error {
	var opts agent.TaskOptions
	closeGraph, err := tasks.Equip(ctx, o.set, &opts, o.set.Settings.Graph.TokenBudget)
	if err != nil {
		return err
	}
	defer closeGraph()
	g := &o.set.Settings.Graph
	g.TokenBudget = 0 // the prompt of a bead has it
	if g.Enabled == "auto" {
		g.Enabled = "on"
	}
	if opts.Session.Provider, err = o.set.Providers(ctx); err != nil {
		return cmdutil.Advise(err, setup.FirstRunAdvice(ctx, err))
	}
	if err := o.set.SessionOptions(&opts.Session); err != nil {
		return err
	}
	options := o.set.AgentOptions(o.flags.Logger(o.IO))
	options.Home = o.set.Home // a task is always recorded
	options.Telemetry = o.set.Telemetry(o.IO, opts.Session.Cost)
	var failed []error
	if options.Agents, failed = o.set.Definitions(); len(failed) > 0 {
		fmt.Fprintf(o.Err, "agent: %v\n", errors.Join(failed...))
	}
	a, err := agent.Open(ctx, options)
	if err != nil {
		return err
	}
	defer a.Close()
	setup.ReportPlugins(o.IO, a)
	if err := o.confined(ctx, a); err != nil {
		return err
	}
	v := &view{o: o, task: tui.NewTranscript(o.set.Dir, o.verbose), beside: map[string]int{}}
	opts.Show, opts.OnSession = v.show, v.follow(ctx)
	if o.InTTY && o.OutTTY && o.format == "text" {
		opts.Allow = o.allow
	}
	t, err := open(a, opts)
	if err != nil {
		return err
	}
	if n := t.Status().Task.Worktrees; n > 1 && !worktree.InGit(ctx, o.set.Dir) {
		fmt.Fprintf(o.Err, "agent: task.worktrees is %d, but %s is not in a git repository: one bead works at a time\n", n, display.Printable(o.set.Dir))
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched, stop := cmdutil.Interrupts(within, o.Err, func() { cancel(errors.New("interrupted by Ctrl-C")) })
	s, err := t.Run(watched)
	if sig := stop(); sig != nil {
		err = sig
	}
	v.reading.Wait()
	err = errors.Join(err, t.Close(), v.err)
	return o.report(s, err)
}

// confined returns an error unless commands run in a sandbox, or the user said that they
// need none.
func (o *options) confined(ctx context.Context, a *agent.Agent) error {
	confines, ok := a.Env().(interface{ Sandboxed(context.Context) bool })
	if ok && confines.Sandboxed(ctx) || o.set.Mode() == string(permissions.ModeBypass) {
		return nil
	}
	return &config.Error{Key: "sandbox.shell", Err: errors.New("a task runs commands without asking, so it needs the sandbox, which is off or does not work here: " +
		"see agent doctor; in a container or a separate virtual machine use --permission-mode bypass")}
}

// allow asks whether changed tests are accepted.
func (o *options) allow(_ context.Context, found []event.Guard) bool {
	for _, g := range found {
		n, _ := display.NoteOf(g)
		fmt.Fprintln(o.Err, n.String())
	}
	fmt.Fprint(o.Err, "Accept these changes? [y/N] ")
	line, err := bufio.NewReader(o.In).ReadString('\n')
	return err == nil && strings.EqualFold(strings.TrimSpace(line), "y")
}

// report prints how the task ended, and returns the exit code.
func (o *options) report(s bead.Status, err error) error {
	if !s.State.Final() {
		s.State = bead.Interrupted
	}
	if o.format == "json" {
		err = errors.Join(err, cmdutil.WriteJSON(o.Out, s))
	}
	if o.format == "text" {
		fmt.Fprintln(o.Out, summary(s))
		switch {
		case s.State == bead.Committed:
			fmt.Fprintf(o.Err, "To take it back: agent task undo %s\n", s.Task.Task)
		case s.State.Final() || err != nil:
			fmt.Fprintf(o.Err, "To continue: agent task resume %s%s\n", more(s), s.Task.Task)
		}
	}
	if err != nil {
		return err
	}
	if code := exitCode(s); code != cmdutil.ExitDone {
		return &cmdutil.StatusError{Code: code}
	}
	return nil
}

// more returns the flag without which an exhausted task would end at once.
func more(s bead.Status) string {
	switch exitCode(s) {
	case cmdutil.ExitCriteria:
		return fmt.Sprintf("--max-beads %d ", 2*len(s.Beads))
	case cmdutil.ExitExhausted:
		return fmt.Sprintf("--token-budget %d ", 2*max(s.Used, s.Task.TokenBudget))
	}
	return ""
}

// exitCode returns the exit code for how a task ended.
func exitCode(s bead.Status) int {
	switch {
	case s.State == bead.Committed:
		return cmdutil.ExitDone
	case s.State == bead.Blocked:
		return cmdutil.ExitBlocked
	case s.State == bead.Exhausted && strings.HasPrefix(s.Reason, bead.ReasonBeads):
		return cmdutil.ExitCriteria
	case s.State == bead.Exhausted:
		return cmdutil.ExitExhausted
	case s.State == bead.Cancelled:
		return cmdutil.ExitSIGINT
	}
	return cmdutil.ExitError
}

// summary describes a task in one line.
func summary(s bead.Status) string {
	text := fmt.Sprintf("task %s %s: %s, %s tokens", s.Task.Task, s.State, display.Plural(len(s.Beads), "bead"), display.Count(s.Used))
	if s.CostUSD > 0 {
		text += fmt.Sprintf(", $%.4f", s.CostUSD)
	}
	if s.Reason != "" {
		text += ": " + display.OneLine(s.Reason, 500)
	}
	return text
}

// view prints what happens.
type view struct {
	o       *options
	task    *tui.Transcript
	reading sync.WaitGroup

	mu     sync.Mutex
	beside map[string]int // the beads of sessions that work side by side
	err    error
}

// show prints an event of the task.
func (v *view) show(e event.Event) {
	if b, ok := e.Body.(event.BeadStart); ok && b.Worktree != "" {
		v.mu.Lock()
		v.beside[b.Child] = b.Bead
		v.mu.Unlock()
	}
	if b, ok := e.Body.(event.TaskState); ok && v.o.format == "text" && (b.Bead > 0 && !v.o.verbose || b.Bead == 0) {
		return
	}
	v.print(e, v.task)
}

// follow returns a function that prints the events of a session.
func (v *view) follow(ctx context.Context) func(*agent.Session) {
	return func(s *agent.Session) {
		transcript := tui.NewTranscript(v.o.set.Dir, v.o.verbose)
		v.reading.Go(func() {
			for e, err := range s.Events(context.WithoutCancel(ctx), s.Opened()-1) {
				if err != nil {
					return
				}
				v.print(e, transcript)
			}
		})
	}
}

func (v *view) print(e event.Event, transcript *tui.Transcript) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.o.format == "stream-json" {
		if v.err == nil {
			v.err = json.NewEncoder(v.o.Out).Encode(e)
		}
		return
	} else if v.o.format != "text" {
		return
	}
	var lines []string
	if m, ok := e.Body.(event.Message); !ok {
		lines = transcript.Lines(e)
	} else if text := strings.TrimSpace(m.Content.Text()); text != "" {
		lines = []string{text}
	}
	for _, l := range lines {
		l = display.Printable(l)
		if n := v.beside[e.Session]; n > 0 {
			l = fmt.Sprintf("[%d] ", n) + strings.ReplaceAll(l, "\n", fmt.Sprintf("\n[%d] ", n))
		}
		fmt.Fprintln(v.o.Err, l)
	}
}
