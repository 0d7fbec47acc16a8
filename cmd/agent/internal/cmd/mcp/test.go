package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/mcp"
)

type testOptions struct {
	serverOptions
	accept bool
	json   bool
}

func newTestCmd(s *cmdutil.IO) *cobra.Command {
	o := &testOptions{serverOptions: serverOptions{IO: s}}
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Connect to an MCP server and show what it offers",
		Long: "Connect to a server and read its lists. Tools whose definition has changed since it was first seen are blocked\n" +
			"until you accept the changes: on a terminal, test shows them and asks; otherwise, pass --accept.",
		Args:              cmdutil.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: o.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&o.accept, "accept", false, "accept changed tool definitions")
	cmdutil.JSONFlag(cmd, &o.json)
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags|setup.DebugFlag)
	return cmd
}

func (o *testOptions) run(ctx context.Context, name string) error {
	set, c, err := o.server(name)
	if err != nil {
		return err
	}
	return o.withHost(ctx, set, c, func(ctx context.Context, host *mcp.Host) error { return o.test(ctx, host, set, name) })
}

func (o *testOptions) test(ctx context.Context, host *mcp.Host, set *setup.Setup, name string) error {
	begin := time.Now()
	stop := o.progress(name)
	st, err := host.Refresh(ctx, name)
	stop()
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if err := host.Ping(ctx, name); ctx.Err() != nil {
		return err
	} else if err != nil { // its lists were answered, so that it works
		fmt.Fprintf(o.Err, "agent: %v\n", err)
	}
	changes := host.Changes(name)
	if !o.json {
		if err := o.print(setup.ServerInfoOf(st, set.Dialect()).Details(st, set.Dialect()), changes, took); err != nil {
			return err
		}
	}
	if len(changes) > 0 {
		if err := o.settle(ctx, host, name, len(changes)); err != nil {
			return err
		}
		st = host.Status()[0]
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, setup.ServerInfoOf(st, set.Dialect()).Details(st, set.Dialect()))
	}
	return nil
}

// print prints what a server offers, and which definitions have changed.
func (o *testOptions) print(info setup.ServerInfo, changes []mcp.Change, took time.Duration) error {
	if err := printServer(o.Out, info); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "\nAnswered in %s.\n", took.Round(time.Millisecond))
	for _, c := range changes {
		fmt.Fprintf(o.Out, "\nTool %s has changed since it was first seen:\n%s\n", c.Tool, display.Visible(mcp.Difference(c.Old, c.New)))
	}
	return nil
}

// settle accepts the changed definitions of n tools, if --accept or the user says
// so.
func (o *testOptions) settle(ctx context.Context, host *mcp.Host, name string, n int) error {
	accept := o.accept
	if !accept && !o.json && o.InTTY && o.OutTTY && o.ErrTTY {
		var err error
		if accept, err = o.Confirm(ctx, "Accept "+display.Plural(n, "changed tool")+"?", false); err != nil {
			return err
		}
	}
	result := "Changes not accepted; the old definitions stay in use."
	if accept {
		if _, err := host.Accept(ctx, name); err != nil {
			return err
		}
		result = "Changes accepted."
	}
	if !o.json {
		fmt.Fprintln(o.Out, result)
	}
	return nil
}
