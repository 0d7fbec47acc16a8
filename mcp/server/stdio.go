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

	"github.com/seed-009c0928/agent/mcp/internal/jsonrpc"
)

// ServeStdio serves the one client at the other end of in and out. It returns
// nil when in ends, and the cause of ctx when that is done. Calls that are under
// way then are aborted; a client that has left gets no answer to them. A read of
// in that does not end is left behind, for the end of the process, and so is a
// write to a client that does not read.
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

// serveLines serves a client that sends and takes a message in each line.
func (p *protocol) serveLines(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := &lineWriter{w: out, broken: make(chan error, 1)}
	defer lines.ended.Store(true) // what comes later is dropped
	note := make(chan struct{}, 1)
	c := newClient(func() { signal(note) })
	defer p.unwatch(c)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.work.Go(func() {
		for {
			select {
			case <-note:
				_ = lines.send(notification(mcp.MethodNotificationToolsListChanged, nil)) // broken tells
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
	c.end(drainWait)
	return err
}

// end waits for the requests that are under way, whose contexts are done, but
// not for one that cannot get rid of its answer.
func (c *client) end(patience time.Duration) {
	c.leave()
	ended := make(chan struct{})
	go func() {
		c.work.Wait()
		close(ended)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// readLines takes messages until in ends.
func (p *protocol) readLines(ctx context.Context, c *client, in io.Reader, tell outlet) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, long, err := readLine(lines)
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case long:
			_ = tell(failed(nil, fault(mcp.PARSE_ERROR, "a message has more than %d bytes", maxRequest)))
		case len(line) > 0:
			p.receive(ctx, c, line, tell)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns the next line without white space around it. Of one that is
// too long it keeps nothing.
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

// receive takes a message. What takes time goes on after it returns.
func (p *protocol) receive(ctx context.Context, c *client, line []byte, tell outlet) {
	m, refused := parse(line)
	switch {
	case refused != nil:
		_ = tell(failed(m.ID, refused))
		return
	case m.Method == "":
		c.answered(m)
		return
	case !m.HasID():
		p.notified(c, m)
		return
	}
	r, refused := open(m, nil)
	r.client, r.tell = c, tell
	var done func()
	if refused == nil {
		ctx, done, refused = c.begin(ctx, m.ID)
	}
	if refused != nil {
		_ = tell(failed(m.ID, refused))
		return
	}
	go func() {
		defer c.work.Done()
		defer done()
		answer := p.answer(ctx, r)
		drop := answer.Error != nil && unwanted(ctx)
		if done(); !drop {
			_ = tell(answer)
		}
	}()
}

// lineWriter writes one message at a time, each as a line.
type lineWriter struct {
	broken chan error // has room for one

	ended atomic.Bool
	mu    sync.Mutex
	w     io.Writer
}

// send implements outlet.
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
