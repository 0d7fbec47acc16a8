package proc

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// guardTimeout limits how long a guard that does not read can block us.
const guardTimeout = 200 * time.Millisecond

// guard is a small process that knows the running commands. It reads from a pipe
// whose other end only this process has. When the pipe ends, this process has
// died, and the guard kills the commands and all processes with their marker or
// brand. It is started before the first command, which would otherwise survive a SIGKILL.
type guard struct {
	supervisor *Supervisor

	mu      sync.Mutex
	started bool // the start was attempted
	cmd     *exec.Cmd
	pipe    *os.File // nil without a guard
}

func newGuard(s *Supervisor) *guard { return &guard{supervisor: s} }

// prepare starts the guard, before a command starts.
func (g *guard) prepare() {
	if guardScript == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started {
		return
	}
	g.started = true
	if err := g.start(); err != nil {
		g.supervisor.logger.Warn("no process guard: commands may survive a kill -9 of the agent", "error", err)
	}
}

// add registers a command with the guard.
func (g *guard) add(pid int) { g.note('+', pid) }

// remove unregisters a command that has ended.
func (g *guard) remove(pid int) { g.note('-', pid) }

func (g *guard) note(sign rune, pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell(fmt.Sprintf("%c%d\n", sign, pid))
}

// tell sends a line to the guard, which may not be reading yet. The caller holds
// the lock. If it fails once, commands continue without the guard.
func (g *guard) tell(line string) {
	if g.pipe == nil {
		return
	}
	_ = g.pipe.SetWriteDeadline(time.Now().Add(guardTimeout))
	if _, err := g.pipe.WriteString(line); err != nil {
		g.supervisor.logger.Warn("lost the process guard: commands may survive a kill -9 of the agent", "error", err)
		g.pipe.Close()
		g.pipe = nil
	}
}

// start starts the guard's process. The caller holds the lock.
func (g *guard) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", guardScript)
	cmd.Stdin = r
	cmd.Dir = "/"
	// The marker's name without its token: so neither a search for orphans nor
	// the guard itself kills the guard.
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", MarkerEnv + "=" + g.supervisor.chain + "guard"}
	cmd.SysProcAttr = guardAttributes()
	if err := g.supervisor.fork(cmd, cmd.Start); err != nil {
		w.Close()
		return err
	}
	g.cmd, g.pipe = cmd, w
	brand := newBrand()
	g.tell(fmt.Sprintf("%s\n%d\n", g.supervisor.token, brand))
	g.supervisor.forking.Lock()
	defer g.supervisor.forking.Unlock()
	g.supervisor.brand = brand // the guard itself has none
	return nil
}

// stop ends the guard normally and waits for it.
func (g *guard) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cmd == nil {
		return
	}
	g.tell("q\n")
	if g.pipe != nil {
		g.pipe.Close()
		g.pipe = nil
	}
	hung := time.AfterFunc(guardTimeout, func() { _ = g.cmd.Process.Kill() })
	defer hung.Stop()
	g.supervisor.wait(g.cmd)
}
