package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// patientStart is how long add, enable and test wait for a server, in
// milliseconds: its first start may install it.
const patientStart = 60_000

func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("mcp", "Add MCP servers, list them, sign in to them, and be one",
		newMCPAdd(s), newMCPList(s), newMCPGet(s), newMCPRemove(s), newMCPEnable(s), newMCPDisable(s), newMCPTest(s), newMCPPs(s),
		newMCPLogin(s), newMCPLogout(s), newMCPServe(s))
}

// mcpPlace is where a command on servers works.
type mcpPlace struct {
	*cmdutil.IO
	dir string
}

func (p *mcpPlace) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.dir, "cd", "C", "", "work in `DIR`")
}

// load reads the settings of the place, and its servers.
func (p *mcpPlace) load() (*setup.Setup, []mcp.Configured, error) {
	set, err := (&setup.Flags{Dir: p.dir}).Load(p.IO)
	if err != nil {
		return nil, nil, err
	}
	if set.Home == "" {
		return nil, nil, &config.Error{Err: errors.New("there is no home directory to keep settings in: set HOME or AGENT_HOME")}
	}
	servers, warnings := set.Servers()
	for _, w := range warnings {
		fmt.Fprintf(p.Err, "agent: %s\n", w)
	}
	return set, servers, nil
}

// server reads the settings of the place, and the server of a name.
func (p *mcpPlace) server(name string) (*setup.Setup, mcp.Configured, error) {
	set, servers, err := p.load()
	if err != nil {
		return nil, mcp.Configured{}, err
	}
	c, err := setup.Configured(servers, name)
	return set, c, err
}

// withHost runs f with a host of the given servers, and of nothing else.
func (p *mcpPlace) withHost(ctx context.Context, set *setup.Setup, servers []mcp.Configured, f func(context.Context, *mcp.Host) error) error {
	opts := set.AgentOptions(nil)
	opts.NoBuiltins, opts.Home, opts.MCP.Servers = true, "", slices.Clone(servers)
	for i := range opts.MCP.Servers {
		if s := &opts.MCP.Servers[i].Server; s.StartTimeout == 0 {
			s.StartTimeout = patientStart
		}
	}
	a, err := agent.Open(ctx, opts)
	if err != nil {
		return err
	}
	defer a.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched, stop := cmdutil.Interrupts(ctx, io.Discard, cancel)
	err = f(watched, a.MCP())
	if sig := stop(); sig != nil {
		return sig
	}
	return err
}

func newMCPList(s *cmdutil.IO) *cobra.Command {
	p, asJSON := &mcpPlace{IO: s}, false
	cmd := &cobra.Command{
		Use: "list", Short: "List the MCP servers and what is known of them, without starting any", Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			set, servers, err := p.load()
			if err != nil {
				return err
			}
			host := mcp.NewHost(mcp.HostOptions{Servers: servers, Dir: setup.MCPDir(set.Home)})
			defer host.Close()
			infos := []setup.ServerInfo{}
			for _, st := range host.Status() {
				infos = append(infos, setup.ServerInfoOf(st))
			}
			if asJSON {
				return cmdutil.WriteJSON(s.Out, infos)
			}
			if len(infos) == 0 {
				fmt.Fprintln(s.Out, "There are no MCP servers. For one:  agent mcp add NAME -- COMMAND ARGS…  or  agent mcp add NAME URL")
				return nil
			}
			w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tSCOPE\tSTATUS\tTOOLS\tTARGET")
			for _, i := range infos {
				status := i.Status
				if len(i.Blocked) > 0 {
					status = "changed"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", i.Name, i.Scope, status, i.Tools, display.VisibleLine(i.Target, 80))
			}
			err = w.Flush()
			for _, i := range infos {
				if i.Problem != "" {
					fmt.Fprintf(s.Err, "agent: MCP server %s: %s\n", i.Name, i.Problem)
				}
				if len(i.Blocked) > 0 {
					fmt.Fprintf(s.Err, "agent: MCP server %s: %s changed and blocked; to look at the difference: agent mcp test %s\n", i.Name, strings.Join(i.Blocked, ", "), i.Name)
				}
			}
			return err
		},
	}
	p.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newMCPGet(s *cmdutil.IO) *cobra.Command {
	p, asJSON := &mcpPlace{IO: s}, false
	cmd := &cobra.Command{
		Use: "get NAME", Short: "Show an MCP server, and its tools as far as they are known", Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			set, c, err := p.server(args[0])
			if err != nil {
				return err
			}
			host := mcp.NewHost(mcp.HostOptions{Servers: []mcp.Configured{c}, Dir: setup.MCPDir(set.Home)})
			defer host.Close()
			st := host.Status()[0]
			info := setup.ServerInfoOf(st).Details(st)
			if asJSON {
				return cmdutil.WriteJSON(s.Out, info)
			}
			return printServer(s, info)
		},
	}
	p.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printServer prints all that is known of a server.
func printServer(s *cmdutil.IO, i setup.ServerInfo) error {
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, display.VisibleLine(value, 2000))
		}
	}
	row("name", i.Name)
	row("scope", i.Scope)
	row("status", i.Status)
	row("problem", i.Problem)
	row("transport", i.Transport)
	row("target", i.Target)
	row("directory", i.Config.Cwd)
	for _, name := range cmdutil.SortedKeys(i.Config.Env) {
		row("env", name+"="+i.Config.Env[name])
	}
	for _, name := range cmdutil.SortedKeys(i.Config.Headers) {
		row("header", name+": "+i.Config.Headers[name])
	}
	row("hash", i.Hash)
	if i.Server != nil {
		row("server", strings.TrimSpace(i.Server.Name+" "+i.Server.Version)+", protocol "+i.Server.Protocol)
		row("says", display.Clip(i.Server.Instructions, 300))
	}
	row("prompts", strings.Join(i.Prompts, ", "))
	if i.Resources > 0 {
		row("resources", fmt.Sprint(i.Resources))
	}
	row("changed", strings.Join(i.Blocked, ", "))
	if err := w.Flush(); err != nil || len(i.Offered) == 0 {
		return err
	}
	fmt.Fprintln(s.Out, "\nTools, in the server's words:")
	for _, t := range i.Offered {
		fmt.Fprintf(w, "  %s\t%s\n", t.Model, display.VisibleLine(t.Description, 100))
	}
	return w.Flush()
}

