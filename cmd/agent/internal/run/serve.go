package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/sdk/host"
)

// NewServeCmd returns agent serve.
func NewServeCmd(s *cmdutil.IO) *cobra.Command {
	o := NewOptions(s)
	var stdio bool
	var socket string
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Run sessions for other programs",
		Long: "Run sessions for programs in any language, which send commands and get events as lines of JSON: see\n" +
			"docs/host-protocol.md. With --stdio it is one session on stdin and stdout, as with agent exec\n" +
			"--input-format stream-json. With --socket each connection to a Unix socket begins a session, or resumes or\n" +
			"attaches to one; only your user can connect. --stdio --resume ID attaches to a session that another process\n" +
			"serves on a socket. Ctrl-C closes all sessions; they are saved and can be resumed.",
		Example: "  agent serve --stdio\n  agent serve --socket ~/.agent/serve.sock",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case stdio == (socket != ""):
				return cmdutil.Usagef("choose how programs connect: --stdio, or --socket PATH")
			case socket != "" && (o.Resume != "" || o.Latest || o.Fork):
				return cmdutil.Usagef("--resume, --continue and --fork: use them with --stdio; each connection to a socket begins a session")
			}
			if err := cmp.Or(o.Check(), o.Recording.Check(), o.checkOnAsk()); err != nil {
				return err
			}
			if stdio {
				o.format = string(FormatStream)
				return o.runLines(cmd.Context(), nil)
			}
			return cmdutil.Interruptible(cmd.Context(), func(ctx context.Context) error { return o.serveSocket(ctx, socket) })
		},
	}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "run one session on stdin and stdout")
	cmd.Flags().StringVar(&socket, "socket", "", "run a session for each connection to the Unix socket `PATH`, which is created")
	o.onAsk = onAskDeny
	cmdutil.FlagSection(cmd.Flags(), cmdutil.SessionSection, func(f *pflag.FlagSet) {
		o.resumption.register(f)
		f.BoolVar(&o.ephemeral, "ephemeral", false, "do not save the sessions")
	})
	o.Flags.Register(cmd.Flags(), setup.SessionFlags)
	return cmd
}

// serveSocket runs a session for each connection until ctx ends.
func (o *Options) serveSocket(ctx context.Context, path string) error {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("--socket: %w", err)
	}
	shared := &sharing{socket: absolute, sessions: map[string]*driven{}}
	if _, err := o.newLines(ctx, o.IO, shared); err != nil { // wrong settings are reported now
		return err
	}
	listener, err := listen(path)
	if err != nil {
		return fmt.Errorf("--socket: %w", err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer listener.Close()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	fmt.Fprintf(o.Err, "agent: listening on %s\n", path)
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("--socket: %w", err)
		}
		serving.Go(func() {
			defer conn.Close()
			if err := o.serveConn(ctx, shared, conn); err != nil {
				// A client that has gone gets nothing; it is no error of the others.
				_ = json.NewEncoder(conn).Encode(Reply{Type: "reply", Error: &host.Error{Code: host.CodeFailed, Message: err.Error()}})
				fmt.Fprintf(o.Err, "agent: a connection: %v\n", err)
			}
		})
	}
}

// serveConn runs the session of a connection.
func (o *Options) serveConn(ctx context.Context, shared *sharing, conn net.Conn) error {
	if err := checkPeer(conn); err != nil {
		return err
	}
	streams := *o.IO
	streams.In, streams.Out, streams.InTTY, streams.OutTTY, streams.Terminal = conn, conn, false, false, nil
	l, err := o.newLines(ctx, &streams, shared)
	if err != nil {
		return err
	}
	err = l.run(ctx)
	if errors.Is(err, net.ErrClosed) || errors.As(err, new(*net.OpError)) {
		return nil // the client has gone
	}
	return err
}
