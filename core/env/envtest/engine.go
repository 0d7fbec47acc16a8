//go:build unix

package envtest

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// Engine is a fake backend of a command line tool: it receives the arguments of
// each call and runs the command on this machine, in its own session. As with a
// container engine, commands outlive the tool: if the tool is killed, a command's
// stdin ends and its output is discarded.
type Engine struct {
	// Plan returns what a call of the tool does; it must be safe for concurrent
	// use.
	Plan func(args []string) Call
	// Env is the environment of the commands.
	Env []string
	// User, if not 0, is the user that runs the commands.
	User uint32

	tool     string
	listener net.Listener
	wg       sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	running map[int]struct{}
}

// Call is what a call of the tool does: it runs Argv, on a terminal if told so, or
// prints Stdout and Stderr and exits with Code.
type Call struct {
	Argv           []string
	Terminal       bool
	Stdout, Stderr string
	Code           int
}

// frame is a message between the tool and the engine.
type frame struct {
	Args   []string // in the tool's first frame
	Stream int      // 0 stdin, 1 stdout, 2 stderr, 3 the end
	Data   []byte   // empty at the end of stdin
	Code   int
}

const streamEnd = 3

// Start creates the tool and serves it until the test ends. TestMain must call
// [Tool] first.
func (e *Engine) Start(t *testing.T, name string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The race detector delays the exit of each process by a second.
	t.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	dir := Dir(t)
	e.tool = filepath.Join(dir, name)
	if err := os.Symlink(self, e.tool); err != nil {
		t.Fatal(err)
	}
	if e.listener, err = net.Listen("unix", filepath.Join(dir, socketName)); err != nil {
		t.Fatal(err)
	}
	e.conns, e.running = map[net.Conn]struct{}{}, map[int]struct{}{}
	e.wg.Go(e.accept)
	t.Cleanup(func() { e.close(t) })
}

const socketName = "engine.sock"

// Path returns the path of the tool.
func (e *Engine) Path() string { return e.tool }

// close ends remaining processes. There should be none: those that were killed on the
// other side have a moment to end.
func (e *Engine) close(t *testing.T) {
	e.listener.Close()
	for end := time.Now().Add(5 * time.Second); e.busy() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	e.mu.Lock()
	for conn := range e.conns {
		conn.Close()
	}
	for pid := range e.running {
		t.Errorf("the process %d is left in the engine", pid)
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	e.mu.Unlock()
	e.wg.Wait()
}

// busy reports whether processes are running.
func (e *Engine) busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) > 0
}

