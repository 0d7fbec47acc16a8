package posix

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env/internal/notes"
	"github.com/seed-009c0928/agent/core/proc"
)

var (
	//go:embed scripts/processes.sh
	processLib string
	//go:embed scripts/run.sh
	runScript string
	//go:embed scripts/inner.sh
	innerScript string
	//go:embed scripts/end.sh
	endScript string
)

const (
	endTime   = 5 * time.Second        // timeout of the script that ends a command
	startTime = time.Second            // for a command to start after its context is done
	heldTime  = 250 * time.Millisecond // without output, if output stays open after the end
	cutTime   = 500 * time.Millisecond // for the connection to close after the command ended
)

// process is a command.
type process struct {
	env     *Env
	ctx     context.Context // ends the command
	cancel  context.CancelCauseFunc
	token   string // in the environment of all its processes
	control *control
	seen    *activity
	start   time.Time

	hangUp context.CancelFunc // closes the connection
	ran    chan struct{}      // the connection has ended
	runErr error              // set when ran is closed

	withheld *notes.Withheld

	done chan struct{} // exit and err are set
	exit core.Exit
	err  error
}

// Start implements [core.Environment].
func (e *Env) Start(ctx context.Context, cmd core.Command) (core.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, ok := e.runner.(TerminalRunner); cmd.Terminal && !ok {
		return nil, fmt.Errorf("commands cannot have a terminal in this environment: %w", errors.ErrUnsupported)
	}
	argv, err := e.commandLine(cmd)
	if err != nil {
		return nil, err
	}
	header, err := e.header(cmd.Env)
	if err != nil {
		return nil, err
	}
	dir, err := e.abs(cmd.Dir)
	if err != nil {
		return nil, err
	}
	p := &process{
		env:   e,
		token: fmt.Sprintf("%s.%d.", e.token, e.started.Add(1)),
		start: time.Now(),
		ran:   make(chan struct{}),
		done:  make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	if err := e.begin(p); err != nil {
		p.cancel(err)
		return nil, err
	}
	p.withheld = notes.WatchWithheld(e.unset, &cmd)
	p.connect(cmd, header, dir, argv)
	go p.supervise(cmd.Interrupt) // ends with the command, which Env.Close ends
	return p.started(cmd, dir)
}

// commandLine returns the argv of a command.
func (e *Env) commandLine(cmd core.Command) ([]string, error) {
	switch {
	case cmd.Script == "" && len(cmd.Argv) == 0:
		return nil, errors.New("the command is empty: set its Script or its Argv")
	case cmd.Script != "" && len(cmd.Argv) > 0:
		return nil, errors.New("the command has both a Script and an Argv: set one of them")
	case cmd.Script != "":
		return append(slices.Clone(e.shell), cmd.Script), nil
	case cmd.Argv[0] == "" || cmd.Argv[0][0] == '-':
		return nil, fmt.Errorf("start %q: invalid program name: %w", cmd.Argv[0], fs.ErrNotExist)
	}
	return cmd.Argv, nil
}

// header is the first line of a command's stdin: shell code that unsets the
// withheld variables and sets those of the command.
func (e *Env) header(env []string) (string, error) {
	var b strings.Builder
	if len(e.unset) > 0 {
		b.WriteString("unset " + strings.Join(e.unset, " ") + ";")
	}
	for _, entry := range env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !isName(name) {
			return "", fmt.Errorf("invalid variable name %q: use letters, digits and _", name)
		}
		if strings.ContainsRune(value, 0) {
			return "", fmt.Errorf("the variable %s contains a NUL byte: %w", name, fs.ErrInvalid)
		}
		fmt.Fprintf(&b, "export %s=%s;", name, quote(value))
	}
	return b.String(), nil
}

// quote returns a value as a shell word on one line. Newlines become the variable
// that [newline] defines, in double quotes.
func quote(value string) string {
	value = strings.ReplaceAll(value, "'", `'\''`)
	return "'" + strings.ReplaceAll(value, "\n", `'"$agent_newline_"'`) + "'"
}

// newline defines the variable that quoted words use for a newline. The x after
// it keeps the shell from removing the newline.
const newline = `agent_newline_=$(printf '\nx'); agent_newline_=${agent_newline_%x}; `

