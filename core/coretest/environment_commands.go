package coretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
)

func (e *envTest) startRefuses() {
	for what, cmd := range map[string]core.Command{
		"neither a script nor arguments": {},
		"both a script and arguments":    {Script: "true", Argv: []string{"true"}},
	} {
		if _, err := e.env.Start(e.Context(), cmd); err == nil {
			e.Errorf("a command with %s was started", what)
		}
	}
}

func (e *envTest) noShell() {
	if shell := e.env.Info().Shell; shell != "" {
		e.Errorf("Info names the shell %q", shell)
	}
	_, err := e.env.Start(e.Context(), core.Command{Script: "true"})
	if err == nil || !strings.Contains(err.Error(), "shell") {
		e.Errorf("Start = %v, want an error about the missing shell", err)
	}
}

func (e *envTest) exec() {
	e.put("dir/file", "x")
	tests := []struct {
		name           string
		cmd            core.Command
		stdout, stderr string
		code           int
		signal         string
	}{
		{name: "streams", cmd: core.Command{Script: "echo out; echo err >&2"}, stdout: "out\n", stderr: "err\n"},
		{name: "exit code", cmd: core.Command{Script: "exit 42"}, code: 42},
		{name: "signal", cmd: core.Command{Script: "kill -KILL $$"}, code: -1, signal: "SIGKILL"},
		{name: "no input", cmd: core.Command{Script: "cat"}},
		{name: "input", cmd: core.Command{Script: "cat", Stdin: strings.NewReader("in\n")}, stdout: "in\n"},
		{name: "unread input", cmd: core.Command{Script: "true", Stdin: bytes.NewReader(make([]byte, 1<<20))}},
		{name: "variable", cmd: core.Command{Script: `echo "$ADDED"`, Env: []string{"ADDED=value"}}, stdout: "value\n"},
		{name: "working directory", cmd: core.Command{Script: "ls"}, stdout: "dir\n"},
		{name: "directory", cmd: core.Command{Script: "ls", Dir: "dir"}, stdout: "file\n"},
		{name: "arguments", cmd: core.Command{Argv: []string{"printf", "%s|", "a b", "$HOME", "*"}}, stdout: "a b|$HOME|*|"},
		{name: "bytes", cmd: core.Command{Script: `printf '\377\000\200'`}, stdout: "\xff\x00\x80"},
	}
	for _, test := range tests {
		var stdout, stderr bytes.Buffer
		cmd := test.cmd
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		p, err := e.env.Start(e.Context(), cmd)
		if err != nil {
			e.Errorf("%s: Start: %v", test.name, err)
			continue
		}
		exit, err := p.Wait()
		if err != nil || exit.Code != test.code || exit.Signal != test.signal || exit.Left != 0 {
			e.Errorf("%s: %+v, %v, want code %d, signal %q", test.name, exit, err, test.code, test.signal)
		}
		if stdout.String() != test.stdout || stderr.String() != test.stderr {
			e.Errorf("%s: stdout %q, stderr %q, want %q, %q", test.name, &stdout, &stderr, test.stdout, test.stderr)
		}
	}
	for what, cmd := range map[string]core.Command{
		"a missing program":   {Argv: []string{"no-such-program-anywhere"}},
		"a missing directory": {Script: "true", Dir: "no-such-directory"},
	} {
		if p, err := e.env.Start(e.Context(), cmd); err == nil {
			exit, _ := p.Wait()
			e.Errorf("a command with %s was started: %+v", what, exit)
		}
	}
}

func (e *envTest) execInterleaves() {
	got := e.run("i=0; while [ $i -lt 100 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done")
	var want strings.Builder
	for i := range 100 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	if got != want.String() {
		e.Error("stdout and stderr of one writer are out of order")
	}
}

func (e *envTest) execLongLine() {
	const size = 10 << 20
	got := e.run(fmt.Sprintf(`head -c %d /dev/zero | tr '\000' x; echo`, size))
	if len(got) != size+1 || strings.Count(got, "x") != size || got[size] != '\n' {
		e.Errorf("a line of %d bytes came as %d bytes", size+1, len(got))
	}
}

func (e *envTest) execHidesSecrets() {
	if got := e.run("env"); strings.Contains(got, secretValue) {
		e.Errorf("a command sees %s", secretName)
	}
	if got := e.run(`echo "$PATH"`); strings.TrimSpace(got) == "" {
		e.Error("a command has no PATH")
	}
	out, _, err := core.Exec(e.Context(), e.env, core.Command{Argv: []string{"env"}, Env: []string{secretName + "=given"}})
	if err != nil || !strings.Contains(string(out), secretName+"=given") {
		e.Errorf("a variable of Command.Env is missing: %v", err)
	}
}

func (e *envTest) execHasNoTerminal() {
	out, exit, err := core.Exec(e.Context(), e.env, core.Command{Script: "exec 2>/dev/null; exec 3<>/dev/tty && echo opened"})
	if err != nil || len(out) != 0 || exit.Code == 0 {
		e.Errorf("/dev/tty: %q, %+v, %v", out, exit, err)
	}
}

