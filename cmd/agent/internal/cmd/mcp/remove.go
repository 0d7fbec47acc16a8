package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
	"github.com/seed-009c0928/agent/mcp"
)

type removeOptions struct {
	serverOptions
	scope string // "" is any
}

func newRemoveCmd(s *cmdutil.IO) *cobra.Command {
	o := &removeOptions{serverOptions: serverOptions{IO: s}}
	cmd := &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove an MCP server",
		Long:              "Remove a server from your settings or, if it is not there, from this directory's .mcp.json.",
		Args:              cmdutil.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: o.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag)
	scopeFlag(cmd, &o.scope, "remove it from `SCOPE` only: user or project")
	return cmd
}

func (o *removeOptions) run(ctx context.Context, name string) error {
	if o.scope != "" {
		if err := checkScope(o.scope); err != nil {
			return err
		}
	}
	set, servers, err := o.load()
	if err != nil {
		return err
	}
	removed, err := o.remove(ctx, set, name)
	if err != nil {
		return err
	}
	if !removed {
		return o.notRemoved(servers, name)
	}
	if _, err := config.UserFile(set.Home).EnableServer(ctx, name, true); err != nil {
		return err
	}
	forget(set, servers, name)
	fmt.Fprintf(o.Out, "Removed MCP server %s.\n", name)
	return nil
}

// remove removes a server from the first scope that has it, and reports whether
// one does.
func (o *removeOptions) remove(ctx context.Context, set *setup.Setup, name string) (removed bool, err error) {
	if o.scope != setup.ScopeProject {
		removed, err = config.UserFile(set.Home).RemoveServer(ctx, name)
		if err != nil || removed || o.scope == setup.ScopeUser {
			return removed, err
		}
	}
	removed, err = config.RemoveProjectServer(ctx, set.Home, set.Dir, name)
	if err == nil {
		_, err = trust.Open(set.Home).RevokeServer(ctx, set.Dir, name)
	}
	return removed, err
}

// notRemoved is the error for a server that is not where it was looked for.
func (o *removeOptions) notRemoved(servers []mcp.Configured, name string) error {
	if _, err := find(servers, name); err != nil {
		return err
	}
	if o.scope != "" {
		return fmt.Errorf("no MCP server %q in scope %s", name, o.scope)
	}
	return fmt.Errorf("MCP server %q is neither in your settings nor in this directory's %s: remove it from the settings file that has it (see agent config path)", name, mcp.ProjectFile)
}

// forget deletes what is stored about a removed server.
func forget(set *setup.Setup, servers []mcp.Configured, name string) {
	i := slices.IndexFunc(servers, func(c mcp.Configured) bool { return c.Name == name })
	if i < 0 {
		return
	}
	host := mcp.NewHost(mcp.HostOptions{Dir: setup.MCPDir(set.Home)})
	defer host.Close()
	_ = host.Forget(servers[i].Server) // what stays takes a few bytes
}

// scopeFlag adds --scope to a command.
func scopeFlag(cmd *cobra.Command, scope *string, usage string) {
	cmd.Flags().StringVar(scope, "scope", *scope, usage)
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{setup.ScopeUser, setup.ScopeProject}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func checkScope(scope string) error {
	if scope != setup.ScopeUser && scope != setup.ScopeProject {
		return cmdutil.Usagef("--scope %q: use user or project", scope)
	}
	return nil
}

type enableOptions struct{ serverOptions }

func newEnableCmd(s *cmdutil.IO) *cobra.Command {
	o := &enableOptions{serverOptions{IO: s}}
	cmd := &cobra.Command{
		Use:   "enable NAME",
		Short: "Enable an MCP server (and trust it, if it is a project's)",
		Long: "Undo disable. A server of this directory's .mcp.json is also trusted: review it with 'agent mcp get' first.\n" +
			"Trust is tied to what it starts or connects to: when that changes, the server must be enabled again.",
		Args:              cmdutil.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: o.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag)
	return cmd
}

func (o *enableOptions) run(ctx context.Context, name string) error {
	set, c, err := o.server(name)
	if err != nil {
		return err
	}
	if _, err := config.UserFile(set.Home).EnableServer(ctx, c.Name, true); err != nil {
		return err
	}
	if c.Source == setup.ScopeProject {
		if err := trust.Open(set.Home).TrustServer(ctx, set.Dir, c.Name, c.Server.Hash()); err != nil {
			return err
		}
		fmt.Fprintf(o.Out, "Trusted in this directory: %s\n", display.VisibleLine(c.Server.Describe(), 2000))
		for _, line := range c.Server.Commands() {
			fmt.Fprintf(o.Out, "It runs, for a value of its settings: %s\n", display.VisibleLine(line, 2000))
		}
		if errors.Is(c.Problem, setup.ErrUntrustedServer) {
			c.Problem = nil
		}
	}
	c.Server.Disabled = false
	fmt.Fprintf(o.Out, "Enabled MCP server %s.\n", c.Name)
	return o.readTools(ctx, set, c)
}

type disableOptions struct{ serverOptions }

func newDisableCmd(s *cmdutil.IO) *cobra.Command {
	o := &disableOptions{serverOptions{IO: s}}
	cmd := &cobra.Command{
		Use:               "disable NAME",
		Short:             "Disable an MCP server without removing it",
		Args:              cmdutil.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: o.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag)
	return cmd
}

func (o *disableOptions) run(ctx context.Context, name string) error {
	set, _, err := o.server(name)
	if err != nil {
		return err
	}
	if _, err := config.UserFile(set.Home).EnableServer(ctx, name, false); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Disabled MCP server %s.\n", name)
	return nil
}
