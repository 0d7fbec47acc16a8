package proc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// Timeouts. After the grace period of an aborted command, Wait takes at most
// killTime plus drainTime.
const (
	defaultGrace = 2 * time.Second        // from SIGTERM to SIGKILL
	leftGrace    = 200 * time.Millisecond // the same for processes left running
	heldGrace    = 150 * time.Millisecond // for output still open after the end
	killTime     = time.Second            // for everything to be gone after SIGKILL, which takes long only on a busy machine
	drainTime    = 50 * time.Millisecond  // for the last output after that
)

// Spec describes a command to start.
type Spec struct {
	// Path is the program. A name without a slash is looked up in the PATH of
	// this process; a relative path is relative to Dir.
	Path string
	Args []string // without the program's name
	Dir  string   // empty = that of this process
	// Env is the whole environment, except for the marker; see [FilterEnv].
	Env []string
	// Stdin is the null device if nil. An *os.File is passed to the process
	// itself. Wait does not wait for a Read that blocks when the command ends.
	Stdin io.Reader
	// Stdout and Stderr receive the output; nil discards it. If both are the
	// same writer, it gets the bytes in the order in which they were written,
	// without concurrent writes. Nothing is written after Wait returned. A
	// writer that fails closes the pipe, and Wait returns its error; one that
	// blocks blocks Wait. An *os.File is passed to the process itself.
	Stdout, Stderr io.Writer
	// Terminal gives the command its own terminal instead of the three files.
	// What Stdin has is typed there; its output goes to Stdout. It is supported
	// on Unix only: elsewhere Start fails.
	Terminal   bool
	Rows, Cols int // of the terminal; 0 = 40 and 120
	// Interrupt, once closed, interrupts the command as Ctrl-C on a terminal does:
	// SIGINT to its process group, on Windows CTRL_BREAK.
	Interrupt <-chan struct{}
	// Grace is the time between SIGTERM and SIGKILL; 0 means two seconds.
	Grace time.Duration
	// Sandbox confines the command and everything it starts; nil does not. In a
	// sandbox, processes that the command leaves running end with it.
	Sandbox *sandbox.Profile
}

// Exit is how a process ended.
type Exit struct {
	Code     int    // -1 when a signal ended it
	Signal   string // such as "SIGKILL"
	Duration time.Duration
	Left     int // processes it left running, which were ended
}

// Process is a started command.
type Process struct {
	supervisor *Supervisor
	cmd        *exec.Cmd
	family     *family
	sandbox    *sandbox.Confinement // nil without a sandbox
	grace      time.Duration
	cancel     context.CancelCauseFunc
	start      time.Time
	output     []*pump
	input      *os.File // our end of the pipe to stdin, or nil
	keyboard   *os.File // our end of the terminal, or nil

	exited  chan struct{} // closed when the command has ended
	reaped  chan struct{} // closed when its first process was waited for
	drained chan struct{} // closed when all output was written
	done    chan struct{} // closed when exit and err are set
	left    map[int]struct{}
	ended   *sandbox.Ended // how the command ended, if the helper reported it
	exit    Exit
	err     error
}

// Start starts a command. When ctx is done, the command is ended as described in
// the package documentation. The supervisor owns the process: it is cleaned up
// whether or not Wait is called.
func (s *Supervisor) Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &Process{
		supervisor: s,
		grace:      spec.Grace,
		exited:     make(chan struct{}),
		reaped:     make(chan struct{}),
		drained:    make(chan struct{}),
		done:       make(chan struct{}),
		left:       map[int]struct{}{},
	}
	if p.grace == 0 {
		p.grace = defaultGrace
	}
	// The context must be set before the process is registered as running.
	run, cancel := context.WithCancelCause(ctx)
	p.cancel = cancel
	marker, err := s.begin(p)
	if err != nil {
		cancel(err)
		return nil, err
	}
	if err := p.launch(run, spec, marker); err != nil {
		if errors.Is(context.Cause(run), ErrClosed) {
			err = ErrClosed
		}
		cancel(err)
		s.retire()
		s.finish(p)
		close(p.done)
		return nil, err
	}
	s.wg.Go(func() { p.supervise(run, spec.Interrupt) })
	return p, nil
}

// Pid returns the id of the command's first process, which on sandbox level
// Namespace is the parent of the program.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Sandbox returns the level that confines the command.
func (p *Process) Sandbox() sandbox.Level {
	if p.sandbox == nil {
		return sandbox.None
	}
	return p.sandbox.Level
}

// Aside returns the new names of files that the command created at protected
// paths; call it after Wait. See [sandbox.Profile].
func (p *Process) Aside() []string { return p.sandbox.Aside() }

