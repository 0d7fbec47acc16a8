//go:build unix

package tui

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
	"github.com/seed-009c0928/agent/core/coretest"
)

// console is the user's terminal: screen and keyboard.
type console struct {
	t      testing.TB
	master *os.File
	slave  *os.File
	mu     sync.Mutex
	term   *vt.Terminal
	raw    strings.Builder
	done   chan struct{} // the terminal's reader has ended
	rested atomic.Int64  // how much later it is for the session than on the clock

	stopped atomic.Pointer[time.Time] // the time on the clock, if it stands still
	watch   atomic.Pointer[watch]     // what a benchmark waits for, or nil
}

// watch is a text of which it matters when it comes.
type watch struct {
	text string
	came chan time.Time // with room for one
}

func newConsole(t testing.TB, width, height int) *console {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	c := &console{t: t, master: master, slave: slave, term: vt.New(width, height), done: make(chan struct{})}
	c.setSize(width, height)
	go func() {
		defer close(c.done)
		buf := make([]byte, 32<<10)
		for {
			n, err := master.Read(buf)
			if w := c.watch.Load(); w != nil && strings.Contains(string(buf[:n]), w.text) && c.watch.CompareAndSwap(w, nil) {
				w.came <- time.Now()
			}
			c.mu.Lock()
			c.raw.Write(buf[:n])
			c.term.Write(string(buf[:n]))
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = slave.Close()
		_ = master.Close()
		<-c.done
	})
	return c
}

func (c *console) setSize(width, height int) {
	c.t.Helper()
	if err := pty.Setsize(c.master, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		c.t.Fatal(err)
	}
}

// resize changes the size and signals this process.
func (c *console) resize(width, height int) {
	c.t.Helper()
	c.mu.Lock()
	c.term.Resize(width, height)
	c.mu.Unlock()
	c.setSize(width, height)
	_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH)
}

func (c *console) see(f func(v *vt.Terminal)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.term)
}

func (c *console) screen() (text string) {
	c.see(func(v *vt.Terminal) { text = v.Screen() })
	return text
}

func (c *console) all() (text string) {
	c.see(func(v *vt.Terminal) { text = v.All() })
	return text
}

// length returns the number of bytes written so far.
func (c *console) length() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.Len()
}

func (c *console) since(n int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()[n:]
}

// now is the session's clock: a user who waits for something does not type.
func (c *console) now() time.Time {
	clock := time.Now()
	if at := c.stopped.Load(); at != nil {
		clock = *at
	}
	return clock.Add(time.Duration(c.rested.Load()))
}

// stopClock lets the session's time pass only while the user waits for something.
func (c *console) stopClock() {
	now := time.Now()
	c.stopped.Store(&now)
}

// wait waits until all texts are on the screen at the same time.
func (c *console) wait(texts ...string) {
	c.t.Helper()
	eventually(c.t, func() string { return fmt.Sprintf("waiting for %q on\n%s", texts, c.screen()) }, func() bool {
		now := c.screen()
		for _, text := range texts {
			if !strings.Contains(now, text) {
				return false
			}
		}
		return true
	})
	c.rested.Add(int64(pause))
}

// gone waits until the text is not on the screen.
func (c *console) gone(text string) {
	c.t.Helper()
	eventually(c.t, c.screen, func() bool { return !strings.Contains(c.screen(), text) })
	c.rested.Add(int64(pause))
}

func (c *console) send(keys string) {
	c.t.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// Keys.
const (
	keyCtrlC = "\x03"
	keyCtrlD = "\x04"
	keyEsc   = "\x1b"
	keyUp    = "\x1b[A"
	keyDown  = "\x1b[B"
	keyTab   = "\t"
)

// running is a Run in the background.
type running struct {
	next Next
	err  error
	done chan struct{}
}

// start runs the session on the console.
func (c *console) start(ctx context.Context, o Options) *running {
	c.t.Helper()
	o.In, o.Out, o.now = c.slave, c.slave, c.now
	if o.Env == nil {
		o.Env = testEnv(nil)
	}
	r := &running{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.next, r.err = Run(ctx, o)
	}()
	if o.Env("TERM") != "dumb" {
		c.ready() // earlier keys would not reach the session
	}
	c.t.Cleanup(func() {
		if b, ok := c.t.(*testing.T); ok && b.Failed() {
			b.Logf("screen at the end:\n%s", c.all())
		}
	})
	return r
}

func testEnv(with map[string]string) func(string) string {
	return func(name string) string {
		if v, ok := with[name]; ok {
			return v
		}
		return map[string]string{"TERM": "xterm-256color", "PATH": os.Getenv("PATH")}[name]
	}
}

// wait waits for the end of Run.
func (r *running) wait(t testing.TB) (Next, error) {
	t.Helper()
	select {
	case <-r.done:
		return r.next, r.err
	case <-time.After(coretest.Patience):
		t.Fatal("Run does not end")
		return Next{}, nil
	}
}

// quit quits the session and checks that the terminal is restored.
func (r *running) quit(c *console) {
	c.t.Helper()
	c.send("/quit\r")
	next, err := r.wait(c.t)
	if err != nil || next.Kind != NextQuit {
		c.t.Errorf("Run = %+v, %v; want quit", next, err)
	}
	c.restored()
}

// restored checks that a session restored the terminal.
func (c *console) restored() {
	c.t.Helper()
	eventually(c.t, c.screen, func() (ok bool) {
		c.see(func(v *vt.Terminal) { ok = !v.Hidden && !v.Paste && !v.Other })
		return ok
	})
	c.see(func(v *vt.Terminal) {
		if len(v.Unknown) > 0 {
			c.t.Errorf("sequences that no terminal was to get: %q", v.Unknown)
		}
	})
}