// KillAll kills the commands and all their descendants, like the end of a
// container. Without Linux's /proc, it finds only the commands.
func (e *Engine) KillAll() {
	for e.killMarked() {
		// New processes may have been started meanwhile.
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for pid := range e.running {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// killMarked kills the processes with the engine's socket in their environment
// and reports whether there were any.
func (e *Engine) killMarked() (found bool) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is valid
	for _, name := range files {
		environ, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(environ, []byte(e.mark())) {
			continue // ended, or another user's; a zombie has none
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
		}
	}
	return found
}

func (e *Engine) mark() string { return "ENGINE_OF=" + e.tool }

func (e *Engine) accept() {
	for {
		conn, err := e.listener.Accept()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.conns[conn] = struct{}{}
		e.mu.Unlock()
		e.wg.Go(func() {
			e.serve(conn)
			e.mu.Lock()
			delete(e.conns, conn)
			e.mu.Unlock()
		})
	}
}

// serve answers one call of the tool.
func (e *Engine) serve(conn net.Conn) {
	defer conn.Close()
	in, out := gob.NewDecoder(conn), &sender{enc: gob.NewEncoder(conn)}
	var first frame
	if in.Decode(&first) != nil {
		return
	}
	call := e.Plan(first.Args)
	if len(call.Argv) > 0 {
		call = Call{Code: e.run(call, in, out), Stderr: call.Stderr}
	}
	out.send(1, []byte(call.Stdout))
	out.send(2, []byte(call.Stderr))
	out.mu.Lock()
	defer out.mu.Unlock()
	_ = out.enc.Encode(frame{Stream: streamEnd, Code: call.Code})
}

// run runs a program to the end of its output.
func (e *Engine) run(call Call, in *gob.Decoder, out *sender) int {
	cmd := exec.Command(call.Argv[0], call.Argv[1:]...)
	cmd.Env = append(slices.Clone(e.Env), e.mark())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if e.User != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: e.User, Gid: e.User}
	}
	stdin, drained, err := start(cmd, call.Terminal, out)
	if err != nil {
		out.send(2, []byte(err.Error()+"\n"))
		return 126
	}
	e.mu.Lock()
	e.running[cmd.Process.Pid] = struct{}{}
	e.mu.Unlock()
	go func() { // ends with the connection, which serve closes
		defer stdin.Close()
		var f frame
		for in.Decode(&f) == nil && len(f.Data) > 0 {
			if _, err := stdin.Write(f.Data); err != nil {
				stdin.Close()
			}
			f = frame{}
		}
	}()
	_ = cmd.Wait()
	<-drained
	e.mu.Lock()
	delete(e.running, cmd.Process.Pid)
	e.mu.Unlock()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// start starts a program. Its output ends when drained is closed.
func start(cmd *exec.Cmd, terminal bool, out *sender) (stdin io.WriteCloser, drained chan struct{}, err error) {
	drained = make(chan struct{})
	if !terminal {
		close(drained) // Wait waits for it
		cmd.Stdout, cmd.Stderr = stream{out, 1}, stream{out, 2}
		if stdin, err = cmd.StdinPipe(); err == nil {
			err = cmd.Start()
		}
		return stdin, drained, err
	}
	cmd.SysProcAttr.Setctty = true
	ours, err := pty.StartWithAttrs(cmd, nil, cmd.SysProcAttr)
	if err != nil {
		return nil, drained, err
	}
	go func() { // ends with the program
		defer close(drained)
		_, _ = io.Copy(stream{out, 1}, ours)
	}()
	return ours, drained, nil
}

// sender sends frames one at a time.
type sender struct {
	mu  sync.Mutex
	enc *gob.Encoder
}

// send sends data, which is discarded if the connection is closed.
func (s *sender) send(stream int, data []byte) {
	if len(data) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.enc.Encode(frame{Stream: stream, Data: data})
}

type stream struct {
	to *sender
	n  int
}

// Write implements io.Writer.
func (s stream) Write(p []byte) (int, error) {
	s.to.send(s.n, p)
	return len(p), nil
}

// Tool acts as the command line tool, and does not return, if this process was
// started as the tool of an [Engine]. TestMain must call it first.
func Tool() {
	conn, err := net.Dial("unix", filepath.Join(filepath.Dir(os.Args[0]), socketName))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if slices.Contains(os.Args, "--tty") {
		if _, err := term.MakeRaw(0); err != nil {
			fmt.Fprintln(os.Stderr, "Unable to use a TTY:", err)
		}
	}
	enc, dec := gob.NewEncoder(conn), gob.NewDecoder(conn)
	if err := enc.Encode(frame{Args: os.Args[1:]}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() { // ends with the process
		buf := make([]byte, 64<<10)
		for {
			n, err := os.Stdin.Read(buf)
			if n > 0 && enc.Encode(frame{Data: buf[:n]}) != nil {
				return
			}
			if err != nil {
				_ = enc.Encode(frame{})
				return
			}
		}
	}()
	os.Exit(relay(dec))
}

// relay prints what the engine sends and returns the exit code.
func relay(dec *gob.Decoder) int {
	for {
		var f frame
		if err := dec.Decode(&f); err != nil {
			fmt.Fprintln(os.Stderr, "lost the engine:", err)
			return 1
		}
		to := io.Writer(os.Stdout)
		switch f.Stream {
		case streamEnd:
			return f.Code
		case 2:
			to = os.Stderr
		}
		if _, err := to.Write(f.Data); err != nil {
			return 1
		}
	}
}
