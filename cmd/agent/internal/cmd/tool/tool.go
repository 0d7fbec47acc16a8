package tool

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// NewCmd returns agent tools.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("tools", "List, show and call tools", newListCmd(s), newShowCmd(s), newCallCmd(s))
}

// toolFlags are the flags that decide which tools there are.
const toolFlags = setup.DirFlag | setup.WorkspaceFlags | setup.BareFlag | setup.ToolFlags | setup.SettingsFlags | setup.DebugFlag

type listOptions struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

func newListCmd(s *cmdutil.IO) *cobra.Command {
	o := &listOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tools that a session has",
		Long: "List the tools of the current profile, with their source, scopes and estimated cost in tokens. The cost\n" +
			"\"searched\" marks tools that are left out of the prompt: the model searches for them.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmdutil.JSONFlag(cmd, &o.json)
	o.flags.Register(cmd.Flags(), toolFlags|setup.ProviderFlags|setup.ProfileFlag)
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	return setup.WithTools(ctx, o.IO, &o.flags, func(set *setup.Setup, a *agent.Agent, _ *core.Snapshot) error {
		p, err := set.Profile(set.Settings.Providers.Default, set.Loaded.Model())
		if err != nil {
			return err
		}
		snapshot, err := a.ToolsFor(p).Snapshot(ctx)
		if snapshot == nil {
			return err
		}
		infos := []setup.ToolInfo{}
		for _, e := range snapshot.Entries() {
			info := setup.ToolInfoOf(e)
			info.Schema = nil
			infos = append(infos, info)
		}
		if o.json {
			return cmdutil.WriteJSON(o.Out, infos)
		}
		return printTools(o.Out, infos)
	})
}

func printTools(out io.Writer, infos []setup.ToolInfo) error {
	t := cmdutil.NewTable(out, "NAME", "SOURCE", "SCOPES", "TOKENS", "DESCRIPTION")
	total, deferred := 0, 0
	for _, i := range infos {
		scopes := make([]string, len(i.Scopes))
		for j, sc := range i.Scopes {
			scopes[j] = string(sc)
		}
		if len(scopes) == 0 {
			scopes = []string{"none"}
		}
		tokens := fmt.Sprint(i.Tokens)
		if i.Deferred {
			tokens = "searched"
			deferred++
		} else {
			total += i.Tokens
		}
		first, _, _ := strings.Cut(i.Description, "\n")
		t.Row(i.Name, i.Source, strings.Join(scopes, ","), tokens, display.OneLine(first, 60))
	}
	t.Row(display.Plural(len(infos), "tool"), "", "", total, "")
	if err := t.Flush(); err != nil || deferred == 0 {
		return err
	}
	_, err := fmt.Fprintf(out, "%s left out of the prompt: the model searches for them (setting tools.search).\n", display.Plural(deferred, "tool"))
	return err
}

type showOptions struct {
	*cmdutil.IO
	flags setup.Flags
	json  bool
}

func newShowCmd(s *cmdutil.IO) *cobra.Command {
	o := &showOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the description and schema of a tool",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmdutil.JSONFlag(cmd, &o.json)
	o.flags.Register(cmd.Flags(), toolFlags)
	return cmd
}

func (o *showOptions) run(ctx context.Context, name string) error {
	return setup.WithTools(ctx, o.IO, &o.flags, func(_ *setup.Setup, _ *agent.Agent, snapshot *core.Snapshot) error {
		e, ok := snapshot.Lookup(name)
		if !ok {
			return setup.NoTool(name, snapshot)
		}
		info := setup.ToolInfoOf(e)
		if o.json {
			return cmdutil.WriteJSON(o.Out, info)
		}
		fmt.Fprintf(o.Out, "%s (%s), about %d tokens\n\n%s\n\n", info.Name, info.Source, info.Tokens, strings.TrimSpace(info.Description))
		return cmdutil.WriteJSON(o.Out, info.Schema)
	})
}
