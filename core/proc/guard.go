package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// guardTimeout bounds how long a guard that does not read can hold us up.
const guardTimeout = 200 * time.Millisecond

// guard is a small process that knows the running commands. It reads from a
// pipe whose other end is here; if that closes without a word, this process
// has died, and the guard kills the commands that it knows, with all that
// carries their marker. It is started beside the first command, not before it.
type guard struct {
	supervisor *Supervisor

	mu      sync.Mutex
	started bool
	ready   chan struct{} // the start was tried
	pending strings.Builder
	cmd     *exec.Cmd
	pipe    *os.File // nil while there is no guard
}

func newGuard(s *Supervisor) *guard {
	return &guard{supervisor: s, ready: make(chan struct{})}
}

// add puts a command into the guard's care.
func (g *guard) add(pid int) {
	if guardScript == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.started {
		g.started = true
		g.supervisor.wg.Go(g.start)
	}
	g.tell(fmt.Sprintf("+%d\n", pid))
}

// remove takes a command that has ended out of the guard's care.
func (g *guard) remove(pid int) {
	if guardScript == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tell(fmt.Sprintf("-%d\n", pid))
}

// tell sends a line to the guard, or keeps it until there is one. The lock is
// held. Failing once, it gives up: commands go on without the guard.
func (g *guard) tell(line string) {
	select {
	case <-g.ready:
	default:
		g.pending.WriteString(line)
		return
	}
	if g.pipe == nil {
		return
	}
	_ = g.pipe.SetWriteDeadline(time.Now().Add(guardTimeout))
	if _, err := g.pipe.WriteString(line); err != nil {
		g.supervisor.logger.Warn("the process guard is gone: commands may outlive a kill -9 of the agent", "error", err)
		g.pipe.Close()
		g.pipe = nil
	}
}

// start starts the guard's process and tells it what was noted so far.
func (g *guard) start() {
	r, w, err := os.Pipe()
	var cmd *exec.Cmd
	if err == nil {
		defer r.Close()
		cmd = exec.Command("/bin/sh", "-c", guardScript)
		cmd.Stdin = r
		cmd.Dir = "/"
		// The marker's name, not its token: whoever looks for processes without
		// an owner passes the guard by, and so does the guard itself.
		cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", MarkerEnv + "=" + g.supervisor.chain + "guard"}
		cmd.SysProcAttr = guardAttributes()
		if err = g.supervisor.fork(cmd); err != nil {
			w.Close()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.ready)
	if err != nil {
		g.supervisor.logger.Warn("no process guard: commands may outlive a kill -9 of the agent", "error", err)
		return
	}
	g.cmd, g.pipe = cmd, w
	g.tell(g.supervisor.token + "\n" + g.pending.String())
	g.pending.Reset()
}

// stop tells the guard that all is well and waits for its end.
func (g *guard) stop() {
	g.mu.Lock()
	started := g.started
	g.mu.Unlock()
	if !started {
		return
	}
	<-g.ready
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