// Wait waits for the end of the command and of its output. The error is that of
// the context, [ErrClosed], or that of a writer; a failing command is not an
// error but an Exit.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// launch creates the pipes and the command, and starts it.
func (p *Process) launch(ctx context.Context, spec Spec, marker string) error {
	p.cmd = exec.Command(spec.Path, spec.Args...)
	p.cmd.Dir = spec.Dir
	p.cmd.Env = append(slices.Clone(spec.Env), MarkerEnv+"="+p.supervisor.chain+marker)
	p.cmd.SysProcAttr = childAttributes()
	p.supervisor.guard.prepare()
	theirs, err := p.connect(spec)
	if err == nil && spec.Sandbox != nil {
		p.sandbox, err = p.supervisor.sandboxes.Prepare(ctx, spec.Sandbox, p.cmd)
	}
	if err == nil {
		p.start = time.Now()
		if p.sandbox != nil { // it is not this thread that forks
			err = p.supervisor.fork(p.cmd, p.sandbox.Start)
		} else {
			err = p.supervisor.launch(ctx, p.cmd, p.cmd.Start)
		}
	}
	defer closeAll(theirs)
	if err == nil {
		p.family = newFamily(p.cmd, marker, p.start, p.sandbox.Helper())
		p.supervisor.guard.add(p.Pid())
		err = p.enter(ctx)
	}
	if err != nil {
		p.disconnect()
		err = errors.Join(startError(spec, err), p.sandbox.Close())
		p.sandbox.Remove()
		return err
	}
	p.copy(spec.Stdin)
	return nil
}

// enter waits until the command runs in its sandbox.
func (p *Process) enter(ctx context.Context) error {
	if p.sandbox == nil {
		return nil
	}
	err := p.sandbox.Enter(ctx)
	if err != nil {
		p.family.signal(nil, true)
		_ = p.cmd.Process.Kill() // it may not lead a group yet
		p.supervisor.wait(p.cmd)
		p.supervisor.guard.remove(p.Pid())
		p.family.close()
	}
	return err
}

// connect gives the command its files. It returns those to close in this process
// once the command has them.
func (p *Process) connect(spec Spec) (theirs []*os.File, err error) {
	if spec.Terminal {
		return p.connectTerminal(spec)
	}
	switch in := spec.Stdin.(type) {
	case nil:
	case *os.File:
		p.cmd.Stdin = in
	default:
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.cmd.Stdin, p.input = r, w
		theirs = append(theirs, r)
	}
	attach := func(w io.Writer) (io.Writer, error) {
		if w == nil {
			return nil, nil
		}
		if f, ok := w.(*os.File); ok {
			return f, nil
		}
		r, end, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.output = append(p.output, &pump{from: r, to: w})
		theirs = append(theirs, end)
		return end, nil
	}
	if p.cmd.Stdout, err = attach(spec.Stdout); err != nil {
		return theirs, err
	}
	if same(spec.Stdout, spec.Stderr) {
		p.cmd.Stderr = p.cmd.Stdout
		return theirs, nil
	}
	p.cmd.Stderr, err = attach(spec.Stderr)
	return theirs, err
}

// connectTerminal gives the command a terminal.
func (p *Process) connectTerminal(spec Spec) (theirs []*os.File, err error) {
	ours, its, err := openTerminal(cmp.Or(spec.Rows, 40), cmp.Or(spec.Cols, 120))
	if err != nil {
		return nil, fmt.Errorf("create a terminal: %w", err)
	}
	p.keyboard = ours
	to := spec.Stdout
	if to == nil {
		to = io.Discard
	}
	p.output = append(p.output, &pump{from: ours, to: to})
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = its, its, its
	controlTerminal(p.cmd.SysProcAttr)
	return []*os.File{its}, nil
}

