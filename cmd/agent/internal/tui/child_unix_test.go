//go:build unix

package tui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/term"

	"github.com/creack/pty"

	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
	"github.com/seed-009c0928/agent/core/coretest"
)

// childVar makes the test binary run a session on its own terminal.
const childVar = "TUI_TEST_CHILD"

// child is the test binary as a session on stdin and stdout.
func child(how string) int {
	s, asker, err := act{turns: []coretest.Turn{
		{Text: "half of the answer ", Block: make(chan struct{})},
	}}.open(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer s.Close()
	fmt.Printf("pid=%d.\r\n", os.Getpid())
	var broken atomic.Bool
	next, err := Run(context.Background(), Options{
		In: os.Stdin, Out: os.Stdout, Session: s, Asker: asker, Notify: NotifyBell, Title: "child",
		Commands: func() []Command {
			return []Command{{Name: "break", Run: func(context.Context, string) (Result, error) {
				broken.Store(true)
				return Result{}, nil
			}}}
		},
		Status: func() Status {
			if broken.Load() {
				panic("the host's status is broken")
			}
			return Status{Model: how}
		},
	})
	fmt.Printf("end %s %v\r\n", next.Kind, err)
	return 0
}

// process is a child on a console.
type process struct {
	*console
	cmd    *exec.Cmd
	before *term.State
}

// startChild starts the test binary, or what is to run it, on the console's
// terminal, as its session's leader.
func (c *console) startChild(t *testing.T, argv ...string) *process {
	t.Helper()
	before, err := term.GetState(int(c.slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), childVar+"=1", "TERM=xterm-256color", "TEST_BINARY="+os.Args[0])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.slave, c.slave, c.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{c, cmd, before}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("screen at the end:\n%s", c.all())
		}
	})
	c.wait("pid=")
	c.ready()
	return p
}

// ready waits until the session accepts keys.
func (c *console) ready() {
	c.t.Helper()
	eventually(c.t, c.screen, func() (ok bool) {
		c.see(func(v *vt.Terminal) { ok = v.Paste })
		return ok
	})
}

// sameModes waits until the terminal has its original modes.
func (p *process) sameModes(t *testing.T) {
	t.Helper()
	var now *term.State
	eventually(t, func() string { return fmt.Sprintf("modes before: %+v\nafter: %+v", p.before, now) }, func() bool {
		var err error
		if now, err = term.GetState(int(p.slave.Fd())); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%+v", now) == fmt.Sprintf("%+v", p.before)
	})
}

// TestTerminalIsRestored ends sessions in every way; the terminal must have its
// original modes afterwards.
func TestTerminalIsRestored(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("stty"); err != nil {
		t.Skip("no stty to tell and set the modes with")
	}
	for _, tt := range []struct {
		name string
		end  func(p *process)
		want string
	}{
		{"quit", func(p *process) { p.send("/quit\r") }, "end quit <nil>"},
		{"end of input", func(p *process) { p.send(keyCtrlD) }, "end quit <nil>"},
		{"SIGTERM", func(p *process) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, "end quit terminated"},
		{"SIGHUP at work", func(p *process) {
			p.send("go\r")
			p.wait("half of the answer")
			_ = p.cmd.Process.Signal(syscall.SIGHUP)
		}, "end quit terminated"},
		{"SIGINT twice", func(p *process) {
			_ = p.cmd.Process.Signal(syscall.SIGINT)
			p.wait("Ctrl-C again quits")
			_ = p.cmd.Process.Signal(syscall.SIGINT)
		}, "end quit <nil>"},
		{"panic", func(p *process) { p.send("/break\r") }, "end  internal error in the terminal UI: the host's status is broken"},
		{"SIGKILL", func(p *process) { _ = p.cmd.Process.Kill() }, ""},
		{"SIGKILL at work", func(p *process) {
			p.send("go\r")
			p.wait("half of the answer")
			_ = p.cmd.Process.Kill()
		}, ""},
		{"SIGKILL on the alternate screen", func(p *process) {
			p.send("\x14") // Ctrl-T
			p.wait("q closes")
			_ = p.cmd.Process.Kill()
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newConsole(t, 80, 24).startChild(t, os.Args[0])
			if raw, _ := term.GetState(int(p.slave.Fd())); fmt.Sprintf("%+v", raw) == fmt.Sprintf("%+v", p.before) {
				t.Fatal("the modes did not change: there is nothing to restore")
			}
			tt.end(p)
			if tt.want != "" {
				p.wait(tt.want)
			}
			p.sameModes(t)
			p.restored()
		})
	}
}

// TestSuspend suspends the session in a shell with job control and continues
// it.
func TestSuspend(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to go back to")
	}
	p := newConsole(t, 80, 24).startChild(t, sh, "-c", `set -m; "$TEST_BINARY"; echo stopped; read -r _; echo back; fg >/dev/null; echo over`)
	p.send("a draft")
	p.wait("> a draft")
	p.send("\x1a")
	p.wait("stopped")
	p.sameModes(t)
	p.send("\n")
	p.wait("back", "> a draft")
	p.ready()
	p.send("!")
	p.wait("> a draft!")
	p.send(keyCtrlC + keyCtrlD)
	p.wait("end quit <nil>", "over")
	p.sameModes(t)
	p.restored()
}

// TestSuspendWithoutShell checks that a session without job control keeps running.
func TestSuspendWithoutShell(t *testing.T) {
	t.Parallel()
	p := newConsole(t, 80, 24).startChild(t, os.Args[0])
	p.send("\x1a")
	p.wait("Cannot suspend: no shell to return to.")
	p.send(keyCtrlD)
	p.wait("end quit <nil>")
	p.sameModes(t)
}

// TestChildResize resizes a terminal in the middle of an answer.
func TestChildResize(t *testing.T) {
	t.Parallel()
	c := newConsole(t, 80, 24)
	p := c.startChild(t, os.Args[0])
	p.send("go\r")
	p.wait("half of the answer")
	for _, width := range []int{40, 20, 120} {
		c.mu.Lock()
		c.term.Resize(width, 24)
		c.mu.Unlock()
		if err := pty.Setsize(c.master, &pty.Winsize{Cols: uint16(width), Rows: 24}); err != nil {
			t.Fatal(err)
		}
		_ = p.cmd.Process.Signal(syscall.SIGWINCH)
		p.send("x")
		p.wait(strings.Repeat("x", 1))
		p.send("\x7f")
		p.wait("half of the answer")
	}
	p.send(keyCtrlC)
	p.wait("cancelled:") // the rest may be wrapped, if it is written before the last resize
	p.send(keyCtrlD)
	p.wait("end quit <nil>")
	p.sameModes(t)
}
