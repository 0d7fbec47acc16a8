//go:build unix

package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/proc"
)

// patience is the timeout for what must happen soon.
const patience = time.Minute

func newSupervisor(t testing.TB) *proc.Supervisor {
	t.Helper()
	s := proc.NewSupervisor(proc.Options{})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sh returns the spec of a script in a clean environment.
func sh(script string) proc.Spec {
	return proc.Spec{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

// run runs a command to its end.
func run(t testing.TB, s *proc.Supervisor, spec proc.Spec) proc.Exit {
	t.Helper()
	p, err := s.Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) || !isDir("/proc/self")
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0] != "Z" && fields[0] != "X"
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readPID waits until a script has written a process id to file.
func readPID(t testing.TB, file string) (pid int) {
	t.Helper()
	eventually(t, "a process id in "+file, func() bool {
		data, _ := os.ReadFile(file)
		text, complete := strings.CutSuffix(string(data), "\n")
		n, err := strconv.Atoi(text)
		pid = n
		return complete && err == nil
	})
	return pid
}

// need skips a test if a program is missing.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
}

func TestStart(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name           string
		script         string
		stdin          io.Reader
		stdout, stderr string
		code           int
		signal         string
	}{
		{name: "success", script: "exit 0"},
		{name: "exit code", script: "exit 42", code: 42},
		{name: "signal", script: "kill -9 $$", code: -1, signal: "SIGKILL"},
		{name: "output", script: "echo out; echo err >&2", stdout: "out\n", stderr: "err\n"},
		{name: "no input", script: "cat", stdout: ""},
		{name: "input", script: "cat", stdin: strings.NewReader("hello"), stdout: "hello"},
		{name: "input is not read", script: "exec true", stdin: io.LimitReader(zeros{}, 1<<24)},
		{name: "directory", script: "pwd", stdout: dir + "\n"},
		{name: "bytes", script: `printf '\377\0\r\n\200'`, stdout: "\xff\x00\r\n\x80"},
		{name: "no terminal", script: "if true </dev/tty; then echo open; fi 2>/dev/null", stdout: ""},
	}
	s := newSupervisor(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			spec := sh(test.script)
			spec.Dir, spec.Stdin, spec.Stdout, spec.Stderr = dir, test.stdin, &stdout, &stderr
			exit := run(t, s, spec)
			if exit.Code != test.code || exit.Signal != test.signal || exit.Left != 0 {
				t.Errorf("exit %+v, want code %d, signal %q, none left", exit, test.code, test.signal)
			}
			if stdout.String() != test.stdout || stderr.String() != test.stderr {
				t.Errorf("stdout %q, stderr %q, want %q, %q", &stdout, &stderr, test.stdout, test.stderr)
			}
		})
	}
}

// lateOutput runs a command whose child writes after its end, until that is in the
// output: on a busy machine, the child may not run within the time that it has.
func lateOutput(t *testing.T, run func(script string) string) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		out := run("(sleep 0.02; echo late) & echo early")
		if out == "early\nlate\n" {
			return
		}
		if out != "early\n" || time.Now().After(end) {
			t.Fatalf("output %q", out)
		}
	}
}

