package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/mcp/server"
)

// serveToken is the variable with the token of mcp serve --http.
const serveToken = "AGENT_MCP_TOKEN"

func newMCPServe(s *cmdutil.IO) *cobra.Command {
	sh, address, noTasks := &setup.Flags{}, "", false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be an MCP server: offer the tools, and whole tasks, to other programs",
		Long: "serve offers the agent's tools, and run_task, to an MCP client: over stdin and stdout, for a client that starts this\n" +
			"command, or with --http over streamable HTTP on a port of this machine. The permission rules hold as anywhere. What\n" +
			"would be asked is asked of the client where that can ask its person, and denied where it cannot.\n\n" +
			"Over HTTP a client has to send a token: that of the variable " + serveToken + ", or a new one, which is printed.",
		Example: "  agent mcp serve --cd ~/project --permission-mode workspace\n  agent mcp serve --http 127.0.0.1:8123",
		Args:    cmdutil.Args(cobra.NoArgs),
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
	sh.Register(cmd.Flags(), setup.SessionFlags)
	cmd.Flags().StringVar(&address, "http", "", "serve over HTTP at `ADDRESS` of this machine, such as 127.0.0.1:8123; port 0 is any")
	cmd.Flags().BoolVar(&noTasks, "no-tasks", false, "offer the tools only, without run_task")
	return cmd
}

// listenLocal opens a port that only this machine reaches.
func listenLocal(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, cmdutil.Usagef("--http %q: expected an address of this machine, such as 127.0.0.1:8123, for who reaches it may run commands here", address)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--http: %w", err)
	}
	return ln, nil
}

// serveMCP serves until the client leaves or a signal comes.
func serveMCP(ctx context.Context, s *cmdutil.IO, sh *setup.Flags, ln net.Listener, noTasks bool) (err error) {
	defer func() {
		if ln != nil {
			_ = ln.Close() // which a server that has run did already
		}
	}()
	set, err := sh.Load(s)
	if err != nil {
		return err
	}
	a, err := set.Environment.OpenAgent(ctx, set.AgentOptions(sh.Logger(s)))
	if err != nil {
		return err
	}
	defer a.Close()
	opts, err := set.ServerOptions(noTasks)
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
	watched, stop := cmdutil.Interrupts(ctx, io.Discard, cancel)
	if ln == nil {
		err = srv.ServeStdio(watched, s.In, s.Out)
	} else {
		err = srv.ServeHTTP(watched, ln, announce(s, ln))
	}
	if sig := stop(); sig != nil {
		return sig
	}
	return err
}

// announce says where the server is, and returns its token.
func announce(s *cmdutil.IO, ln net.Listener) string {
	fmt.Fprintf(s.Err, "agent: serving at http://%s%s\n", ln.Addr(), server.Path)
	token := s.Env(serveToken)
	if token == "" {
		token = rand.Text()
		fmt.Fprintf(s.Err, "agent: clients send the header  Authorization: Bearer %s\n", token)
	}
	return token
}
