package coretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// foreignLink is one running child and the calls in it. Three goroutines serve
// it, all ended by the child's end: wait reaps the process, read hands out
// what it says, write sends what it is told. close waits for them.
type foreignLink struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *io.PipeReader
	stderr tail
	tools  func(name string, wire []wireTool) error

	greeted chan struct{} // closed at the hello
	dead    chan struct{} // closed when all the child said was handed out; cause is set
	out     chan frame
	wg      sync.WaitGroup
	lastID  atomic.Uint64

	mu    sync.Mutex
	calls map[string]*foreignCall // nil when the child is dead
	cause error
}

// foreignCall is where read puts the frames of a call.
type foreignCall struct {
	id     string
	frames chan frame    // closed when the child is dead
	gone   chan struct{} // closed when nobody takes the frames any more
}

// foreignDeath says why a child is no more.
type foreignDeath struct {
	cause error
	words string // the last that it said on stderr
}

func (e *foreignDeath) Error() string {
	if e.words == "" {
		return e.cause.Error()
	}
	return fmt.Sprintf("%v (its last words: %q)", e.cause, e.words)
}

func (e *foreignDeath) Unwrap() error { return e.cause }

// startLink starts a child. The caller must close the link.
func startLink(exe string, args []string, tools func(string, []wireTool) error) (*foreignLink, error) {
	l := &foreignLink{
		cmd: exec.Command(exe, args...), tools: tools,
		greeted: make(chan struct{}), dead: make(chan struct{}), out: make(chan frame),
		calls: make(map[string]*foreignCall),
	}
	stdin, err := l.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("foreign toolset %s: %w", exe, err)
	}
	stdout, w := io.Pipe()
	l.stdin, l.stdout = stdin, stdout
	l.cmd.Stdout, l.cmd.Stderr = w, &l.stderr
	l.cmd.Env = foreignEnviron()
	l.cmd.SysProcAttr = ownSession()
	l.cmd.WaitDelay = closeGrace // for a grandchild that holds the pipes
	if err := l.cmd.Start(); err != nil {
		return nil, fmt.Errorf("foreign toolset %s: %w", exe, errors.Join(err, stdin.Close()))
	}
	l.wg.Go(func() { l.wait(w) })
	l.wg.Go(l.read)
	l.wg.Go(func() { l.write(stdin) })
	return l, nil
}

// foreignEnviron is the child's environment: what any program needs, and none
// of what this process was trusted with.
func foreignEnviron() []string {
	env := []string{
		foreignVar + "=" + strconv.Itoa(wireVersion),
		"GORACE=atexit_sleep_ms=0", // a race-tested child would take a second to exit
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TEMP", "TMP", "SystemRoot", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// wait reaps the child, ends what it left behind in its group, and then ends
// the stream that read reads.
func (l *foreignLink) wait(stdout *io.PipeWriter) {
	_ = l.cmd.Wait() // how it ended stands in ProcessState
	killGroup(l.cmd.Process)
	_ = stdout.Close()
}

// write sends frames until the child is dead.
func (l *foreignLink) write(stdin io.WriteCloser) {
	defer stdin.Close()
	for {
		select {
		case f := <-l.out:
			if err := writeFrame(stdin, f); err != nil {
				l.kill(fmt.Errorf("its process does not take what it is sent: %w", err))
				return
			}
		case <-l.dead:
			return
		}
	}
}

// read hands out what the child says until the stream ends or makes no sense.
func (l *foreignLink) read() {
	r := newFrameReader(l.stdout)
	for {
		f, err := r.next()
		if err == nil {
			err = l.dispatch(f)
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			l.kill(fmt.Errorf("its process broke the protocol: %w", err))
		}
		// The pipe ends only after the process was reaped. Whatever else it
		// has to say is drained, or it could not be reaped.
		_, _ = io.Copy(io.Discard, l.stdout)
		l.bury()
		return
	}
}

// dispatch hands a frame to whom it concerns. It waits while the taker of a
// call's output is busy, so that no more of it is in memory than a few frames.
func (l *foreignLink) dispatch(f frame) error {
	switch f.Kind {
	case kindHello:
		return l.hello(f)
	case kindTools:
		wire, err := decodePayload[[]wireTool](f)
		if err != nil {
			return err
		}
		return l.tools("", wire)
	case kindOutput, kindProgress, kindAsk, kindResult:
		l.mu.Lock()
		c := l.calls[f.ID]
		l.mu.Unlock()
		if c == nil {
			return nil // of a call that was given up
		}
		select {
		case c.frames <- f:
		case <-c.gone:
		}
		return nil
	}
	return fmt.Errorf("a frame of kind %q is none that a toolset sends", f.Kind)
}

func (l *foreignLink) hello(f frame) error {
	h, err := decodePayload[wireHello](f)
	switch {
	case err != nil:
		return err
	case h.Version != wireVersion:
		return fmt.Errorf("it speaks version %d of the wire, expected %d", h.Version, wireVersion)
	case h.Name == "":
		return errors.New("its hello gives no name")
	}
	select {
	case <-l.greeted:
		return errors.New("it said hello twice")
	default:
	}
	if err := l.tools(h.Name, h.Tools); err != nil {
		return err
	}
	close(l.greeted)
	return nil
}

// bury fails the calls that still wait.
func (l *foreignLink) bury() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = fmt.Errorf("its process ended: %s", l.cmd.ProcessState)
	}
	for _, c := range l.calls {
		close(c.frames)
	}
	l.calls = nil
	close(l.dead)
}

