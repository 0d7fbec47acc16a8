//go:build unix

package proc

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// entry is a line of the process table.
type entry struct {
	pid, ppid, group, session int
	zombie                    bool
	exiting                   bool // about to be a zombie; its files may be closed
}

// member is a process of a family, or, with a negative pid, its whole group
// where there is no process table to tell more.
type member struct {
	pid     int
	grouped bool // a signal to the group reaches it
	exiting bool // it ends by itself at this moment
}

// family is a command's processes: the first one, which leads a group and a
// session, and what descends from it.
type family struct {
	leader  int
	marker  []byte
	started time.Time
	// closed says that the leader, and not the system, adopts orphans: all that
	// the command started descends from it as long as it runs.
	closed bool
}

func newFamily(cmd *exec.Cmd, marker string, started time.Time, closed bool) *family {
	return &family{leader: cmd.Process.Pid, marker: []byte(marker), started: started, closed: closed}
}

func (f *family) close() {}

// lingers reports, after the leader's end, whether anything may be left of its
// group or session. It is quick where nothing was started after the leader.
func (f *family) lingers() bool {
	if newestPID() == f.leader {
		return false
	}
	return slices.ContainsFunc(f.members(false), func(m member) bool { return !m.exiting })
}

// members returns the living processes of the leader's group and session
// without the leader. With all set, it adds those that only their parents or
// their marker tell.
func (f *family) members(all bool) []member {
	table, err := processes(f.oldest(all))
	if err != nil {
		if unix.Kill(-f.leader, 0) != nil {
			return nil
		}
		return []member{{pid: -f.leader, grouped: true}}
	}
	related := f.related(table, all)
	var list []member
	for _, e := range table {
		if related[e.pid] && e.pid != f.leader && !e.zombie {
			list = append(list, member{pid: e.pid, grouped: e.group == f.leader, exiting: e.exiting})
		}
	}
	return list
}

// related returns the pids of the family in the table.
func (f *family) related(table []entry, all bool) map[int]bool {
	related := map[int]bool{f.leader: true}
	if f.closed {
		addDescendants(table, related)
		return related
	}
	for _, e := range table {
		if e.group == f.leader || e.session == f.leader || all && !e.zombie && carries(e.pid, f.marker) {
			related[e.pid] = true
		}
	}
	if all {
		addDescendants(table, related)
	}
	return related
}

// addDescendants adds to related what descends from it.
func addDescendants(table []entry, related map[int]bool) {
	for grown := true; grown; {
		grown = false
		for _, e := range table {
			if !related[e.pid] && related[e.ppid] {
				related[e.pid] = true
				grown = true
			}
		}
	}
}

// oldest returns the lowest pid that matters. Pids are given in turn, so that
// descendants of a young leader have higher ones, if the count has not begun
// anew since then.
func (f *family) oldest(all bool) int {
	if all && !f.closed || time.Since(f.started) > time.Second || newestPID() < f.leader {
		return 0
	}
	return f.leader
}

// signal asks the leader's group and the list to end, or kills them.
func (f *family) signal(list []member, kill bool) {
	sig := unix.SIGTERM
	if kill {
		sig = unix.SIGKILL
	}
	_ = unix.Kill(-f.leader, sig) // whoever is gone needs no signal
	for _, m := range list {
		if !m.grouped {
			_ = unix.Kill(m.pid, sig)
		}
	}
}

// carries reports whether the process has text in its environment. That of
// another user's process is not readable.
func carries(pid int, text []byte) bool {
	env, err := environment(pid)
	return err == nil && bytes.Contains(env, text)
}

// status returns the exit code, or -1 and the signal's name.
func status(state *os.ProcessState) (code int, signal string) {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return -1, unix.SignalName(ws.Signal())
	}
	return state.ExitCode(), ""
}
