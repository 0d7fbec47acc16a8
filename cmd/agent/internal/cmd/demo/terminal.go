package demo

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/chat"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
)

const welcome = "This is a demonstration. The model is a **script**: its text and tool calls are fixed. The rest is real: the loop, the tools, " +
	"the files, the commands, the plugin that fetches a page from a server on this machine, the MCP server, the permission policy. " +
	"You are asked before anything is run or changed; /quit ends it."

// onTerminal runs the demo as an interactive session: the user answers, and can
// type.
func onTerminal(ctx context.Context, s *cmdutil.IO, t *run.Task) error {
	asker, queue, calls := tui.NewAsker(), tui.NewQueue(), &lastCall{}
	t.Session.Provider, t.Session.Ephemeral = talkative{t.Session.Provider}, true
	t.Session.Hooks.BeforeTool = calls.set
	t.Session.Hooks.AfterTool = func(context.Context, model.ToolCall, *core.Result) { queue.Deliver() }
	h := host.New("", func(ctx context.Context, _ host.Open, questions core.Asker) (host.Opened, error) {
		a, err := agent.Open(ctx, t.Agent)
		if err != nil {
			return host.Opened{}, err
		}
		asker.Review = calls.review(a)
		t.Session.Asker = questions
		session, err := a.NewSession(ctx, t.Session)
		return host.Opened{Session: session, Close: a.Close, Waiting: queue.Deliver}, err
	})
	defer h.Close()
	session, err := h.Open(ctx, host.Open{})
	if err != nil {
		return err
	}
	o := terminal(s)
	o.Session, o.Asker, o.Queue, o.Title, o.Dir, o.Prompt, o.Welcome = session, asker, queue, "agent demo", t.Agent.Dir, demoPrompt, welcome
	o.Status = func() tui.Status { return tui.Status{Model: "a script", Mode: t.Mode} }
	_, err = tui.Run(ctx, o)
	return err
}

// terminal returns the terminal as the user's settings have it; the demo also runs with
// settings that are broken.
func terminal(s *cmdutil.IO) tui.Options {
	quiet := *s
	quiet.Err = io.Discard // warnings are about real sessions
	set, err := (&setup.Flags{}).Load(&quiet)
	if err == nil {
		var o tui.Options
		if o, err = chat.Terminal(s, set); err == nil {
			return o
		}
	}
	fmt.Fprintf(s.Err, "agent: %v\n", err)
	return tui.Options{In: s.In, Out: s.Terminal, Env: s.Env}
}

// lastCall is the latest tool call. It is safe for concurrent use.
type lastCall struct {
	mu   sync.Mutex
	call model.ToolCall
}

func (l *lastCall) set(_ context.Context, call *model.ToolCall) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.call = *call
	return nil
}

// review returns what shows the changes of the call that a question is about.
func (l *lastCall) review(a *agent.Agent) func(context.Context, core.Question) *tui.Review {
	return func(ctx context.Context, q core.Question) *tui.Review {
		call, ok := l.of(q.Tool)
		changes, err := a.Preview(ctx, call)
		if !ok || err != nil || len(changes) == 0 {
			return nil
		}
		return &tui.Review{Changes: changes}
	}
}

func (l *lastCall) of(tool string) (model.ToolCall, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.call, l.call.Name == tool
}

// talkative is the script, with an answer to what it does not expect.
type talkative struct{ model.Provider }

// Stream implements [model.Provider].
func (p talkative) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range p.Provider.Stream(ctx, req) {
			if err != nil && ctx.Err() == nil && model.AsError(err).Code == model.CodeInvalidRequest {
				_ = yield(model.Delta{Kind: model.DeltaText, Text: "I am only a script, and this is not in it. A real model would continue: `agent providers setup` sets one up. /quit ends the demonstration."}, nil) &&
					yield(model.Delta{Kind: model.DeltaDone, Stop: model.StopEnd}, nil)
				return
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
