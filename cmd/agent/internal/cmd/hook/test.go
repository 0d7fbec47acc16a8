package hook

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type testOptions struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

func newTestCmd(s *cmdutil.IO) *cobra.Command {
	o := &testOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "test SESSION",
		Short: "Show what the hooks would do in a past session",
		Long: "Run the hooks on the inputs, tool calls, results and answers of a past session, and show what each decides now.\n" +
			"The hooks really run, in this directory and its sandbox; the tool calls do not.",
		Example: "  agent hooks test 0192",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmdutil.Interruptible(cmd.Context(), func(ctx context.Context) error { return o.run(ctx, args[0]) })
		},
	}
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *testOptions) run(ctx context.Context, session string) error {
	var events []event.Event
	id, err := read(ctx, o.IO, session, func(e event.Event) { events = append(events, e) })
	if err != nil {
		return err
	}
	ran := []logged{}
	err = setup.WithTools(ctx, o.IO, &o.flags, func(_ *setup.Setup, a *agent.Agent, snapshot *core.Snapshot) error {
		r := replay{
			engine: a.HookEngine(), tools: snapshot, calls: map[string]*core.Call{},
			place: hooks.Place{Env: a.Env(), Session: core.SessionInfo{ID: id, Dir: a.Env().Info().Dir}},
		}
		for _, e := range events {
			out, call := r.event(ctx, e)
			for i := range out.Results {
				ran = append(ran, logged{e.Seq, out.Results[i].Event(call)})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return print(o.IO, ran, o.json)
}

// replay runs the hooks on a recorded session.
type replay struct {
	engine *hooks.Engine
	place  hooks.Place
	tools  *core.Snapshot
	calls  map[string]*core.Call
}

// event runs the hooks of an event.
func (r *replay) event(ctx context.Context, e event.Event) (hooks.Outcome, *hooks.Call) {
	in := hooks.Input{Session: e.Session, Cwd: r.place.Session.Dir}
	switch b := e.Body.(type) {
	case event.User:
		in.Event, in.Prompt = hooks.UserPromptSubmit, b.Content.Text()
		return r.engine.Run(ctx, r.place, in, nil, nil), nil
	case event.Message:
		if len(b.Content.ToolCalls()) > 0 || b.Partial {
			break
		}
		active := false
		in.Event, in.LastMessage, in.StopHookActive = hooks.Stop, b.Content.Text(), &active
		return r.engine.Run(ctx, r.place, in, nil, nil), nil
	case event.ToolUse:
		r.calls[e.Call] = &core.Call{ID: e.Call, Name: b.Name, Args: json.RawMessage(b.Args), Session: r.place.Session, Env: r.place.Env}
		in.Event = hooks.PreToolUse
		return r.call(ctx, in, e.Call)
	case event.ToolResult:
		in.Event, in.DurationMS = hooks.PostToolUse, b.DurationMS
		if b.IsError {
			in.Event, in.Error = hooks.PostToolUseFailure, b.Content.Text()
		}
		in.ToolResponse, _ = json.Marshal(map[string]any{"content": b.Content.Text(), "is_error": b.IsError})
		return r.call(ctx, in, e.Call)
	}
	return hooks.Outcome{}, nil
}

func (r *replay) call(ctx context.Context, in hooks.Input, id string) (hooks.Outcome, *hooks.Call) {
	tool := r.calls[id]
	if tool == nil {
		return hooks.Outcome{}, nil
	}
	var accesses []core.Access
	if entry, ok := r.tools.Lookup(tool.Name); ok && entry.Validate(tool.Args) == nil {
		accesses, _ = entry.Tool.Access(ctx, tool) // a call that fails has none
	}
	call := hooks.Describe(tool, accesses)
	return r.engine.Run(ctx, r.place, in, call, tool), call
}