// ByLine returns a POSIX shell script that reads a line of code from its stdin, and
// the stdin with which it execs argv: a line, then stdin. It is for runners that
// reach only a shell, or whose arguments may not have any bytes.
func ByLine(argv []string, stdin io.Reader) (script string, input io.Reader) {
	words := make([]string, 0, len(argv))
	for _, word := range argv {
		words = append(words, quote(word))
	}
	input = strings.NewReader(newline + "set -- " + strings.Join(words, " ") + "; unset agent_newline_; exec \"$@\"\n")
	if stdin != nil {
		input = io.MultiReader(input, stdin)
	}
	return `IFS= read -r agent_line_ && eval "unset agent_line_; $agent_line_"`, input
}

// connect runs the command's witness in the background.
func (p *process) connect(cmd core.Command, header, dir string, argv []string) {
	// At level 1, bash takes itself for the login shell of sshd and reads .bashrc.
	header = newline + "export SHLVL=1 " + proc.MarkerEnv + "=" + p.token + ";" + header + "unset agent_newline_\n"
	var stdin io.Reader = strings.NewReader(header)
	input := ""
	if cmd.Stdin != nil {
		stdin, input = io.MultiReader(stdin, cmd.Stdin), "input"
	}
	merged := ""
	p.seen = &activity{}
	stdout, stderr := p.seen.watch(cmd.Stdout), p.seen.watch(cmd.Stderr)
	if notes.Same(cmd.Stdout, cmd.Stderr) {
		merged, stderr = "merged", nil
	}
	secret := rand.Text() // so that the command cannot fake messages of the witness
	run, hangUp := context.WithCancel(context.WithoutCancel(p.ctx))
	p.hangUp = hangUp
	if cmd.Terminal {
		p.control = newControl(stdout, secret)
		go p.runTerminal(run, cmd, []string{"sh", "-c", processLib + runScript, "sh", innerScript, "merged", secret, dir, "terminal"}, argv, header)
		return
	}
	p.control = newControl(stderr, secret)
	full := append([]string{"sh", "-c", processLib + runScript, "sh", innerScript, merged, secret, dir, input}, argv...)
	go func() { // supervise waits for it
		defer close(p.ran)
		p.runErr = p.env.runner.Run(run, full, stdin, stdout, p.control)
		if err := p.control.flush(); p.runErr == nil {
			p.runErr = err
		}
	}()
}

// started waits until the command runs, or returns why it does not.
func (p *process) started(cmd core.Command, dir string) (core.Process, error) {
	select {
	case <-p.control.begun:
		if p.control.start[0] == "started" {
			return p, nil
		}
		<-p.done
	case <-p.done:
		select {
		case <-p.control.begun:
			if p.control.start[0] == "started" { // and ended already
				return p, nil
			}
		default:
			return nil, p.notStarted()
		}
	}
	if p.control.start[1] == "dir" {
		return nil, &fs.PathError{Op: "start", Path: dir, Err: fmt.Errorf("cannot enter the working directory: %w", fs.ErrNotExist)}
	}
	name := path.Base(p.env.shell[0])
	if cmd.Script == "" {
		name = cmd.Argv[0]
	}
	return nil, fmt.Errorf("start %s: program not found: %w", name, fs.ErrNotExist)
}

// notStarted returns why there was no message from the witness.
func (p *process) notStarted() error {
	if p.ctx.Err() != nil && p.err != nil {
		return p.err
	}
	if errors.Is(p.runErr, errors.ErrUnsupported) {
		return fmt.Errorf("start the command: %w", p.runErr)
	}
	return fmt.Errorf("start the command: %w", connectionError(p.runErr, p.control.text()))
}

// begun reports whether the command has started.
func (p *process) begun() bool {
	select {
	case <-p.control.begun:
		return p.control.start[0] == "started"
	default:
		return false
	}
}

// Wait implements [core.Process].
func (p *process) Wait() (core.Exit, error) {
	<-p.done
	return p.exit, p.err
}

// end implements closer.
func (p *process) end() { p.cancel(ErrClosed) }