// disconnect closes our ends of the pipes of a command that did not start.
func (p *Process) disconnect() {
	for _, o := range p.output {
		o.from.Close()
	}
	if p.input != nil {
		p.input.Close()
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// same reports whether a and b are the same writer.
func same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// startError returns why a command cannot be started. The system reports a
// missing directory like a missing program.
func startError(spec Spec, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if spec.Dir != "" {
		info, statErr := os.Stat(spec.Dir)
		if statErr != nil {
			return fmt.Errorf("start %s: working directory: %w", spec.Path, statErr)
		}
		if !info.IsDir() {
			return fmt.Errorf("start %s: the working directory %s is not a directory", spec.Path, spec.Dir)
		}
	}
	return fmt.Errorf("start %s: %w", spec.Path, err)
}

// supervise waits for the end of the command.
func (p *Process) supervise(ctx context.Context, interrupt <-chan struct{}) {
	defer close(p.done)
	defer p.supervisor.finish(p)
	defer p.cancel(nil)
	go p.await() // ends with the process; see stop for one that cannot be killed
	aborted := false
	select {
	case <-p.exited:
	case <-ctx.Done():
	case <-interrupt:
		p.interrupt()
	}
	select {
	case <-p.exited:
		p.settle(ctx)
	case <-ctx.Done():
		aborted = true
		p.stop(true, p.grace)
	}
	outputErr := p.finishOutput()
	p.leave()
	p.supervisor.retire()
	p.supervisor.collect(aborted)
	p.supervisor.guard.remove(p.Pid())
	p.family.close()
	p.exit = p.result()
	switch {
	case aborted && errors.Is(context.Cause(ctx), ErrClosed):
		p.err = ErrClosed
	case aborted:
		p.err = ctx.Err()
	case outputErr != nil:
		p.err = fmt.Errorf("output of %s: %w", p.cmd.Path, outputErr)
	}
}

// interrupt does what Ctrl-C does.
func (p *Process) interrupt() {
	if p.keyboard == nil {
		p.family.interrupt()
		return
	}
	_ = p.keyboard.SetWriteDeadline(time.Now().Add(killTime)) // it may not read
	_, _ = p.keyboard.Write([]byte{intr})
	_ = p.keyboard.SetWriteDeadline(time.Time{})
}

// await waits for the end of the command. In a sandbox with a helper, the first
// process is the helper, which reports how the command ended and runs until the
// sandbox is closed.
func (p *Process) await() {
	if p.sandbox.Helper() {
		if ended, ok := p.sandbox.Wait(); ok {
			p.ended = &ended
			close(p.exited)
		}
	}
	p.supervisor.wait(p.cmd)
	if p.ended == nil {
		close(p.exited)
	}
	close(p.reaped)
}

// leave closes the sandbox. Its helper ends, and with it all processes in it.
func (p *Process) leave() {
	if p.sandbox == nil {
		return
	}
	if err := p.sandbox.Close(); err != nil {
		p.supervisor.logger.Debug("close the sandbox", "error", err)
	}
	if p.alone() {
		p.supervisor.wg.Go(p.awaitHelper)
	} else {
		p.awaitHelper()
	}
	p.sandbox.Remove()
}

// alone reports whether the helper, which knows its children, is all that is left
// of the command. It then ends on its own, and there is no need to wait until the
// kernel has removed its namespaces.
func (p *Process) alone() bool { return p.ended != nil && !p.ended.Others }

// awaitHelper waits for the end of the sandbox's helper.
func (p *Process) awaitHelper() {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-p.reaped:
	case <-timer.C:
		p.family.signal(nil, true)
	}
}

// settle ends the processes that the command left running.
func (p *Process) settle(ctx context.Context) {
	held := false
	select {
	case <-p.drained:
	default:
		timer := time.NewTimer(heldGrace)
		defer timer.Stop()
		select {
		case <-p.drained:
		case <-timer.C:
			held = true
		case <-ctx.Done():
			held = true
		}
	}
	if held || !p.alone() && p.family.lingers() {
		p.stop(held, leftGrace)
	}
}

// stop asks the command's processes to end, and kills them after the grace
// period. With all set, it includes those outside its group and session.
func (p *Process) stop(all bool, grace time.Duration) {
	p.family.signal(p.members(all), false)
	if p.gone(all, grace) {
		return
	}
	deadline := time.Now().Add(killTime)
	for {
		p.family.signal(p.members(all), true)
		if p.gone(all, min(10*time.Millisecond, time.Until(deadline))) || !time.Now().Before(deadline) {
			return
		}
	}
}

// gone reports whether the command and all its processes ended within d.
func (p *Process) gone(all bool, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		return false
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if len(p.members(all)) == 0 {
			return true
		}
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-timer.C:
			next.Stop()
			return false
		}
	}
}

// members returns the living processes of the command except its first one. Those
// that outlive it are counted.
func (p *Process) members(all bool) []member {
	list := p.family.members(all)
	select {
	case <-p.exited:
		for _, m := range list {
			if !m.exiting {
				p.left[m.pid] = struct{}{}
			}
		}
	default:
	}
	return list
}

// result describes the end of the first process.
func (p *Process) result() Exit {
	exit := Exit{Code: -1, Duration: time.Since(p.start), Left: len(p.left)}
	if p.ended != nil {
		exit.Code, exit.Signal = p.ended.Code, p.ended.Signal
		return exit
	}
	select {
	case <-p.exited:
	default: // killed, but stuck in the kernel
		exit.Signal = "SIGKILL"
		return exit
	}
	if state := p.cmd.ProcessState; state != nil { // nil if other code waited for it
		exit.Code, exit.Signal = status(state)
	}
	return exit
}
