package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/proc"
)

const (
	// closeGrace is what a server has to end by itself when its stdin ends, and
	// again after it was asked to (SIGTERM). Then it is killed, and all that it
	// started with it.
	closeGrace = 1500 * time.Millisecond
	// tailSize is how much of what a server wrote to stderr an error shows.
	tailSize = 2 << 10
)

// stdio is the transport to a server that is a child process, which the
// supervisor owns: it has a process session of its own, and its end takes along
// whatever it started.
type stdio struct {
	*session
	spec       proc.Spec
	supervisor *proc.Supervisor
	max        int64
	stderr     tail

	process *proc.Process
	stop    context.CancelFunc // ends the process with force
	input   *os.File
	queue   chan []byte
	exited  chan struct{}
}

func newStdio(s *session, supervisor *proc.Supervisor, spec proc.Spec, limit int64) *stdio {
	return &stdio{session: s, spec: spec, supervisor: supervisor, max: limit, queue: make(chan []byte), exited: make(chan struct{})}
}

// start implements [transport].
func (t *stdio) start(ctx context.Context) error {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	spec := t.spec
	t.stop, t.input = stop, ours
	spec.Stdin, spec.Stderr, spec.Grace = theirs, &t.stderr, closeGrace
	spec.Stdout = &lines{max: t.max, emit: func(line []byte) { t.receive(nil, line) }, fail: func(err error) {
		t.fail(err)
		stop()
	}}
	if t.process, err = t.supervisor.Start(running, spec); err != nil {
		stop()
		ours.Close()
		return startError(spec, err)
	}
	t.wg.Go(t.feed)
	t.wg.Go(t.watch)
	return nil
}

// startError says what to do about a program that is not there.
func startError(spec proc.Spec, err error) error {
	if errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "executable file not found") {
		hint := "is it installed, and in the PATH?"
		if base := filepath.Base(spec.Path); base == "npx" || base == "uvx" {
			hint = map[string]string{"npx": "install Node.js", "uvx": "install uv"}[base]
		}
		return fmt.Errorf("the command %q was not found; %s", spec.Path, hint)
	}
	return err
}

// feed writes to the server, whose pipe may be full.
func (t *stdio) feed() {
	for {
		select {
		case data := <-t.queue:
			if _, err := t.input.Write(data); err != nil {
				t.stopped(fmt.Errorf("it takes no more input: %w", err))
				return
			}
		case <-t.ctx.Done():
			return
		}
	}
}

// send implements [transport]. It hands the message to feed and does not
// outlast ctx, even when the server does not read.
func (t *stdio) send(ctx context.Context, m outgoing) error {
	select {
	case t.queue <- append(encode(m.Message), '\n'):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w (the server does not read its input)", ctx.Err())
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// watch waits for the end of the process, and tells all who wait for it.
func (t *stdio) watch() {
	exit, err := t.process.Wait()
	close(t.exited)
	switch {
	case errors.Is(err, proc.ErrClosed):
		t.fail(ErrClosed)
	case exit.Signal != "":
		t.fail(t.withStderr(fmt.Errorf("its process was ended by %s", exit.Signal)))
	default:
		t.fail(t.withStderr(fmt.Errorf("its process ended with exit code %d", exit.Code)))
	}
	t.input.Close()
	t.stop()
}

// stopped gives watch, who knows more, a moment to say why.
func (t *stdio) stopped(cause error) {
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-t.ctx.Done():
	case <-timer.C:
		t.fail(t.withStderr(cause))
	}
}

func (t *stdio) withStderr(err error) error {
	if text := t.stderr.String(); text != "" {
		return fmt.Errorf("%w; it wrote to stderr:\n%s", err, text)
	}
	return err
}

// close implements [transport]. It takes at most twice closeGrace and what the
// supervisor adds to it, and leaves nothing of the server.
func (t *stdio) close() {
	if t.process == nil {
		return
	}
	t.input.Close()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-t.exited:
	case <-timer.C:
	}
	t.stop()
}

// pid returns the id of the server's process, 0 before it was started.
func (t *stdio) pid() int {
	if t.process == nil {
		return 0
	}
	return t.process.Pid()
}

// lines splits a stream into lines. One that is too long is told to fail, and
// ends the stream.
type lines struct {
	max  int64
	emit func(line []byte)
	fail func(error)
	part []byte
}

// Write implements [io.Writer]. The lines that it hands on are gone when emit
// returns.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		line := p[:i]
		if len(l.part) > 0 {
			line = append(l.part, line...)
		}
		if int64(len(line)) > l.max {
			return 0, l.overflow()
		}
		l.emit(line)
		l.part = nil
		p = p[i+1:]
	}
	if int64(len(l.part)+len(p)) > l.max {
		return 0, l.overflow()
	}
	l.part = append(l.part, p...)
	return n, nil
}

func (l *lines) overflow() error {
	l.part = nil
	err := tooLong(l.max)
	l.fail(err)
	return err
}

// tail keeps the end of a text.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-tailSize):]...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// String returns what was kept, from the beginning of a line if it can, without
// what could steer a terminal.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.text
	if i := bytes.IndexByte(text, '\n'); len(text) == tailSize && i >= 0 && i < len(text)-1 {
		text = text[i+1:]
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return strings.TrimSpace(cleanLines(string(text)))
}
