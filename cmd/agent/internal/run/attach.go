package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"

	"github.com/seed-009c0928/agent/core/store"
)

// attach passes the lines on to the process that has the session open and serves it on a
// socket.
func (l *lines) attach(ctx context.Context, locked *store.LockedError) error {
	fail := func(err error) error { return fmt.Errorf("%w; attaching failed: %w", locked, err) }
	conn, err := net.Dial("unix", locked.Address)
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	if err := checkPeer(conn); err != nil {
		return fail(err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	open, err := json.Marshal(map[string]string{"type": "open", "id": "attach", "session": locked.ID})
	if err != nil {
		return fail(err)
	}
	if _, err := conn.Write(append(open, '\n')); err != nil {
		return fail(err)
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	first, err := attached(in, locked.ID)
	if err != nil {
		return fail(err)
	}
	if _, err := l.Out.Write(first); err != nil {
		return err
	}
	go func() {
		if _, err := io.Copy(conn, l.In); err == nil {
			_ = conn.(*net.UnixConn).CloseWrite() // the end of stdin
		}
	}()
	if _, err = io.Copy(l.Out, in); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// attached reads up to the reply to open, and returns the lines of the session before it.
// Others are of the session that the connection began with.
func attached(in *bufio.Reader, id string) (lines []byte, err error) {
	for {
		line, long, err := readLine(in)
		if err != nil || long {
			return nil, fmt.Errorf("the connection broke: %v", err)
		}
		var is struct {
			Type, ID, Session string
			Error             *struct{ Message string }
		}
		if err := json.Unmarshal(bytes.TrimSpace(line), &is); err != nil {
			return nil, err
		}
		switch {
		case is.Type == "reply" && is.Error != nil:
			return nil, fmt.Errorf("that process refuses: %s", is.Error.Message)
		case is.Type == "reply" && is.ID == "attach":
			return lines, nil
		case is.Session == id:
			lines = append(lines, line...)
		}
	}
}
