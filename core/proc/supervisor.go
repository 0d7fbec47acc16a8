package proc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// MarkerEnv is the environment variable by which a command's processes are
// known. Its value has a part for each agent that the process runs under.
const MarkerEnv = "AGENT_PROC_ID"

// ErrClosed is returned by Start after Close, and by Wait for a command that
// Close ended.
var ErrClosed = errors.New("the process supervisor is closed")

// Options configure a [Supervisor]. The zero value is ready for use.
type Options struct {
	// Logger is told when a protection could not be set up; nil discards.
	Logger *slog.Logger
}

// Supervisor starts commands and owns them, together with what it needs to
// end them: a thread that all of them are started from, and the guard. Both
// come to life with the first command. It is safe for concurrent use.
type Supervisor struct {
	logger *slog.Logger
	chain  string // the markers that this process itself was started with
	token  string // begins the marker of every command
	guard  *guard
	kit    *sandbox.Kit

	requests chan startRequest
	quit     chan struct{}
	wg       sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	started  int // commands so far; numbers their markers
	running  map[*Process]struct{}
	active   int  // those of them that still have processes
	orphaned bool // an aborted command may have left orphans without a marker

	// forking is held while a child is born or orphans are reaped: the reaper
	// must know every child that somebody else waits for.
	forking sync.Mutex
	own     map[int]struct{} // children of this supervisor, not yet waited for
	adopts  bool
}

// NewSupervisor returns a supervisor. Whoever makes it closes it.
func NewSupervisor(opts Options) *Supervisor {
	s := &Supervisor{
		logger:   opts.Logger,
		token:    rand.Text(),
		requests: make(chan startRequest),
		quit:     make(chan struct{}),
		running:  map[*Process]struct{}{},
		own:      map[int]struct{}{},
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if outer := os.Getenv(MarkerEnv); outer != "" {
		s.chain = outer + ":"
	}
	s.guard = newGuard(s)
	s.kit = sandbox.NewKit(prober{s}, s.logger)
	return s
}

// Sandbox returns what confines the commands. It can be asked which levels
// work here.
func (s *Supervisor) Sandbox() *sandbox.Kit { return s.kit }

// prober starts what tries the levels of the sandbox.
type prober struct{ s *Supervisor }

func (p prober) Start(cmd *exec.Cmd) error { return p.s.fork(cmd) }
func (p prober) Wait(cmd *exec.Cmd)        { p.s.wait(cmd) }

// Close ends all commands and everything that they left behind, then the
// guard, and waits for it all. It can be called again.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return nil
	}
	s.closed = true
	ran := s.started > 0
	var last []*Process
	for p := range s.running {
		p.cancel(ErrClosed)
		last = append(last, p)
	}
	s.mu.Unlock()
	for _, p := range last {
		<-p.done
	}
	if ran {
		s.endDetached()
	}
	close(s.quit)
	s.guard.stop()
	s.wg.Wait()
	return nil
}

// startRequest is a command on its way to the thread that starts them all.
type startRequest struct {
	cmd  *exec.Cmd
	done chan<- error
}

// begin counts a command in and names it. The starter runs from the first one.
func (s *Supervisor) begin(p *Process) (marker string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", ErrClosed
	}
	if s.started == 0 {
		s.wg.Go(s.starter)
	}
	s.started++
	s.active++
	s.running[p] = struct{}{}
	return fmt.Sprintf("%s.%d.", s.token, s.started), nil
}

// retire notes that a command has no processes any more.
func (s *Supervisor) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

// finish counts a command out.
func (s *Supervisor) finish(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, p)
}

// starter starts the commands. Its thread lives as long as the supervisor and
// runs nothing else: Pdeathsig tells of the death of the thread that started a
// child, and the runtime ends threads as it likes.
func (s *Supervisor) starter() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	for {
		select {
		case r := <-s.requests:
			r.done <- s.fork(r.cmd)
		case <-s.quit:
			return
		}
	}
}

// launch has the starter start cmd.
func (s *Supervisor) launch(ctx context.Context, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	select {
	case s.requests <- startRequest{cmd, done}:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fork starts cmd and notes that it is a child that somebody waits for.
func (s *Supervisor) fork(cmd *exec.Cmd) error {
	s.forking.Lock()
	defer s.forking.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.own[cmd.Process.Pid] = struct{}{}
	return nil
}

// wait waits for a child of fork.
func (s *Supervisor) wait(cmd *exec.Cmd) {
	_ = cmd.Wait() // all that it tells is in cmd.ProcessState
	s.forking.Lock()
	defer s.forking.Unlock()
	delete(s.own, cmd.Process.Pid)
}
