package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
)

// terminal is a terminal of the client that shows the output of a command. The command
// itself runs in the agent's environment, with its sandbox; what the client runs is
// [Tail], which prints what comes from a socket.
type terminal struct {
	session *session
	call    string

	mu        sync.Mutex
	id        string // at the client, once it is shown
	connected bool   // Tail is there
	ended     bool
	frames    []frame // to be sent
	size      int     // bytes of their texts
	more      chan struct{}
}

// frame is a line on the socket.
type frame struct {
	Text string `json:"text,omitempty"`
	Exit *int   `json:"exit,omitempty"` // the end
}

// Limits of a terminal: of the text that waits for it, and of what takes its time.
const (
	maxWaiting   = 8 << 20
	terminalTime = 5 * time.Second
)

// openTerminal opens a terminal for the output of a call, if the client has any.
func (s *session) openTerminal(callID string) *terminal {
	if !s.server.capabilities().Terminal || len(s.server.Tail) == 0 {
		return nil
	}
	t := &terminal{session: s, call: callID, more: make(chan struct{}, 1)}
	s.asking.Go(func() {
		if err := t.run(s.ctx); err != nil && s.ctx.Err() == nil {
			s.notice("warning", "A terminal could not be shown", err.Error())
		}
	})
	return t
}

// write shows a part of the output.
func (t *terminal) write(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.size += len(text); t.size <= maxWaiting {
		t.push(frame{Text: text})
	}
}

// end ends the terminal, and returns how it looks in the result of the call; nil if
// it was not shown.
func (t *terminal) end(code int) *protocol.ToolCallContent {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.push(frame{Exit: &code})
	if !t.connected {
		return nil
	}
	return t.content()
}

// push adds a frame. The caller holds the lock.
func (t *terminal) push(f frame) {
	t.frames = append(t.frames, f)
	select {
	case t.more <- struct{}{}:
	default:
	}
}

func (t *terminal) content() *protocol.ToolCallContent {
	return &protocol.ToolCallContent{Tag: "terminal", Value: &protocol.Terminal{TerminalID: t.id}}
}

// run opens the terminal and sends it the output, to the end.
func (t *terminal) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "agent-acp-") // for this user only
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "out")
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return err
	}
	defer ln.Close()
	tail := append(append([]string{}, t.session.server.Tail...), path)
	r := protocol.CreateTerminalRequest{SessionID: t.session.ID(), Command: tail[0], Args: tail[1:], Cwd: t.session.opened.Dir}
	var created protocol.CreateTerminalResponse
	if err := t.session.server.conn.Call(ctx, protocol.MethodTerminalCreate, r, &created); err != nil {
		return err
	}
	defer t.release(ctx, created.TerminalID)
	if !t.show(created.TerminalID) {
		return nil // the command was quicker
	}
	_ = ln.(*net.UnixListener).SetDeadline(time.Now().Add(terminalTime))
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	conn, err := ln.Accept()
	if err != nil {
		return fmt.Errorf("the command of the terminal did not start: %w", err)
	}
	defer conn.Close()
	t.mu.Lock()
	t.connected = true
	t.mu.Unlock()
	return t.send(ctx, conn)
}

// show shows the terminal with the call, unless that has ended.
func (t *terminal) show(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.id = id
	if !t.ended {
		t.session.update("tool_call_update", &protocol.ToolCallUpdate{ToolCallID: t.call, Content: []protocol.ToolCallContent{*t.content()}})
	}
	return !t.ended
}

// send sends the frames until the end.
func (t *terminal) send(ctx context.Context, conn net.Conn) error {
	out := json.NewEncoder(conn)
	for {
		t.mu.Lock()
		frames := t.frames
		t.frames, t.size = nil, 0
		t.mu.Unlock()
		for _, f := range frames {
			_ = conn.SetWriteDeadline(time.Now().Add(terminalTime))
			if err := out.Encode(f); err != nil || f.Exit != nil {
				return nil // the end, or the user has closed the terminal
			}
		}
		select {
		case <-t.more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// release waits until the command of the terminal has ended, or ends it, and tells the
// client that the agent does not use it any more.
func (t *terminal) release(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, terminalTime)
	defer cancel()
	conn, session := t.session.server.conn, t.session.ID()
	t.mu.Lock()
	connected := t.connected
	t.mu.Unlock()
	var exit protocol.WaitForTerminalExitResponse
	if !connected || conn.Call(ctx, protocol.MethodTerminalWaitForExit, protocol.WaitForTerminalExitRequest{SessionID: session, TerminalID: id}, &exit) != nil {
		_ = conn.Call(ctx, protocol.MethodTerminalKill, protocol.KillTerminalRequest{SessionID: session, TerminalID: id}, &protocol.KillTerminalResponse{})
	}
	after, done := context.WithTimeout(context.WithoutCancel(ctx), terminalTime)
	defer done()
	_ = conn.Call(after, protocol.MethodTerminalRelease, protocol.ReleaseTerminalRequest{SessionID: session, TerminalID: id}, &protocol.ReleaseTerminalResponse{})
}

// Tail prints the output that comes from a socket, and returns the exit code of the
// command.
func Tail(ctx context.Context, socket string, out io.Writer) (code int, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return 0, fmt.Errorf("this command is for agent acp: %w", err)
	}
	defer conn.Close()
	for dec := json.NewDecoder(conn); ; {
		var f frame
		switch err := dec.Decode(&f); {
		case errors.Is(err, io.EOF):
			return 0, errors.New("the agent has ended")
		case err != nil:
			return 0, err
		case f.Exit != nil:
			return *f.Exit, nil
		}
		if _, err := io.WriteString(out, f.Text); err != nil {
			return 0, err
		}
	}
}