// supervise waits for the end of the command.
func (p *process) supervise(interrupt <-chan struct{}) {
	defer p.env.retire(p)
	defer close(p.done)
	defer p.cancel(nil)
	defer p.hangUp()
	aborted, left := false, 0
	select {
	case <-p.ran:
	case <-p.control.ended:
	case <-p.ctx.Done():
	case <-interrupt:
		p.interrupt()
	}
	select {
	case <-p.ran:
	case <-p.control.ended:
		left = p.settle()
	case <-p.ctx.Done():
		aborted = true
		p.abort()
	}
	p.exit = p.result(left, aborted)
	switch {
	case aborted && errors.Is(context.Cause(p.ctx), ErrClosed):
		p.err = ErrClosed
	case aborted:
		p.err = p.ctx.Err()
	default:
		if _, _, ok := p.control.status(); ok {
			p.err = p.runErr // a writer failed
		} else if p.begun() {
			p.err = p.lost()
		}
	}
	if p.err == nil {
		p.withheld.Explain(p.exit)
	}
}

// interrupt sends SIGINT to the command's group.
func (p *process) interrupt() {
	ctx, cancel := context.WithTimeout(p.ctx, endTime)
	defer cancel()
	if t := p.target(); t.group != "-" {
		_ = p.env.runner.Run(ctx, []string{"sh", "-c", `kill -INT "-$1"`, "sh", t.group}, nil, nil, nil) // it may have ended
	}
}

// settle waits for the last output of a command that has ended. Processes that
// keep the output open without writing are ended; it returns their number.
func (p *process) settle() (left int) {
	if p.silent() {
		ctx, cancel := context.WithTimeout(p.ctx, endTime)
		defer cancel()
		left, _ = p.env.endProcesses(ctx, p.target()) // the connection is closed in any case
		p.waitOrCut(cutTime)
	}
	return left
}

// silent waits for the connection to close and reports whether instead there was
// no output for a while.
func (p *process) silent() bool {
	for {
		before := p.seen.count.Load()
		timer := time.NewTimer(heldTime)
		select {
		case <-p.ran:
			timer.Stop()
			return false
		case <-p.ctx.Done():
			timer.Stop()
			return true
		case <-timer.C:
		}
		if p.seen.count.Load() == before && p.seen.writing.Load() == 0 {
			return true
		}
	}
}

// abort ends the command and everything it started.
func (p *process) abort() {
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case <-p.control.begun:
	case <-p.ran:
	case <-timer.C: // if it starts later, its stdin has ended
		p.hangUp()
		<-p.ran
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), endTime)
	defer cancel()
	_, _ = p.env.endProcesses(ctx, p.target()) // Close tries again, by the token
	p.waitOrCut(cutTime)
}

// waitOrCut waits for the connection to close, and closes it after d.
func (p *process) waitOrCut(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ran:
	case <-timer.C:
		p.hangUp()
		<-p.ran
	}
}

// result describes the end of the command.
func (p *process) result(left int, aborted bool) core.Exit {
	exit := core.Exit{Code: -1, Duration: time.Since(p.start), Left: left}
	status, left, ok := p.control.status()
	if !ok {
		if aborted { // the witness has ended too
			exit.Signal = "SIGKILL"
		}
		return exit
	}
	exit.Left += left
	exit.Code = status
	if name := signalName(status - 128); name != "" {
		exit.Code, exit.Signal = -1, name
	}
	return exit
}

// signals are the signal names common to all systems, and those of Linux.
var signals = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
	9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
	24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}

func signalName(n int) string { return signals[n] }

// target identifies the processes of a command.
type target struct{ token, group, witness string }

func (p *process) target() target {
	t := target{token: p.token, group: "-", witness: "-"}
	select {
	case <-p.control.begun:
		if words := p.control.start; len(words) == 3 {
			t.group, t.witness = words[1], words[2]
		}
	default:
	}
	return t
}

// endProcesses ends processes and returns how many there were.
func (e *Env) endProcesses(ctx context.Context, t target) (int, error) {
	var out bytes.Buffer
	stderr := &tail{}
	err := e.runner.Run(ctx, []string{"sh", "-c", processLib + endScript, "sh", t.token, t.group, t.witness}, nil, &out, stderr)
	var n int
	if _, scanErr := fmt.Sscan(out.String(), &n); scanErr != nil {
		return 0, connectionError(err, stderr.text())
	}
	return n, err
}

// activity counts writes of output.
type activity struct{ count, writing atomic.Int64 }

// watch returns w with its writes counted, or nil for nil.
func (a *activity) watch(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return &watched{Writer: w, activity: a}
}

type watched struct {
	io.Writer
	activity *activity
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	w.activity.count.Add(1)
	w.activity.writing.Add(1)
	defer w.activity.writing.Add(-1)
	return w.Writer.Write(p)
}
