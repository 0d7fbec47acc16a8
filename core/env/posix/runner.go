package posix

import (
	"bytes"
	"context"
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

// Runner returns a runner that appends the argv to run to args.
func (c *CLI) Runner(args ...string) Runner { return cliRunner{c, args} }

// Close ends all processes, if the CLI created the supervisor.
func (c *CLI) Close() error {
	if c.owned {
		return c.supervisor.Close()
	}
	return nil
}

type cliRunner struct {
	cli  *CLI
	args []string
}

// Run implements [Runner].
func (r cliRunner) Run(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if slices.ContainsFunc(argv, func(arg string) bool { return !utf8.ValidString(arg) }) { // JSON has no such strings
		var script string
		script, stdin = ByLine(argv, stdin)
		argv = []string{"sh", "-c", script}
	}
	p, err := r.cli.Start(ctx, slices.Concat(r.args, argv), stdin, stdout, stderr)
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}
