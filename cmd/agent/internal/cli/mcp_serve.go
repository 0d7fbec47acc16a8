package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/mcp/server"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// serveToken is the variable with the token of mcp serve --http.
const serveToken = "AGENT_MCP_TOKEN"

const serveInstructions = "A coding agent. Its tools work on the files and commands of its workspace; its own rules decide what they may do, " +
	"and it may ask your person. run_task gives it a whole task."

func newMCPServe(s *streams) *cobra.Command {
	sh, address, noTasks := &shared{}, "", false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be an MCP server: offer the tools, and whole tasks, to other programs",
		Long: "serve offers the agent's tools, and run_task, to an MCP client: over stdin and stdout, for a client that starts this\n" +
			"command, or with --http over streamable HTTP on a port of this machine. The permission rules hold as anywhere. What\n" +
			"would be asked is asked of the client where that can ask its person, and denied where it cannot.\n\n" +
			"Over HTTP a client has to send a token: that of the variable " + serveToken + ", or a new one, which is printed.",
		Example: "  agent mcp serve --cd ~/project --permission-mode workspace\n  agent mcp serve --http 127.0.0.1:8123",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ln net.Listener
			if cmd.Flags().Changed("http") {
				var err error
				if ln, err = listenLocal(address); err != nil {
					return err
				}
			}
			return serveMCP(cmd.Context(), s, sh, ln, noTasks)
		},
	}
	sh.register(cmd.Flags())
	cmd.Flags().StringVar(&address, "http", "", "serve over HTTP at `ADDRESS` of this machine, such as 127.0.0.1:8123; port 0 is any")
	cmd.Flags().BoolVar(&noTasks, "no-tasks", false, "offer the tools only, without run_task")
	return cmd
}

// listenLocal opens a port that only this machine reaches.
func listenLocal(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, &usageError{fmt.Errorf("--http %q: expected an address of this machine, such as 127.0.0.1:8123, for who reaches it may run commands here", address)}
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	return ln, nil
}

// serveMCP serves until the client leaves or a signal comes.
func serveMCP(ctx context.Context, s *streams, sh *shared, ln net.Listener, noTasks bool) (err error) {
	defer func() {
		if ln != nil {
			_ = ln.Close() // which a server that has run did already
		}
	}()
	set, err := sh.load(s)
	if err != nil {
		return err
	}
	a, err := set.place.openAgent(ctx, set.agentOptions(sh.logger(s)))
	if err != nil {
		return err
	}
	defer a.Close()
	opts, err := set.serverOptions(noTasks)
	if err != nil {
		return err
	}
	srv, err := a.MCPServer(opts)
	if err != nil {
		return err
	}
	defer srv.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched, stop := interrupts(ctx, io.Discard, cancel)
	if ln == nil {
		err = srv.ServeStdio(watched, s.in, s.out)
	} else {
		err = srv.ServeHTTP(watched, ln, s.announce(ln))
	}
	if sig := stop(); sig != nil {
		return sig
	}
	return err
}

// announce says where the server is, and returns its token.
func (s *streams) announce(ln net.Listener) string {
	fmt.Fprintf(s.err, "agent: serving at http://%s%s\n", ln.Addr(), server.Path)
	token := s.env(serveToken)
	if token == "" {
		token = rand.Text()
		fmt.Fprintf(s.err, "agent: clients send the header  Authorization: Bearer %s\n", token)
	}
	return token
}

// serverOptions are those of the sessions that clients use.
func (s *settings) serverOptions(noTasks bool) (agent.MCPServerOptions, error) {
	o := agent.MCPServerOptions{Instructions: serveInstructions}
	if err := s.sessionOptions(&o.Calls); err != nil {
		return o, err
	}
	o.Calls.Ephemeral = !s.Settings.Session.Save
	limits := o.Calls.Limits // those of a conversation do not hold for single calls
	o.Calls.Limits = core.Limits{
		CommandTimeout: limits.CommandTimeout, MaxCommandTimeout: limits.MaxCommandTimeout, ParallelCalls: limits.ParallelCalls, NoLoopDetection: true,
	}
	if !noTasks {
		o.Task = func(ctx context.Context) (opts agent.SessionOptions, err error) {
			if opts.Provider, err = s.providers(ctx); err != nil {
				return opts, err
			}
			opts.Ephemeral = !s.Settings.Session.Save
			return opts, s.sessionOptions(&opts)
		}
	}
	return o, nil
}
