//go:build unix

package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// endDetached ends the detached processes of commands that have ended: all
// orphans if s adopts them, otherwise all processes with the token of s. It is
// called when no command is running.
func (s *Supervisor) endDetached() {
	s.forking.Lock()
	defer s.forking.Unlock()
	find := living(newMarked(s.token))
	if s.adopts {
		find = s.reap
	}
	found := find()
	for _, pid := range found {
		_ = unix.Kill(pid, unix.SIGTERM)
	}
	for deadline := time.Now().Add(leftGrace); len(found) > 0 && time.Now().Before(deadline); found = find() {
		time.Sleep(5 * time.Millisecond)
	}
	if len(found) > 0 {
		kill(find)
	}
}

// living returns a function that finds the living processes of a set.
func living(set *marked) func() []int {
	return func() (pids []int) {
		table, _ := processes(0) // without a table there is nothing to find
		for _, e := range table {
			if set.has(e) {
				pids = append(pids, e.pid)
			}
		}
		return pids
	}
}

// kill kills the processes returned by find and their descendants, until there
// are none or killTime has passed.
func kill(find func() []int) {
	deadline := time.Now().Add(killTime)
	for {
		found := find()
		table, err := processes(0)
		if len(found) == 0 || err != nil {
			return
		}
		doomed := map[int]bool{}
		for _, pid := range found {
			doomed[pid] = true
		}
		addDescendants(table, doomed)
		for pid := range doomed {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if !time.Now().Before(deadline) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}
