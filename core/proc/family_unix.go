//go:build unix

package proc

import (
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
	exiting                   bool  // about to be a zombie; its files may be closed
	kernel                    bool  // a thread of the kernel
	started                   int64 // tells processes with the same pid apart
}

// member is a process of a command or, with a negative pid, its whole group if
// there is no process table.
type member struct {
	pid     int
	grouped bool // a signal to the group reaches it
	exiting bool // it is just ending
}

// family is the set of a command's processes: the first one, which leads a group
// and a session, and its descendants.
type family struct {
	leader  int
	marked  *marked
	started time.Time
	// closed means that the leader adopts orphans: everything that the command
	// started is a descendant as long as the leader runs.
	closed bool
}

func newFamily(cmd *exec.Cmd, marker string, started time.Time, closed bool) *family {
	return &family{leader: cmd.Process.Pid, marked: newMarked(marker), started: started, closed: closed}
}

func (f *family) close() {}

// lingers reports, after the leader's end, whether its group or session may have
// processes. It is fast if nothing was started after the leader.
func (f *family) lingers() bool {
	if newestPID() == f.leader {
		return false
	}
	return slices.ContainsFunc(f.members(false), func(m member) bool { return !m.exiting })
}

// members returns the living processes of the leader's group and session except
// the leader. With all set, it adds those known only by their parents or their
// marker.
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
		if e.group == f.leader || e.session == f.leader || all && f.marked.has(e) {
			related[e.pid] = true
		}
	}
	if all {
		addDescendants(table, related)
	}
	return related
}

// addDescendants adds the descendants of related to it.
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

// oldest returns the lowest pid that matters. Pids are assigned in ascending
// order, so that the descendants of the leader have higher ones, unless the
// counter has wrapped around since.
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
	_ = unix.Kill(-f.leader, sig) // it may have ended
	for _, m := range list {
		if !m.grouped {
			_ = unix.Kill(m.pid, sig)
		}
	}
}

// status returns the exit code, or -1 and the signal's name.
func status(state *os.ProcessState) (code int, signal string) {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return -1, unix.SignalName(ws.Signal())
	}
	return state.ExitCode(), ""
}
