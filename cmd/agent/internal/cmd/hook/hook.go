package hook

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// NewCmd returns agent hooks.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("hooks", "List, test and audit hooks", newListCmd(s), newTestCmd(s), newLogCmd(s))
}

type listOptions struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

func newListCmd(s *cmdutil.IO) *cobra.Command {
	o := &listOptions{IO: s}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the hooks, and what cannot be used",
		Example: "  agent hooks list",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

// listed is a hook in JSON.
type listed struct {
	Event   hooks.Event   `json:"event"`
	Matcher string        `json:"matcher"`
	Source  string        `json:"source"`
	File    string        `json:"file,omitempty"`
	Handler hooks.Handler `json:"handler"`
}

func (o *listOptions) run(ctx context.Context) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	defs, problems := set.Hooks()
	more, wrong := set.FrontHooks()
	defs, problems = append(defs, more...), append(problems, wrong...)
	served, wrong, err := set.PluginHooks(ctx)
	if err != nil {
		return err
	}
	defs, problems = append(defs, served...), append(problems, wrong...)
	if o.json {
		out := struct {
			Hooks    []listed `json:"hooks"`
			Problems []string `json:"problems"`
		}{[]listed{}, []string{}}
		for _, d := range defs {
			out.Hooks = append(out.Hooks, listed{d.Event, d.Matcher, d.Source.Name, d.Source.File, d.Handler})
		}
		for _, p := range problems {
			out.Problems = append(out.Problems, p.String())
		}
		return cmdutil.WriteJSON(o.Out, out)
	}
	if len(defs) > 0 {
		table := cmdutil.NewTable(o.Out, "EVENT", "MATCHER", "KIND", "HOOK", "SOURCE")
		for _, d := range defs {
			table.Row(d.Event, display.OneLine(d.Matcher, 40), display.OneLine(string(d.Handler.Type), 10), display.OneLine(d.Title(), 60), d.Source.Name)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, p := range problems {
		fmt.Fprintf(o.Out, "not used: %s\n", display.OneLine(p.String(), 300))
	}
	if len(defs)+len(problems) == 0 {
		fmt.Fprintln(o.Err, "No hooks. Add them to hooks in settings.json; see docs/hooks.md.")
	}
	return nil
}

type logOptions struct {
	*cmdutil.IO
	json bool
}

func newLogCmd(s *cmdutil.IO) *cobra.Command {
	o := &logOptions{IO: s}
	cmd := &cobra.Command{
		Use:     "log SESSION",
		Short:   "Show what hooks did in a session",
		Example: "  agent hooks log 0192",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

// logged is a hook that ran, in JSON.
type logged struct {
	Seq event.Seq `json:"seq"`
	event.Hook
}

func (o *logOptions) run(ctx context.Context, session string) error {
	ran := []logged{}
	_, err := read(ctx, o.IO, session, func(e event.Event) {
		if h, ok := e.Body.(event.Hook); ok {
			ran = append(ran, logged{e.Seq, h})
		}
	})
	if err != nil {
		return err
	}
	return print(o.IO, ran, o.json)
}

// read calls use with the events of a session, and returns its ID.
func read(ctx context.Context, s *cmdutil.IO, session string, use func(event.Event)) (id string, err error) {
	home, id, err := setup.FindSession(s, session)
	if err != nil {
		return "", err
	}
	for e, err := range store.Read(ctx, agent.SessionsDir(home), id, 0) {
		if errors.Is(err, os.ErrNotExist) {
			return id, fmt.Errorf("there is no session %q", session)
		}
		if err != nil {
			return id, setup.SessionAdvice(err, id)
		}
		use(e)
	}
	return id, nil
}

// print prints what hooks did.
func print(s *cmdutil.IO, ran []logged, asJSON bool) error {
	if asJSON {
		return cmdutil.WriteJSON(s.Out, ran)
	}
	if len(ran) == 0 {
		fmt.Fprintln(s.Err, "No hook ran.")
		return nil
	}
	table := cmdutil.NewTable(s.Out, "SEQ", "EVENT", "TOOL", "HOOK", "DECISION", "REASON")
	for _, h := range ran {
		decision, reason := h.Decision, h.Reason
		switch {
		case h.Error != "" && decision == "":
			decision, reason = "failed", h.Error
		case decision == "" && h.Changed:
			decision = "changed"
		case decision == "":
			decision = "-"
		}
		table.Row(h.Seq, h.Event, display.OneLine(h.Tool, 30), display.OneLine(h.Name, 50), decision, display.OneLine(reason, 100))
	}
	return table.Flush()
}
