package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/mcp/server"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// tokenEnv is the environment variable with the token of mcp serve --http.
const tokenEnv = "AGENT_MCP_TOKEN"

// instructions are for the client's model.
const instructions = "A coding agent. Its tools read and change the files of its workspace and run commands there; its own permission rules apply, " +
	"and it may ask your user. run_task gives it a whole task."

type serveOptions struct {
	*cmdutil.IO
	flags   setup.Flags
	http    bool
	address string
	noTasks bool
}

func newServeCmd(s *cmdutil.IO) *cobra.Command {
	o := &serveOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the agent as an MCP server",
		Long: "Offer the agent's tools, and run_task for whole tasks, to an MCP client: over stdin and stdout for a client that\n" +
			"starts this command, or with --http over streamable HTTP on a port of this machine. Permission rules apply as\n" +
			"usual. Calls that need approval are put to the client's user, or denied if the client cannot ask.\n\n" +
			"Over HTTP, clients must send a token: the value of " + tokenEnv + ", or else a new one, which is printed.",
		Example: "  agent mcp serve --cd ~/project --permission-mode workspace\n  agent mcp serve --http 127.0.0.1:8123",
		Args:    cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.http = cmd.Flags().Changed("http")
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.address, "http", "", "serve over HTTP at `ADDRESS` of this machine, such as 127.0.0.1:8123 (port 0 = any)")
	cmd.Flags().BoolVar(&o.noTasks, "no-tasks", false, "offer the tools only, without run_task")
	o.flags.Register(cmd.Flags(), setup.SessionFlags)
	return cmd
}

// run serves until the client disconnects or a signal arrives.
func (o *serveOptions) run(ctx context.Context) error {
	if !o.http {
		return o.serve(ctx, func(ctx context.Context, srv *server.Server) error { return srv.ServeStdio(ctx, o.In, o.Out) })
	}
	if token := o.Env(tokenEnv); token != "" && len(token) < minToken {
		return cmdutil.Usagef("%s is too short: expected at least %d random characters", tokenEnv, minToken)
	}
	ln, err := listenLocal(o.address)
	if err != nil {
		return err
	}
	defer ln.Close() // no error if it has served
	return o.serve(ctx, func(ctx context.Context, srv *server.Server) error { return srv.ServeHTTP(ctx, ln, o.announce(ln)) })
}

// serve opens the agent and calls f with its server.
func (o *serveOptions) serve(ctx context.Context, f func(context.Context, *server.Server) error) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	a, err := set.Environment.OpenAgent(ctx, set.AgentOptions(o.flags.Logger(o.IO)))
	if err != nil {
		return err
	}
	defer a.Close()
	opts, err := o.sessionOptions(set)
	if err != nil {
		return err
	}
	srv, err := a.MCPServer(opts)
	if err != nil {
		return err
	}
	defer srv.Close()
	return cmdutil.Interruptible(ctx, func(ctx context.Context) error { return f(ctx, srv) })
}

// sessionOptions returns the options of the clients' sessions.
func (o *serveOptions) sessionOptions(set *setup.Setup) (agent.MCPServerOptions, error) {
	opts := agent.MCPServerOptions{Instructions: instructions}
	if err := set.SessionOptions(&opts.Calls); err != nil {
		return opts, err
	}
	opts.Calls.Ephemeral = !set.Settings.Session.Save
	limits := opts.Calls.Limits // single calls are not limited like a conversation
	opts.Calls.Limits = core.Limits{
		CommandTimeout: limits.CommandTimeout, MaxCommandTimeout: limits.MaxCommandTimeout, ParallelCalls: limits.ParallelCalls, NoLoopDetection: true,
	}
	if !o.noTasks {
		opts.Task = func(ctx context.Context) (task agent.SessionOptions, err error) {
			if task.Provider, err = set.Providers(ctx); err != nil {
				return task, err
			}
			task.Ephemeral = !set.Settings.Session.Save
			return task, set.SessionOptions(&task)
		}
	}
	return opts, nil
}

// minToken is the minimum length of a token.
const minToken = 16

// listenLocal listens at an address that only this machine can reach.
func listenLocal(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, cmdutil.Usagef("--http %q: expected a loopback address, such as 127.0.0.1:8123: whoever can connect may run commands here", address)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	return ln, nil
}

// announce prints the address of the server, and returns its token.
func (o *serveOptions) announce(ln net.Listener) string {
	fmt.Fprintf(o.Err, "agent: serving at http://%s%s\n", ln.Addr(), server.Path)
	token := o.Env(tokenEnv)
	if token == "" {
		token = rand.Text()
		fmt.Fprintf(o.Err, "agent: clients send the header  Authorization: Bearer %s\n", token)
	}
	return token
}
