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
	// closeGrace is how long a server has to exit after its stdin is closed, and
	// again after SIGTERM. Then it is killed with all its children.
	closeGrace = 1500 * time.Millisecond
	// tailSize is how many bytes of a server's stderr an error includes.
	tailSize = 2 << 10
)

// stdio is the transport to a child process. The supervisor runs it in a separate
// process session, and kills its children with it.
type stdio struct {
	*session
	spec       proc.Spec
	supervisor *proc.Supervisor
	max        int64
	stderr     tail

	process *proc.Process
	stop    context.CancelFunc // kills the process
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
	t.wg.Go(t.writeInput)
	t.wg.Go(t.awaitExit)
	return nil
}

// startError adds a hint to the error for a missing program.
func startError(spec proc.Spec, err error) error {
	if errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "executable file not found") {
		hint := "is it installed and in PATH?"
		if base := filepath.Base(spec.Path); base == "npx" || base == "uvx" {
			hint = map[string]string{"npx": "install Node.js", "uvx": "install uv"}[base]
		}
		return fmt.Errorf("command %q not found; %s", spec.Path, hint)
	}
	return err
}

// writeInput writes queued messages to the server, whose pipe may be full.
func (t *stdio) writeInput() {
	for {
		select {
		case data := <-t.queue:
			if _, err := t.input.Write(data); err != nil {
				t.failAfterExit(fmt.Errorf("cannot write to its stdin: %w", err))
				return
			}
		case <-t.ctx.Done():
			return
		}
	}
}

// send implements [transport]. It returns when ctx is done, even if the server
// does not read.
func (t *stdio) send(ctx context.Context, m outgoing) error {
	select {
	case t.queue <- append(encode(m.Message), '\n'):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w (the server does not read its stdin)", ctx.Err())
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// awaitExit waits for the process to exit, and ends the session.
func (t *stdio) awaitExit() {
	exit, err := t.process.Wait()
	close(t.exited)
	switch {
	case errors.Is(err, proc.ErrClosed):
		t.fail(ErrClosed)
	case exit.Signal != "":
		t.fail(t.withStderr(fmt.Errorf("the process was killed by %s", exit.Signal)))
	default:
		t.fail(t.withStderr(fmt.Errorf("the process exited with code %d", exit.Code)))
	}
	t.input.Close()
	t.stop()
}

// failAfterExit ends the session after a failed write, unless awaitExit does so
// first with a better cause.
func (t *stdio) failAfterExit(cause error) {
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
		return fmt.Errorf("%w; stderr:\n%s", err, t.secrets.hide([]byte(text)))
	}
	return err
}

// close implements [transport]. It takes at most twice closeGrace plus what the
// supervisor needs, and leaves no process.
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

// pid returns the ID of the server's process, 0 before it is started.
func (t *stdio) pid() int {
	if t.process == nil {
		return 0
	}
	return t.process.Pid()
}

// lines is a writer that splits a stream into lines. A line that is too long is
// reported to fail and ends the stream.
type lines struct {
	max  int64
	emit func(line []byte)
	fail func(error)
	part []byte
}

// Write implements [io.Writer]. A line is valid until emit returns.
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

// tail keeps the last tailSize bytes written.
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

// String returns the text, from the start of a line if possible, without terminal
// control characters.
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
	return strings.TrimSpace(visible(cleanLines(string(text))))
}