func TestLateOutput(t *testing.T) {
	s := newSupervisor(t)
	lateOutput(t, func(script string) string {
		var stdout bytes.Buffer
		spec := sh(script)
		spec.Stdout = &stdout
		run(t, s, spec)
		return stdout.String()
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestStartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		spec proc.Spec
		is   error
		says string
	}{
		{"unknown program", proc.Spec{Path: "no-such-program"}, exec.ErrNotFound, "no-such-program"},
		{"missing program", proc.Spec{Path: "/no/such/program"}, fs.ErrNotExist, "/no/such/program"},
		{"not a program", proc.Spec{Path: file}, fs.ErrPermission, file},
		{"missing directory", proc.Spec{Path: "/bin/sh", Dir: "/no/such/dir"}, fs.ErrNotExist, "working directory: stat /no/such/dir"},
		{"not a directory", proc.Spec{Path: "/bin/sh", Dir: file}, nil, "is not a directory"},
	}
	s := newSupervisor(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := s.Start(context.Background(), test.spec)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("error %v, want one about %q", err, test.says)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %v is not %v", err, test.is)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Start(ctx, sh("exit")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
}

func TestEnvironmentIsExact(t *testing.T) {
	t.Setenv("PROC_TEST_PARENT", "visible")
	var out bytes.Buffer
	spec := proc.Spec{Path: "/usr/bin/env", Env: []string{"ONLY=this"}, Stdout: &out}
	run(t, newSupervisor(t), spec)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || lines[0] != "ONLY=this" || !strings.HasPrefix(lines[1], proc.MarkerEnv+"=") {
		t.Errorf("environment %q, want ONLY and the marker", lines)
	}
}

func TestOneWriterKeepsTheOrder(t *testing.T) {
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	var out bytes.Buffer
	spec := sh(`i=0; while [ $i -lt 200 ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); done`)
	spec.Stdout, spec.Stderr = &out, &out
	run(t, newSupervisor(t), spec)
	if out.String() != want.String() {
		t.Error("stdout and stderr are out of order")
	}
}

func TestOutputToFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	spec := sh("echo direct")
	spec.Stdout = f
	run(t, newSupervisor(t), spec)
	if data, _ := os.ReadFile(f.Name()); string(data) != "direct\n" {
		t.Errorf("the file holds %q", data)
	}
}

// failingWriter fails like a full disk.
type failingWriter struct{}

var errFull = errors.New("disk full")

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

func TestFailingWriterEndsTheCommand(t *testing.T) {
	spec := sh("yes")
	spec.Stdout = failingWriter{}
	p, err := newSupervisor(t).Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); !errors.Is(err, errFull) {
		t.Errorf("error %v, want that of the writer", err)
	}
}

func TestAbort(t *testing.T) {
	const grace = 100 * time.Millisecond
	tests := []struct {
		name   string
		script string // writes the pid of something that must end to $F
		needs  []string
		signal string
	}{
		{name: "obedient", script: `echo $$ >"$F"; exec sleep 300`, signal: "SIGTERM"},
		{name: "stubborn", script: `trap '' TERM; echo $$ >"$F"; while :; do sleep 300; done`, signal: "SIGKILL"},
		{name: "child", script: `sleep 300 & echo $! >"$F"; wait`, signal: "SIGTERM"},
		{name: "stubborn child", script: `(trap '' TERM; exec sleep 300) & echo $! >"$F"; wait`, signal: "SIGTERM"},
		{name: "daemon", needs: []string{"setsid"}, script: `setsid sh -c 'trap "" TERM; echo $$ >"$F"; exec sleep 300' & sleep 300`, signal: "SIGTERM"},
		{name: "silent daemon", needs: []string{"setsid"}, script: `(setsid sh -c 'trap "" TERM; echo $$ >"$F"; exec sleep 300' >/dev/null 2>&1 &); sleep 300`, signal: "SIGTERM"},
	}
	s := newSupervisor(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			need(t, test.needs...)
			file := filepath.Join(t.TempDir(), "pid")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var out bytes.Buffer
			spec := sh(test.script)
			spec.Env = append(spec.Env, "F="+file)
			spec.Grace, spec.Stdout, spec.Stderr = grace, &out, &out
			p, err := s.Start(ctx, spec)
			if err != nil {
				t.Fatal(err)
			}
			pid := readPID(t, file)
			cancel()
			exit, err := p.Wait()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if exit.Code != -1 || exit.Signal != test.signal {
				t.Errorf("exit %+v, want %s", exit, test.signal)
			}
			if alive(pid) {
				t.Errorf("process %d is left", pid)
			}
		})
	}
}