func newMCPRemove(s *cmdutil.IO) *cobra.Command {
	p, scope := &mcpPlace{IO: s}, ""
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove an MCP server from the settings, or from .mcp.json", Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, servers, err := p.load()
			if err != nil {
				return err
			}
			ctx, name := cmd.Context(), args[0]
			removed := false
			if scope == "" || scope == setup.ScopeUser {
				if removed, err = config.UserFile(set.Home).RemoveServer(ctx, name); err != nil {
					return err
				}
			}
			if scope == setup.ScopeProject || scope == "" && !removed {
				if removed, err = config.RemoveProjectServer(ctx, set.Home, set.Dir, name); err != nil {
					return err
				}
				if _, err := trust.Open(set.Home).RevokeServer(ctx, set.Dir, name); err != nil {
					return err
				}
			}
			if !removed {
				if _, err := setup.Configured(servers, name); err != nil {
					return err
				}
				return cmdutil.Usagef("the scope %s has no MCP server %q", scope, name)
			}
			if _, err := config.UserFile(set.Home).EnableServer(ctx, name, true); err != nil {
				return err
			}
			forget(set, servers, name)
			fmt.Fprintf(s.Out, "The MCP server %s was removed.\n", name)
			return nil
		},
	}
	p.register(cmd)
	scopeFlag(cmd, &scope, "of `SCOPE` user or project; by itself wherever it stands")
	return cmd
}

// forget drops what is known of a server that nobody has any more.
func forget(set *setup.Setup, servers []mcp.Configured, name string) {
	i := slices.IndexFunc(servers, func(c mcp.Configured) bool { return c.Name == name })
	if i < 0 {
		return
	}
	host := mcp.NewHost(mcp.HostOptions{Dir: setup.MCPDir(set.Home)})
	defer host.Close()
	_ = host.Forget(servers[i].Server) // what is left takes a few bytes
}

func scopeFlag(cmd *cobra.Command, scope *string, usage string) {
	cmd.Flags().StringVar(scope, "scope", *scope, usage)
	check := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *scope != "" && *scope != setup.ScopeUser && *scope != setup.ScopeProject {
			return cmdutil.Usagef("--scope %q: use user or project", *scope)
		}
		return check(cmd, args)
	}
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{setup.ScopeUser, setup.ScopeProject}, cobra.ShellCompDirectiveNoFileComp)) // it fails only for an unknown flag
}

func newMCPEnable(s *cmdutil.IO) *cobra.Command {
	p := &mcpPlace{IO: s}
	cmd := &cobra.Command{
		Use:   "enable NAME",
		Short: "Use an MCP server: trust a project's, and undo disable",
		Long: "enable undoes disable. For a server of this directory's .mcp.json it also says that you have read what it would\n" +
			"start or reach and agree. Trust is in the command, its arguments and its environment: when they change, it is asked for again.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, c, err := p.server(args[0])
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if _, err := config.UserFile(set.Home).EnableServer(ctx, c.Name, true); err != nil {
				return err
			}
			if c.Source == setup.ScopeProject {
				if err := trust.Open(set.Home).TrustServer(ctx, set.Dir, c.Name, c.Server.Hash()); err != nil {
					return err
				}
				fmt.Fprintf(s.Out, "You trust this directory to use: %s\n", display.VisibleLine(c.Server.Describe(), 2000))
				if errors.Is(c.Problem, setup.ErrUntrustedServer) {
					c.Problem = nil
				}
			}
			c.Server.Disabled = false
			return p.read(ctx, set, c, "The MCP server %s is enabled.\n")
		},
	}
	p.register(cmd)
	return cmd
}

