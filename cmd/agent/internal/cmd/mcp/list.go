package mcp

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/mcp"
)

type listOptions struct {
	serverOptions
	json bool
}

func newListCmd(s *cmdutil.IO) *cobra.Command {
	o := &listOptions{serverOptions: serverOptions{IO: s}}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List configured MCP servers (starts none)",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return o.run() },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *listOptions) run() error {
	set, servers, err := o.load()
	if err != nil {
		return err
	}
	infos := []setup.ServerInfo{}
	for _, st := range statuses(set, servers...) {
		infos = append(infos, setup.ServerInfoOf(st, set.Dialect()))
	}
	switch {
	case o.json:
		return cmdutil.WriteJSON(o.Out, infos)
	case len(infos) == 0:
		fmt.Fprintln(o.Out, "No MCP servers are configured. To add one:  agent mcp add NAME -- COMMAND [ARGS…]  or  agent mcp add NAME URL")
		return nil
	}
	return printServers(o.IO, infos)
}

// printServers prints servers as a table, and their problems.
func printServers(s *cmdutil.IO, infos []setup.ServerInfo) error {
	t := cmdutil.NewTable(s.Out, "NAME", "SCOPE", "STATUS", "TOOLS", "TARGET")
	for _, i := range infos {
		status := i.Status
		if len(i.Blocked) > 0 {
			status = "changed"
		}
		t.Row(i.Name, i.Scope, status, strings.TrimSuffix(strings.TrimSuffix(i.ToolCount(), " tools"), " tool"), display.VisibleLine(i.Target, 80))
	}
	err := t.Flush()
	for _, i := range infos {
		if i.Problem != "" {
			fmt.Fprintf(s.Err, "agent: MCP server %s: %s\n", i.Name, i.Problem)
		}
		if len(i.Blocked) > 0 {
			fmt.Fprintf(s.Err, "agent: MCP server %s: changed and blocked: %s; review the changes: agent mcp test %s\n", i.Name, strings.Join(i.Blocked, ", "), i.Name)
		}
	}
	return err
}

type getOptions struct {
	serverOptions
	json bool
}

func newGetCmd(s *cmdutil.IO) *cobra.Command {
	o := &getOptions{serverOptions: serverOptions{IO: s}}
	cmd := &cobra.Command{
		Use:               "get NAME",
		Short:             "Show an MCP server and its known tools (starts none)",
		Args:              cmdutil.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: o.complete,
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *getOptions) run(name string) error {
	set, c, err := o.server(name)
	if err != nil {
		return err
	}
	st := statuses(set, c)[0]
	info := setup.ServerInfoOf(st, set.Dialect()).Details(st, set.Dialect())
	if o.json {
		return cmdutil.WriteJSON(o.Out, info)
	}
	return printServer(o.Out, info)
}

// printServer prints everything known about a server.
func printServer(out io.Writer, i setup.ServerInfo) error {
	t := cmdutil.NewTable(out)
	row := func(name, value string) {
		if value != "" {
			t.Row(name, display.VisibleLine(value, 2000))
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
	for _, line := range i.Config.Commands() {
		row("runs", line)
	}
	row("hash", i.Hash)
	if i.Server != nil {
		row("server", strings.TrimSpace(i.Server.Name+" "+i.Server.Version)+", protocol "+i.Server.Protocol)
		row("instructions", display.Clip(i.Server.Instructions, 300))
	}
	row("prompts", strings.Join(i.Prompts, ", "))
	if i.Resources > 0 {
		row("resources", fmt.Sprint(i.Resources))
	}
	if i.Status == "ready" {
		row("tools", i.ToolCount())
	}
	for _, why := range i.Left {
		row("left out", why)
	}
	row("changed", strings.Join(i.Blocked, ", "))
	if err := t.Flush(); err != nil || len(i.Offered) == 0 {
		return err
	}
	fmt.Fprintln(out, "\nTools, as the server describes them:")
	for _, tool := range i.Offered {
		t.Row("  "+tool.Model, display.VisibleLine(tool.Description, 100))
	}
	if err := t.Flush(); err != nil || i.Adapted == 0 {
		return err
	}
	fmt.Fprintln(out, "\nSchemas adapted to what the model's service accepts:")
	for _, tool := range i.Offered {
		if len(tool.Adapted) > 0 {
			t.Row("  "+tool.Name, display.VisibleLine(strings.Join(tool.Adapted, "; "), 300))
		}
	}
	return t.Flush()
}

type psOptions struct {
	*cmdutil.IO
	json bool
}

func newPsCmd(s *cmdutil.IO) *cobra.Command {
	o := &psOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List running MCP servers",
		Long:  "List the MCP servers that running agents have started or are connected to.",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return o.run() },
	}
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *psOptions) run() error {
	home, err := o.AgentHome()
	if err != nil {
		return err
	}
	running, err := mcp.ListRunning(setup.MCPDir(home))
	if err != nil {
		return err
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, running)
	}
	t := cmdutil.NewTable(o.Out, "SERVER", "PID", "TRANSPORT", "SINCE", "AGENT", "DIRECTORY")
	for _, r := range running {
		pid := "–"
		if r.PID > 0 {
			pid = fmt.Sprint(r.PID)
		}
		t.Row(r.Server, pid, r.Transport, r.Since.Local().Format(time.DateTime), r.Agent, display.PathTail(r.Dir, 60))
	}
	return t.Flush()
}
