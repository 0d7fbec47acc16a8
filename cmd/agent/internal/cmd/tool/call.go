package tool

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type callOptions struct {
	*cmdutil.IO
	flags setup.Flags
	args  string
	json  bool
}

func newCallCmd(s *cmdutil.IO) *cobra.Command {
	o := &callOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "call NAME",
		Short: "Call a tool, subject to permissions",
		Long: "Call a tool as the model would, and print the result that the model would get. A call that needs approval is\n" +
			"denied, unless --allow or another rule allows it. The exit code is 1 if the result is an error.",
		Example: "  agent tools call read_file --args '{\"file_path\": \"README.md\"}'\n" +
			"  agent tools call shell --args @args.json --allow 'shell(go test *)'",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringVar(&o.args, "args", "{}", "arguments as `JSON`, or @FILE")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the tool_result event as JSON")
	o.flags.Register(cmd.Flags(), toolFlags|setup.PermissionFlags)
	return cmd
}

func (o *callOptions) run(ctx context.Context, name string) error {
	args, err := cmdutil.ToolArguments(o.args)
	if err != nil {
		return err
	}
	return setup.WithTools(ctx, o.IO, &o.flags, func(set *setup.Setup, a *agent.Agent, snapshot *core.Snapshot) error {
		if _, ok := snapshot.Lookup(name); !ok {
			return setup.NoTool(name, snapshot)
		}
		opts := agent.SessionOptions{Ephemeral: true}
		if err := set.SessionOptions(&opts); err != nil {
			return err
		}
		opts.Profile = core.Profile{Name: "all"} // the tools of every profile
		return o.call(ctx, a, opts, model.ToolCall{ID: "call", Name: name, Args: args})
	})
}

// call makes one call in a session and prints its result.
func (o *callOptions) call(ctx context.Context, a *agent.Agent, opts agent.SessionOptions, call model.ToolCall) error {
	opts.Provider = &oneCall{call: call}
	session, err := a.NewSession(ctx, opts)
	if err != nil {
		return err
	}
	defer session.Close()
	watched, stop := cmdutil.Interrupts(ctx, o.Err, func() { session.Cancel("interrupted by Ctrl-C") })
	_, err = session.Submit(watched, core.TextInput("call "+call.Name))
	if sig := stop(); sig != nil {
		return sig
	}
	if err != nil {
		return err
	}
	_ = session.Close() // ends the events
	for e, err := range session.Events(ctx, 0) {
		if err != nil {
			return err
		}
		if res, ok := e.Body.(event.ToolResult); ok {
			return o.print(e, res)
		}
	}
	return fmt.Errorf("tool %s returned no result", call.Name)
}

// print prints a result; the error is a *cmdutil.StatusError if the result is one.
func (o *callOptions) print(e event.Event, res event.ToolResult) error {
	if o.json {
		if err := cmdutil.WriteJSON(o.Out, e); err != nil {
			return err
		}
	} else {
		for _, p := range res.Content {
			switch p := p.(type) {
			case model.Text:
				fmt.Fprintln(o.Out, strings.TrimRight(display.Visible(p.Text), "\n"))
			case model.Image:
				fmt.Fprintf(o.Out, "[image %s, %d bytes]\n", display.Visible(p.MediaType), max(p.Bytes, len(p.Data)))
			}
		}
	}
	if res.IsError {
		return &cmdutil.StatusError{Code: cmdutil.ExitError}
	}
	return nil
}

// oneCall is a model that makes one tool call and ends its turn.
type oneCall struct {
	call model.ToolCall
	made bool
}

// Info implements [model.Provider].
func (*oneCall) Info() model.ProviderInfo { return model.ProviderInfo{Name: "none", Model: "none"} }

// Stream implements [model.Provider].
func (p *oneCall) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	deltas := []model.Delta{
		{Kind: model.DeltaToolStart, ID: p.call.ID, Name: p.call.Name},
		{Kind: model.DeltaToolArgs, Text: p.call.Args},
		{Kind: model.DeltaToolEnd},
		{Kind: model.DeltaDone, Stop: model.StopToolCalls},
	}
	if p.made {
		deltas = []model.Delta{{Kind: model.DeltaText, Text: "Done."}, {Kind: model.DeltaDone, Stop: model.StopEnd}}
	}
	p.made = true
	return func(yield func(model.Delta, error) bool) {
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
	}
}
