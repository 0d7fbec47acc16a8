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

	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/sdk/host"
)

// RegisterServe adds the flags of the sessions of [Options.Serve].
func (o *Options) RegisterServe(f *pflag.FlagSet) {
	o.resumption.register(f)
	f.BoolVar(&o.ephemeral, "ephemeral", false, "do not save the sessions")
}

// Serve runs sessions for programs: one on stdin and stdout, or those that connect to a
// socket, if it is named.
func (o *Options) Serve(ctx context.Context, socket string) error {
	o.onAsk = onAskDeny
	if socket != "" && (o.Resume != "" || o.Latest || o.Fork) {
		return cmdutil.Usagef("--resume, --continue and --fork: use them with --stdio; each connection to a socket begins a session")
	}
	if err := cmp.Or(o.Check(), o.Recording.Check(), o.checkOnAsk()); err != nil {
		return err
	}
	if socket == "" {
		o.format = string(FormatStream)
		return o.runLines(ctx, nil)
	}
	return cmdutil.Interruptible(ctx, func(ctx context.Context) error { return o.serveSocket(ctx, socket) })
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