func newMCPDisable(s *cmdutil.IO) *cobra.Command {
	p := &mcpPlace{IO: s}
	cmd := &cobra.Command{
		Use: "disable NAME", Short: "Leave an MCP server alone, without removing it", Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, _, err := p.server(args[0])
			if err != nil {
				return err
			}
			if _, err := config.UserFile(set.Home).EnableServer(cmd.Context(), args[0], false); err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "The MCP server %s is disabled.\n", args[0])
			return nil
		},
	}
	p.register(cmd)
	return cmd
}

// read reads the lists of a server, so that its tools are known before it is
// used, and says what it has. A server that cannot be read stays configured.
func (p *mcpPlace) read(ctx context.Context, set *setup.Setup, c mcp.Configured, done string) error {
	fmt.Fprintf(p.Out, done, c.Name)
	return p.withHost(ctx, set, []mcp.Configured{c}, func(ctx context.Context, host *mcp.Host) error {
		st, err := host.Refresh(ctx, c.Name)
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			fmt.Fprintf(p.Err, "agent: its tools could not be read: %v\n", err)
			return nil
		}
		for _, why := range st.Left {
			fmt.Fprintf(p.Err, "agent: %s\n", why)
		}
		fmt.Fprintf(p.Out, "It has %s%s.\n", cmdutil.Plural(len(st.Tools), "tool"), toolList(st))
		return nil
	})
}

func toolList(st mcp.Status) string {
	var names []string
	for _, t := range st.Tools {
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + display.Clip(strings.Join(names, ", "), 300)
}

func newMCPTest(s *cmdutil.IO) *cobra.Command {
	p, asJSON, accept := &mcpPlace{IO: s}, false, false
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Start an MCP server, read its lists, and show what has changed",
		Long: "test connects to a server and reads what it has. Tools whose definition is another one than when it was first seen\n" +
			"are blocked until you accept the difference: at a terminal test asks, elsewhere --accept does it.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, c, err := p.server(args[0])
			if err != nil {
				return err
			}
			return p.withHost(cmd.Context(), set, []mcp.Configured{c}, func(ctx context.Context, host *mcp.Host) error {
				return p.test(ctx, host, c.Name, accept, asJSON)
			})
		},
	}
	p.register(cmd)
	cmd.Flags().BoolVar(&accept, "accept", false, "accept the tools as they are now")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (p *mcpPlace) test(ctx context.Context, host *mcp.Host, name string, accept, asJSON bool) error {
	begin := time.Now()
	st, err := host.Refresh(ctx, name)
	if err != nil {
		return err
	}
	took := time.Since(begin).Round(time.Millisecond)
	if err := host.Ping(ctx, name); err != nil {
		return err
	}
	changes := host.Changes(name)
	if !asJSON {
		if err := printServer(p.IO, setup.ServerInfoOf(st).Details(st)); err != nil {
			return err
		}
		fmt.Fprintf(p.Out, "\nIt answered within %s.\n", took)
		for _, why := range st.Left {
			fmt.Fprintf(p.Err, "agent: %s\n", why)
		}
		for _, c := range changes {
			fmt.Fprintf(p.Out, "\nThe tool %s has changed since it was first seen:\n%s\n", c.Tool, display.Visible(mcp.Difference(c.Old, c.New)))
		}
	}
	if accept, err = p.accepts(ctx, len(changes), accept, asJSON); err != nil {
		return err
	}
	if accept && len(changes) > 0 {
		if _, err := host.Accept(ctx, name); err != nil {
			return err
		}
		st = host.Status()[0]
		if !asJSON {
			fmt.Fprintln(p.Out, "They are accepted as they are now.")
		}
	}
	if asJSON {
		return cmdutil.WriteJSON(p.Out, setup.ServerInfoOf(st).Details(st))
	}
	return nil
}

// accepts asks whether to accept changed tools, if it can ask.
func (p *mcpPlace) accepts(ctx context.Context, changes int, accept, asJSON bool) (bool, error) {
	if changes == 0 || accept || asJSON || !p.InTTY || !p.OutTTY {
		return accept, nil
	}
	return p.Confirm(ctx, "Accept "+cmdutil.Plural(changes, "changed tool")+"?", false)
}

func newMCPPs(s *cmdutil.IO) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "ps", Short: "List the MCP servers that agents run now", Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			home, err := s.AgentHome()
			if err != nil {
				return err
			}
			running, err := mcp.ListRunning(setup.MCPDir(home))
			if err != nil {
				return err
			}
			if asJSON {
				return cmdutil.WriteJSON(s.Out, running)
			}
			w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SERVER\tPID\tTRANSPORT\tSINCE\tAGENT\tDIRECTORY")
			for _, r := range running {
				pid := "–"
				if r.PID > 0 {
					pid = fmt.Sprint(r.PID)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", r.Server, pid, r.Transport, r.Since.Local().Format(time.DateTime), r.Agent, display.OneLine(r.Dir, 60))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