func TestNormalEndLeavesNothing(t *testing.T) {
	tests := []struct {
		name   string
		script string
		needs  []string
		left   int
	}{
		{name: "child with the output", script: `sleep 300 & echo $! >"$F"`, left: 1},
		{name: "child without the output", script: `sleep 300 >/dev/null 2>&1 & echo $! >"$F"`, left: 1},
		{name: "job with a group of its own", needs: []string{"bash"}, script: `bash -c 'set -m; sleep 300 >/dev/null 2>&1 & echo $! >"$F"'`, left: 1},
		{name: "stubborn child", script: `(trap '' TERM; exec sleep 300) >/dev/null 2>&1 & echo $! >"$F"`, left: 1},
		{name: "daemon with the output", needs: []string{"setsid"}, script: `setsid sh -c 'echo $$ >"$F"; exec sleep 300' & while ! [ -s "$F" ]; do :; done`, left: 1},
	}
	s := newSupervisor(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			need(t, test.needs...)
			file := filepath.Join(t.TempDir(), "pid")
			spec := sh(test.script + "; exit 3")
			spec.Env = append(spec.Env, "F="+file)
			var out bytes.Buffer
			spec.Stdout = &out
			exit := run(t, s, spec)
			if pid := readPID(t, file); alive(pid) {
				t.Errorf("process %d is left", pid)
			}
			if exit.Code != 3 || exit.Left != test.left {
				t.Errorf("exit %+v, want code 3, %d left", exit, test.left)
			}
		})
	}
}

func TestDetachedDaemonLivesUntilClose(t *testing.T) {
	need(t, "setsid")
	s := newSupervisor(t)
	file := filepath.Join(t.TempDir(), "pid")
	spec := sh(`setsid sh -c 'echo $$ >"$F"; exec sleep 300' >/dev/null 2>&1 & while ! [ -s "$F" ]; do :; done`)
	spec.Env = append(spec.Env, "F="+file)
	if exit := run(t, s, spec); exit.Left != 0 {
		t.Errorf("exit %+v", exit)
	}
	pid := readPID(t, file)
	if !alive(pid) {
		t.Error("the daemon ended with its command")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("the daemon survived Close")
	}
}

func TestCloseEndsCommands(t *testing.T) {
	s := newSupervisor(t)
	p, err := s.Start(context.Background(), sh("sleep 300"))
	if err != nil {
		t.Fatal(err)
	}
	var closing sync.WaitGroup
	for range 2 {
		closing.Go(func() { _ = s.Close() })
	}
	if _, err := p.Wait(); !errors.Is(err, proc.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
	closing.Wait()
	if _, err := s.Start(context.Background(), sh("exit")); !errors.Is(err, proc.ErrClosed) {
		t.Errorf("Start after Close: %v", err)
	}
}

func TestConcurrentCommands(t *testing.T) {
	s := newSupervisor(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			var out bytes.Buffer
			spec := sh(fmt.Sprintf("echo %d; exit %d", i, i))
			spec.Stdout, spec.Stderr = &out, &out
			p, err := s.Start(context.Background(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			exit, err := p.Wait()
			if err != nil || exit.Code != i || out.String() != fmt.Sprintf("%d\n", i) {
				t.Errorf("command %d: %+v, %q, %v", i, exit, &out, err)
			}
		})
	}
	all.Wait()
}

func TestLongOutput(t *testing.T) {
	const size = 10 << 20
	var out bytes.Buffer
	spec := sh(fmt.Sprintf("head -c %d /dev/zero", size))
	spec.Stdout, spec.Stderr = &out, &out
	run(t, newSupervisor(t), spec)
	if out.Len() != size {
		t.Errorf("%d bytes, want %d", out.Len(), size)
	}
}

func BenchmarkStartWait(b *testing.B) {
	s := newSupervisor(b)
	spec := proc.Spec{Path: "/bin/true", Stdout: io.Discard, Stderr: io.Discard}
	b.ReportAllocs()
	for b.Loop() {
		run(b, s, spec)
	}
}

func BenchmarkShell(b *testing.B) {
	s := newSupervisor(b)
	var out bytes.Buffer
	spec := sh("true")
	spec.Stdout, spec.Stderr = &out, &out
	b.ReportAllocs()
	for b.Loop() {
		run(b, s, spec)
	}
}

func BenchmarkOutput10MB(b *testing.B) {
	s := newSupervisor(b)
	var out bytes.Buffer
	spec := sh("head -c 10485760 /dev/zero")
	spec.Stdout, spec.Stderr = &out, &out
	b.ReportAllocs()
	b.SetBytes(10 << 20)
	for b.Loop() {
		out.Reset()
		run(b, s, spec)
	}
}
