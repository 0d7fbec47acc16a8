package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// ServeStdio serves one client over in and out. It returns nil when in ends, and
// the cause of ctx when ctx is done. Calls in progress are then aborted, without
// a response to a client that has disconnected. A blocked read of in, or a write
// to a client that does not read, is left behind until the process exits.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	err := s.protocol.serveLines(ctx, in, out)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("mcp over stdio: %w", err)
	}
	return nil
}

// serveLines serves a client over newline-delimited messages.
func (p *protocol) serveLines(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := &lineWriter{w: out, broken: make(chan error, 1)}
	defer lines.ended.Store(true) // later messages are dropped
	note := make(chan struct{}, 1)
	c := newClient(func() { signal(note) })
	defer p.unwatch(c)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.work.Go(func() {
		for {
			select {
			case <-note:
				_ = lines.send(notification(mcp.MethodNotificationToolsListChanged, nil)) // errors go to broken
			case <-c.left:
				return
			}
		}
	})
	read := make(chan error, 1)
	go func() { read <- p.readLines(ctx, c, in, lines.send) }()
	var err error
	select {
	case err = <-read:
	case err = <-lines.broken:
	case <-ctx.Done():
	}
	c.drain(drainWait)
	return err
}

// drain waits for the cancelled requests in progress, but no longer than timeout,
// as the client may not read the responses.
func (c *client) drain(timeout time.Duration) {
	c.leave()
	ended := make(chan struct{})
	go func() {
		c.work.Wait()
		close(ended)
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// readLines receives messages until in ends.
func (p *protocol) readLines(ctx context.Context, c *client, in io.Reader, send sendFunc) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, long, err := readLine(lines)
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case long:
			_ = send(errorResponse(nil, fault(mcp.PARSE_ERROR, "the message has more than %d bytes", maxRequest)))
		case len(line) > 0:
			p.receive(ctx, c, line, send)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns the next line, trimmed. A line that is too long is discarded.
func readLine(r *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if !long {
			line = append(line, part...)
		}
		if len(line) > maxRequest {
			line, long = nil, true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), long, err
		}
	}
}

// receive handles a message. Requests are answered after it returns.
func (p *protocol) receive(ctx context.Context, c *client, line []byte, send sendFunc) {
	m, refused := parse(line)
	switch {
	case refused != nil:
		_ = send(errorResponse(m.ID, refused))
		return
	case m.Method == "":
		c.answered(m)
		return
	case !m.HasID():
		p.handleNotification(c, m)
		return
	}
	r, refused := parseRequest(m, nil)
	r.client, r.send = c, send
	var done func()
	if refused == nil {
		ctx, done, refused = c.begin(ctx, m.ID)
	}
	if refused != nil {
		_ = send(errorResponse(m.ID, refused))
		return
	}
	go func() {
		defer c.work.Done()
		defer done()
		answer := p.answer(ctx, r)
		drop := answer.Error != nil && abandoned(ctx)
		if done(); !drop {
			_ = send(answer)
		}
	}()
}

// lineWriter writes each message as a line.
type lineWriter struct {
	broken chan error // buffered, 1

	ended atomic.Bool
	mu    sync.Mutex
	w     io.Writer
}

// send implements sendFunc.
func (l *lineWriter) send(m jsonrpc.Message) error {
	line := append(jsonrpc.Encode(m), '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended.Load() {
		return errLeft
	}
	_, err := l.w.Write(line)
	if err != nil {
		select {
		case l.broken <- err:
		default:
		}
	}
	return err
}
