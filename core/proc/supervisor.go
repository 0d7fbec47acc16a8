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

// MarkerEnv is the environment variable that identifies a command's processes.
// Its value has a part for each agent that the process runs under.
const MarkerEnv = "AGENT_PROC_ID"

// ErrClosed is returned by Start after Close, and by Wait for a command that
// Close ended.
var ErrClosed = errors.New("the process supervisor is closed")

// Options configure a [Supervisor]. The zero value is ready for use.
type Options struct {
	// Logger logs protections that could not be set up; nil discards.
	Logger *slog.Logger
}

// Supervisor starts commands and owns them. With the first command it starts what
// it needs to end them: a thread from which all commands are started, and the
// guard. It is safe for concurrent use.
type Supervisor struct {
	logger    *slog.Logger
	chain     string // the markers in this process's own environment
	token     string // prefix of the marker of every command
	guard     *guard
	sandboxes *sandbox.Manager

	starting sync.Once // the starter
	prepares sync.WaitGroup
	requests chan startRequest
	quit     chan struct{}
	wg       sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	started  int // number of commands so far, used in their markers
	running  map[*Process]struct{}
	active   int  // commands that still have processes
	orphaned bool // an aborted command may have left orphans without a marker

	// forking is held while a child is started or orphans are reaped: the reaper
	// must know every child that other code waits for.
	forking sync.Mutex
	own     map[int]struct{} // children of this supervisor, not yet waited for
	brand   uint64           // of the commands, see newBrand; 0 until there is a guard
	adopts  bool
}

// NewSupervisor returns a supervisor. The caller must close it.
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
	s.sandboxes = sandbox.NewManager(runner{s}, s.logger)
	return s
}

// Sandbox returns the sandbox of the commands, which knows the levels that work
// on this machine.
func (s *Supervisor) Sandbox() *sandbox.Manager { return s.sandboxes }

// Prepare starts what the first command would have to wait for: the guard and, unless
// the mode is off, what the sandbox needs. It is for callers that have something else to
// do before that command starts.
func (s *Supervisor) Prepare(ctx context.Context, mode sandbox.Mode) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.prepares.Add(1)
	s.mu.Unlock()
	defer s.prepares.Done()
	s.guard.prepare()
	_, _ = s.sandboxes.Choose(ctx, mode) // the command gets the error
}

// runner starts processes of the sandbox.
type runner struct{ s *Supervisor }

func (r runner) Start(cmd *exec.Cmd, start func() error) error {
	return r.s.launch(context.Background(), cmd, start)
}
func (r runner) Wait(cmd *exec.Cmd) { r.s.wait(cmd) }

// Close ends all commands and the processes they left running, then the guard,
// and waits for all of them. It may be called again.
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
	s.prepares.Wait()
	if ran {
		s.endDetached()
	}
	s.sandboxes.Close()
	close(s.quit)
	s.guard.stop()
	s.wg.Wait()
	return nil
}

// startRequest is a command for the thread that starts all commands.
type startRequest struct {
	cmd   *exec.Cmd
	start func() error
	done  chan<- error
}

// begin registers a command and names it.
func (s *Supervisor) begin(p *Process) (marker string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", ErrClosed
	}
	s.started++
	s.active++
	s.running[p] = struct{}{}
	return fmt.Sprintf("%s.%d.", s.token, s.started), nil
}

// retire records that a command has no more processes.
func (s *Supervisor) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

// finish removes a command.
func (s *Supervisor) finish(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, p)
}

// starter starts the commands. Its thread lives as long as the supervisor and
// runs nothing else: Pdeathsig is sent when the thread that started a child ends,
// and the runtime may end other threads at any time.
func (s *Supervisor) starter() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	for {
		select {
		case r := <-s.requests:
			r.done <- s.fork(r.cmd, r.start)
		case <-s.quit:
			return
		}
	}
}

// launch makes the starter call start, which starts cmd. The first call starts the
// starter.
func (s *Supervisor) launch(ctx context.Context, cmd *exec.Cmd, start func() error) error {
	s.starting.Do(func() { s.wg.Go(s.starter) })
	done := make(chan error, 1)
	select {
	case s.requests <- startRequest{cmd, start, done}:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	case <-s.quit:
		return ErrClosed
	}
}

// fork calls start and registers cmd as a child that this program waits for.
func (s *Supervisor) fork(cmd *exec.Cmd, start func() error) error {
	s.forking.Lock()
	defer s.forking.Unlock()
	if err := branded(s.brand, start); err != nil {
		return err
	}
	s.own[cmd.Process.Pid] = struct{}{}
	return nil
}

// wait waits for a child of fork.
func (s *Supervisor) wait(cmd *exec.Cmd) {
	awaitEnd(cmd.Process.Pid)
	_ = cmd.Wait() // the result is in cmd.ProcessState
	s.forking.Lock()
	defer s.forking.Unlock()
	delete(s.own, cmd.Process.Pid)
}