// kill ends the child at once. The first cause given is the one that is told.
func (l *foreignLink) kill(cause error) {
	l.blame(cause)
	killGroup(l.cmd.Process)
	_ = l.cmd.Process.Kill() // fails when it is dead, which is what is wanted
}

func (l *foreignLink) blame(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil && cause != nil {
		l.cause = cause
	}
}

// close asks the child to end by ending its stdin, kills it when it does not,
// and returns when nothing is left of it.
func (l *foreignLink) close(cause error) {
	l.blame(cause)
	_ = l.stdin.Close() // twice is no harm
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-l.dead:
	case <-timer.C:
		l.kill(cause)
	}
	l.wg.Wait()
}

// alive reports whether calls can be made.
func (l *foreignLink) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls != nil && l.cause == nil
}

// death is the error of a call that the child did not survive.
func (l *foreignLink) death() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &foreignDeath{cause: l.cause, words: l.stderr.String()}
}

// call runs one call in the child.
func (l *foreignLink) call(ctx context.Context, name string, call *core.Call) (core.Result, error) {
	c, err := l.begin()
	if err != nil {
		return core.Result{}, err
	}
	defer l.end(c)
	f, err := jsonFrame(kindCall, c.id, wireCall{Name: name, Args: call.Args})
	if err != nil {
		return core.Result{}, err
	}
	if err := l.send(ctx, f); err != nil {
		return core.Result{}, err
	}
	// The questions of a call end with it.
	var asking sync.WaitGroup
	defer asking.Wait()
	askCtx, withdraw := context.WithCancel(ctx)
	defer withdraw()
	for {
		select {
		case f, ok := <-c.frames:
			if !ok {
				return core.Result{}, l.death()
			}
			if f.Kind == kindAsk {
				asking.Go(func() { l.ask(askCtx, call, f) })
				continue
			}
			res, done, err := take(call, f)
			if err != nil {
				l.abandon(c)
				return core.Result{}, err
			}
			if done {
				return res, nil
			}
		case <-ctx.Done():
			l.abandon(c)
			return core.Result{}, ctx.Err()
		}
	}
}

// take does what a frame of a call says; done means that it was the result.
func take(call *core.Call, f frame) (res core.Result, done bool, err error) {
	switch f.Kind {
	case kindOutput:
		if _, err := call.Output.Write(f.payload); err != nil {
			return res, false, fmt.Errorf("its output cannot be kept: %w", err)
		}
	case kindProgress:
		p, err := decodePayload[core.Progress](f)
		if err != nil {
			return res, false, err
		}
		call.Progress(p)
	case kindResult:
		r, err := decodePayload[wireResult](f)
		if err != nil {
			return res, false, err
		}
		return r.result(), true, nil
	}
	return res, false, nil
}

// ask puts a question of the child to the person and sends the answer back.
func (l *foreignLink) ask(ctx context.Context, call *core.Call, f frame) {
	q, err := decodePayload[wireQuestion](f)
	if err != nil {
		l.kill(fmt.Errorf("its process broke the protocol: %w", err))
		return
	}
	answer := wireAnswer{Ask: q.Ask}
	a, err := call.Ask(ctx, core.Question{Kind: q.Kind, Title: q.Title, Choices: q.Choices})
	if err != nil {
		answer.Error = err.Error()
	} else {
		answer.Choice, answer.Reason = a.Choice, a.Reason
	}
	if reply, err := jsonFrame(kindAnswer, f.ID, answer); err == nil {
		_ = l.send(ctx, reply) // fails when the call or the child is over: nobody waits
	}
}

// abandon tells the child that a call is not wanted any more and gives it a
// moment to end it.
func (l *foreignLink) abandon(c *foreignCall) {
	ctx, cancel := context.WithTimeout(context.Background(), cancelGrace)
	defer cancel()
	if l.send(ctx, frame{Kind: kindCancel, ID: c.id}) != nil {
		return
	}
	for {
		select {
		case f, ok := <-c.frames:
			if !ok || f.Kind == kindResult {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// begin enters a call; end must follow.
func (l *foreignLink) begin() (*foreignCall, error) {
	c := &foreignCall{
		id:     strconv.FormatUint(l.lastID.Add(1), 10),
		frames: make(chan frame, 4),
		gone:   make(chan struct{}),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		return nil, &foreignDeath{cause: l.cause}
	}
	l.calls[c.id] = c
	return c, nil
}

func (l *foreignLink) end(c *foreignCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, c.id)
	close(c.gone)
}

// send queues a frame for the child.
func (l *foreignLink) send(ctx context.Context, f frame) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.out <- f:
		return nil
	case <-l.dead:
		return l.death()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tail keeps the last line or so of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 300

// Write implements [io.Writer]; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-tailBytes):]...)
	t.buf = t.buf[max(0, len(t.buf)-tailBytes):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.buf), ""))
}
