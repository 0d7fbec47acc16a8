package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tools"
	"github.com/seed-009c0928/agent/sdk/agent"
	sessions "github.com/seed-009c0928/agent/sdk/host"
)

// act is the script of a session: its model's turns, and the policy for
// their calls.
type act struct {
	turns    []coretest.Turn
	provider model.Provider // instead of turns
	policy   core.Policy
	queue    *Queue // delivered after each tool call
	home     string // of the session's log; empty for none
	resume   string
}

type shellArgs struct {
	Command string `json:"command"`
}

// actTools are tools for scripts: shell pretends to run a command, wait runs
// until it is cancelled, question asks the user.
func actTools() []core.Tool {
	return []core.Tool{
		tools.AskUser(),
		core.NewTool(core.ToolDefinition{Name: "wait_agent", Description: "waits"}, nil,
			func(context.Context, *core.Call, struct {
				ID string `json:"agent_id"`
			},
			) (core.Result, error) {
				return core.TextResult("done"), nil
			}),
		core.NewTool(core.ToolDefinition{Name: "shell", Description: "runs"},
			func(_ context.Context, _ *core.Call, in shellArgs) ([]core.Access, error) {
				return []core.Access{{Scope: core.ScopeShell, Resource: in.Command}}, nil
			},
			func(_ context.Context, call *core.Call, in shellArgs) (core.Result, error) {
				fmt.Fprintf(call.Output, "ran %s\n", in.Command)
				return core.Result{}, nil
			}),
		core.NewTool(core.ToolDefinition{Name: "wait", Description: "waits"}, nil,
			func(ctx context.Context, call *core.Call, _ struct{}) (core.Result, error) {
				fmt.Fprintln(call.Output, "tick one\ntick two")
				<-ctx.Done()
				return core.Result{}, ctx.Err()
			}),
		core.NewTool(core.ToolDefinition{Name: "question", Description: "asks"}, nil,
			func(ctx context.Context, call *core.Call, in struct {
				Kind   string `json:"kind"`
				Schema string `json:"schema,omitempty"`
			},
			) (core.Result, error) {
				a, err := call.Ask(ctx, core.Question{
					Kind: core.QuestionKind(in.Kind), Title: "The tool asks", Schema: []byte(in.Schema), URL: "https://example.org/x",
				})
				if err != nil {
					return core.Result{}, err
				}
				return core.TextResult(fmt.Sprintf("choice=%s values=%s", a.Choice, a.Values)), nil
			}),
	}
}

// ruleSaver is a policy that asks about everything and saves rules.
type ruleSaver struct {
	coretest.FixedPolicy
	saved chan string
}

func (p ruleSaver) Decide(ctx context.Context, req core.PermissionRequest) core.Decision {
	d := p.FixedPolicy.Decide(ctx, req)
	if slices.ContainsFunc(req.Rules, func(r string) bool { return r == "shell(make *)" || r == "shell("+req.Accesses[0].Resource+")" }) {
		d.Verdict = core.Allow
	}
	d.Offers = []core.Offer{{Rules: []string{"shell(make)"}}, {Rules: []string{"shell(make *)"}}}
	d.Reason = "commands are asked about"
	return d
}

func (p ruleSaver) save(_ context.Context, rules []string) error {
	p.saved <- strings.Join(rules, ", ")
	return nil
}

// acting is a session of an act.
type acting struct {
	*sessions.Session
	host *sessions.Host
}

func (s acting) Close() error { return s.host.Close() }

// open opens a session for an act, and the asker of its screen.
func (a act) open(ctx context.Context) (acting, *Asker, error) {
	h := sessions.New(a.home, func(ctx context.Context, _ sessions.Open, asker core.Asker) (sessions.Opened, error) {
		policy := a.policy
		if policy == nil {
			policy = coretest.AllowAll
		}
		opened, err := agent.Open(ctx, agent.Options{Env: memoryEnv(), Home: a.home, Tools: actTools(), NoBuiltins: true, NoSubagents: true, Policy: policy})
		if err != nil {
			return sessions.Opened{}, err
		}
		opts := agent.SessionOptions{Provider: a.provider, Asker: asker, Resume: a.resume}
		if a.provider == nil {
			opts.Provider = coretest.Model(a.turns...)
		}
		if a.queue != nil {
			opts.Hooks.AfterTool = func(context.Context, model.ToolCall, *core.Result) { a.queue.Deliver() }
		}
		if saver, ok := policy.(ruleSaver); ok {
			opts.SaveRules = saver.save
		}
		s, err := opened.NewSession(ctx, opts)
		return sessions.Opened{Session: s, Close: opened.Close}, err
	})
	s, err := h.Open(ctx, sessions.Open{})
	return acting{s, h}, NewAsker(), err
}

func mustOpen(t testing.TB, a act) (acting, *Asker) {
	t.Helper()
	s, asker, err := a.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, asker
}

// testCommands are commands for the tests of both screens.
func testCommands() []Command {
	return []Command{
		{Name: "model", Args: "NAME", Summary: "show or change the model", Run: func(_ context.Context, args string) (Result, error) {
			return Result{Text: "The model is **" + args + "**."}, nil
		}},
		{Name: "mode", Summary: "show the permission mode", Run: func(context.Context, string) (Result, error) {
			return Result{}, errors.New("there is none")
		}},
		{Name: "new", Summary: "a new session", Run: func(context.Context, string) (Result, error) {
			return Result{Next: &Next{Kind: NextNew}}, nil
		}},
		{Name: "panic", Summary: "breaks", Run: func(context.Context, string) (Result, error) { panic("broken command") }},
	}
}

func toolCall(name, args string) model.ToolCall { return model.ToolCall{Name: name, Args: args} }

// eventually waits until the condition is true. Only a failing test waits long.
func eventually(t testing.TB, what func() string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(coretest.Patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to that; now:\n%s", what())
		}
	}
}

// lacks fails the test if text holds one of the parts.
func lacks(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("found %q in:\n%s", p, text)
		}
	}
}

func has(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("missing %q in:\n%s", p, text)
		}
	}
}

func memoryEnv() core.Environment { return env.NewMemory("/w", nil) }
