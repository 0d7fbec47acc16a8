package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// firstStart is the time limit for the first start of a program, in milliseconds,
// unless its settings have one: it may be installed first.
const firstStart = 60_000

// NewCmd returns agent mcp.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("mcp", "Manage MCP servers",
		newAddCmd(s), newImportCmd(s), newListCmd(s), newGetCmd(s), newRemoveCmd(s), newEnableCmd(s), newDisableCmd(s), newTestCmd(s), newPsCmd(s),
		newLoginCmd(s), newLogoutCmd(s), newServeCmd(s))
}

// serverOptions are the options of every command on configured servers.
type serverOptions struct {
	*cmdutil.IO
	flags setup.Flags
}

// load reads the settings, and the servers that they and the project configure.
func (o *serverOptions) load() (*setup.Setup, []mcp.Configured, error) {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return nil, nil, err
	}
	if set.Home == "" {
		return nil, nil, &config.Error{Err: errors.New("no home directory to store settings in: set HOME or AGENT_HOME")}
	}
	servers, warnings := set.Servers()
	for _, w := range warnings {
		fmt.Fprintf(o.Err, "agent: %s\n", w)
	}
	return set, servers, nil
}

// server is load for one server.
func (o *serverOptions) server(name string) (*setup.Setup, mcp.Configured, error) {
	set, servers, err := o.load()
	if err != nil {
		return nil, mcp.Configured{}, err
	}
	c, err := find(servers, name)
	return set, c, err
}

// find returns the first server with a name: the one that takes precedence.
func find(servers []mcp.Configured, name string) (mcp.Configured, error) {
	var names []string
	for _, c := range servers {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return mcp.Configured{}, fmt.Errorf("no MCP server %q: none are configured (see agent mcp add)", name)
	}
	return mcp.Configured{}, fmt.Errorf("no MCP server %q: expected one of %s", name, strings.Join(names, ", "))
}

// complete completes the name of a server as the first argument.
func (o *serverOptions) complete(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	quiet := *o.IO
	quiet.Err = io.Discard
	_, servers, err := (&serverOptions{IO: &quiet, flags: o.flags}).load()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, c := range servers {
		names = append(names, cobra.CompletionWithDesc(c.Name, display.OneLine(c.Server.Describe(), 60)))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// statuses returns what is stored about servers. It starts none.
func statuses(set *setup.Setup, servers ...mcp.Configured) []mcp.Status {
	host := mcp.NewHost(mcp.HostOptions{Servers: servers, Dir: setup.MCPDir(set.Home)})
	defer host.Close()
	return host.Status()
}

// withHost runs f with a host that can start one server.
func (o *serverOptions) withHost(ctx context.Context, set *setup.Setup, c mcp.Configured, f func(context.Context, *mcp.Host) error) error {
	opts := set.AgentOptions(o.flags.Logger(o.IO))
	opts.NoBuiltins, opts.Home, opts.MCP.Servers = true, "", []mcp.Configured{c}
	a, err := agent.Open(ctx, opts)
	if err != nil {
		return err
	}
	defer a.Close()
	return cmdutil.Interruptible(ctx, func(ctx context.Context) error { return f(ctx, a.MCP()) })
}

// readTools reads the lists of a server, so that its tools are known before its
// first use, and prints their names. A failure is only reported: the server stays
// configured.
func (o *serverOptions) readTools(ctx context.Context, set *setup.Setup, c mcp.Configured) error {
	if c.Server.StartTimeout == 0 && c.Server.Transport() == mcp.TransportStdio {
		c.Server.StartTimeout = firstStart
	}
	return o.withHost(ctx, set, c, func(ctx context.Context, host *mcp.Host) error {
		stop := o.progress(c.Name)
		st, err := host.Refresh(ctx, c.Name)
		stop()
		switch {
		case ctx.Err() != nil:
			return err
		case err != nil:
			fmt.Fprintf(o.Err, "agent: its tools could not be read: %v\n", err)
			return nil
		}
		reportSkipped(o.Err, st)
		fmt.Fprintf(o.Out, "It has %s%s.\n", setup.ServerInfoOf(st, set.Dialect()).ToolCount(), toolList(st))
		return nil
	})
}

// progressEvery is how often the progress of connecting is told.
const progressEvery = 2 * time.Second

// progress tells that a server is being connected to, until stop is called.
func (o *serverOptions) progress(name string) (stop func()) {
	begin, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				fmt.Fprintf(o.Err, "agent: waiting for MCP server %s for %s; a first start may install it (Ctrl-C stops)\n", name, now.Sub(begin).Round(time.Second))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// reportSkipped prints why tools were left out.
func reportSkipped(w io.Writer, st mcp.Status) {
	for _, why := range st.Skipped {
		fmt.Fprintf(w, "agent: %s\n", why)
	}
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