// start starts a script and returns once it has made the file "started".
func (e *envTest) start(ctx context.Context, script string, out io.Writer) core.Process {
	e.Helper()
	return e.startCommand(ctx, core.Command{Script: script, Stdout: out, Stderr: out})
}

func (e *envTest) startCommand(ctx context.Context, cmd core.Command) core.Process {
	e.Helper()
	p, err := e.env.Start(ctx, cmd)
	if err != nil {
		e.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		if info, err := e.files.Stat(e.Context(), "started"); err == nil && info.Size() > 0 {
			return p
		}
		if time.Now().After(deadline) {
			e.Fatal("the script did not start")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// wantGone checks within the environment that the process whose id is in the
// file "started" is gone. A zombie counts as gone.
func (e *envTest) wantGone() {
	e.Helper()
	got := e.run(`pid=$(cat started)
		kill -0 "$pid" 2>/dev/null || exit 0
		state=$(sed 's/.*) \(.\).*/\1/' /proc/$pid/stat 2>/dev/null || ps -o stat= -p "$pid")
		case $state in Z*|X*|'') exit 0 ;; esac
		echo "$pid is $state"; ps -fp "$pid"`)
	if got != "" {
		e.Errorf("a process is left: %s", got)
	}
}

func (e *envTest) execTimeout() {
	// In a remote environment a command takes longer to start.
	ctx, cancel := context.WithTimeout(e.Context(), time.Second)
	defer cancel()
	out, exit, err := core.Exec(ctx, e.env, core.Command{Script: "echo before; trap 'echo asked; exit 3' TERM; sleep 300 & wait"})
	if !errors.Is(err, context.DeadlineExceeded) {
		e.Errorf("error %v, want that of the context", err)
	}
	if exit.Code != 3 || string(out) != "before\nasked\n" {
		e.Errorf("the command was not told to end: %+v, %q", exit, out)
	}
}

// execInterrupt: an interrupted command can clean up or ignore it, and its end is
// no error. The context still ends it.
func (e *envTest) execInterrupt() {
	run := func(ctx context.Context, script string) (string, core.Exit, error) {
		var out bytes.Buffer
		interrupt := make(chan struct{})
		p := e.startCommand(ctx, core.Command{Script: script, Stdout: &out, Stderr: &out, Interrupt: interrupt})
		close(interrupt)
		exit, err := p.Wait()
		if err := e.files.Remove(e.Context(), "started"); err != nil {
			e.Fatal(err)
		}
		return out.String(), exit, err
	}
	if out, exit, err := run(e.Context(), `trap 'echo cleaned; exit 3' INT; echo $$ >started; while :; do sleep 0.05; done`); out != "cleaned\n" || exit.Code != 3 || err != nil {
		e.Errorf("a command that cleans up: %q, %+v, %v", out, exit, err)
	}
	if _, exit, err := run(e.Context(), `sh -c 'echo $$ >started; exec sleep 300'`); exit.Code == 0 || err != nil {
		e.Errorf("a command that ends: %+v, %v", exit, err)
	}
	ctx, cancel := context.WithTimeout(e.Context(), time.Second)
	defer cancel()
	if _, _, err := run(ctx, `trap '' INT; echo $$ >started; sleep 300`); !errors.Is(err, context.DeadlineExceeded) {
		e.Errorf("a command that ignores it: %v, want that of the context", err)
	}
}

func (e *envTest) execStubborn() {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	var out bytes.Buffer
	p := e.start(ctx, `trap '' TERM HUP INT; echo $$ >started; while :; do sleep 300; done`, &out)
	start := time.Now()
	cancel()
	exit, err := p.Wait()
	took := time.Since(start)
	if !errors.Is(err, context.Canceled) || exit.Code != -1 || exit.Signal != "SIGKILL" {
		e.Errorf("exit %+v, %v, want SIGKILL and the error of the context", exit, err)
	}
	if took > killBound {
		e.Errorf("Wait returned %v after the end of the context, want %v at most", took, killBound)
	}
	e.wantGone()
}

func (e *envTest) execLeavesNoChild() {
	var out bytes.Buffer
	p := e.start(e.Context(), `sleep 300 & echo $! >started; echo done`, &out)
	exit, err := p.Wait()
	if err != nil || exit.Code != 0 || exit.Left != 1 || out.String() != "done\n" {
		e.Errorf("exit %+v, %v, output %q, want one process left", exit, err, &out)
	}
	e.wantGone()
}

func (e *envTest) execLeavesNoDaemon() {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	var out bytes.Buffer
	p := e.start(ctx, `(setsid sh -c 'echo $$ >started; exec sleep 300' &); sleep 300`, &out)
	cancel()
	if exit, err := p.Wait(); !errors.Is(err, context.Canceled) {
		e.Errorf("exit %+v, %v", exit, err)
	}
	e.wantGone()
}

func (e *envTest) execConcurrently() {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			out, exit, err := core.Exec(e.Context(), e.env, core.Command{Script: fmt.Sprintf("echo %d; exit %d", i, i)})
			if err != nil || exit.Code != i || string(out) != fmt.Sprintf("%d\n", i) {
				e.Errorf("command %d: %q, %+v, %v", i, out, exit, err)
			}
		})
	}
	all.Wait()
}
