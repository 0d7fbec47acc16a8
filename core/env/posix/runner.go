package posix

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/proc"
)

// Runner runs programs in a userland. It is safe for concurrent use.
type Runner interface {
	// Run runs a program to its end, in a session without a terminal, and
	// returns once its output was written. A nil writer discards; stdin may be
	// nil, and Run does not wait for a Read of it that blocks at the end. The
	// exit status is ignored: err means that the program could not be run, the
	// connection was lost, or a writer failed.
	//
	// When ctx is done, Run closes the connection and returns ctx's error soon.
	// The program need not end then, but its stdin must.
	Run(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) error
}

// TerminalRunner is a [Runner] that can give a program a terminal.
type TerminalRunner interface {
	// RunTerminal is Run with a terminal of that size, the controlling one of the
	// program's session. It starts without echo and without processing of input
	// and output, so that stdin may have any bytes. Its output goes to stdout.
	RunTerminal(ctx context.Context, argv []string, rows, cols int, stdin io.Reader, stdout io.Writer) error
}

// CLIOptions configure a [CLI].
type CLIOptions struct {
	Command string // the program, a name in PATH or a path
	// Environ is the environment of the program, nil = that of this process.
	// Secrets are removed from it.
	Environ []string
	// Supervisor starts the program; its owner closes it. With nil, the CLI
	// creates one and closes it.
	Supervisor *proc.Supervisor
	// Logger logs protections that could not be set up; nil discards.
	Logger *slog.Logger
}

// CLI is a local program that gives access to a userland, such as docker or
// kubectl. It is safe for concurrent use.
type CLI struct {
	command    string
	environ    []string
	supervisor *proc.Supervisor
	owned      bool
}

// NewCLI returns the program. The caller must close it.
func NewCLI(opts CLIOptions) *CLI {
	c := &CLI{command: opts.Command, supervisor: opts.Supervisor, environ: opts.Environ}
	if c.environ == nil {
		c.environ = os.Environ()
	}
	c.environ = proc.FilterEnv(c.environ, proc.InheritAll, clientNames...)
	if c.supervisor == nil {
		c.supervisor = proc.NewSupervisor(proc.Options{Logger: opts.Logger})
		c.owned = true
	}
	return c
}

// clientNames are variables with which clients sign in.
var clientNames = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "DOCKER_AUTH_CONFIG"}

// cliGrace is how long the program may take to end when asked to.
const cliGrace = 200 * time.Millisecond

// Start starts the program. The process ends with ctx and with the supervisor.
func (c *CLI) Start(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (*proc.Process, error) {
	p, err := c.supervisor.Start(ctx, proc.Spec{
		Path:   c.command,
		Args:   args,
		Env:    c.environ,
		Stdin:  stdin,
		Stdout: stdout,
		Stderr: stderr,
		Grace:  cliGrace,
	})
	if errors.Is(err, syscall.E2BIG) {
		return nil, fmt.Errorf("the command is too long for this system: write it to a file and run the file: %w", err)
	}
	return p, err
}

// Output runs the program to its end and returns its standard output. If it
// fails, the error contains its standard error.
func (c *CLI) Output(ctx context.Context, args ...string) (string, error) {
	var stdout bytes.Buffer
	stderr := &tail{}
	p, err := c.Start(ctx, args, nil, &stdout, stderr)
	if err != nil {
		return "", err
	}
	exit, err := p.Wait()
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("%s %s: %s", c.command, args[0], strings.TrimSpace(stderr.text()))
	}
	return stdout.String(), err
}

// Runner returns a runner that appends the argv to run to args. It is a
// [TerminalRunner]: the flags, after the first of args, make the program connect
// its terminal with one of the userland.
func (c *CLI) Runner(args []string, terminal ...string) Runner { return cliRunner{c, args, terminal} }

// Close ends all processes, if the CLI created the supervisor.
func (c *CLI) Close() error {
	if c.owned {
		return c.supervisor.Close()
	}
	return nil
}

type cliRunner struct {
	cli      *CLI
	args     []string
	terminal []string
}

var _ TerminalRunner = cliRunner{}

// Run implements [Runner].
func (r cliRunner) Run(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
	argv, stdin = encodable(argv, stdin)
	p, err := r.cli.Start(ctx, slices.Concat(r.args, argv), stdin, stdout, stderr)
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// encodable returns a command line that JSON can have, and its stdin.
func encodable(argv []string, stdin io.Reader) ([]string, io.Reader) {
	if !slices.ContainsFunc(argv, func(arg string) bool { return !utf8.ValidString(arg) }) {
		return argv, stdin
	}
	script, stdin := ByLine(argv, stdin)
	return []string{"sh", "-c", script}, stdin
}

// RunTerminal implements [TerminalRunner]. The program runs on a terminal of this
// machine, and passes on what is typed there as it is once it has connected the two.
func (r cliRunner) RunTerminal(ctx context.Context, argv []string, rows, cols int, stdin io.Reader, stdout io.Writer) error {
	argv, stdin = encodable(argv, stdin)
	script := fmt.Sprintf(`stty raw -echo rows %d cols %d; printf '%%s\n' "$0"; exec "$@"`, rows, cols)
	text := rand.Text()
	args := slices.Concat(r.args[:1], r.terminal, r.args[1:], []string{"sh", "-c", script, text}, argv)
	out, ended := &mark{Writer: stdout, text: []byte(text), written: make(chan struct{})}, make(chan struct{})
	defer close(ended)
	p, err := r.cli.supervisor.Start(ctx, proc.Spec{
		Path: r.cli.command, Args: args, Env: r.cli.environ, Stdin: &after{stdin, out.written, ended}, Stdout: out,
		Terminal: true, Rows: rows, Cols: cols, Grace: cliGrace,
	})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// mark notices when a text is written.
type mark struct {
	io.Writer
	text, seen []byte
	written    chan struct{} // closed then
}

// Write implements io.Writer.
func (m *mark) Write(p []byte) (int, error) {
	if m.text != nil {
		m.seen = append(m.seen, p...)
		if bytes.Contains(m.seen, m.text) {
			close(m.written)
			m.text, m.seen = nil, nil
		}
	}
	return m.Writer.Write(p)
}

// after reads from a reader once a channel is closed.
type after struct {
	from        io.Reader
	open, ended <-chan struct{}
}

// Read implements io.Reader.
func (a *after) Read(p []byte) (int, error) {
	select {
	case <-a.open:
		return a.from.Read(p)
	case <-a.ended:
		return 0, io.EOF
	}
}
