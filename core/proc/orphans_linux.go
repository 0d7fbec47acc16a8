package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Subreaper makes this process the parent of all orphans of commands, and s
// responsible for ending and reaping them. Call it in a program's main function,
// before the first command, and for only one supervisor. From then on s owns the
// children of this process that are in other sessions: any other code that starts
// children must leave them in the session of this process, and may then wait for
// them.
func (s *Supervisor) Subreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphaned processes: %w", err)
	}
	s.forking.Lock()
	defer s.forking.Unlock()
	s.adopts = true
	return nil
}

// collect cleans up after a command: it reaps adopted children that have ended
// and, after an abort, ends orphans that belong to no known command. The latter
// has to wait until no command is running; ending ones do not count.
func (s *Supervisor) collect(aborted bool) {
	s.forking.Lock()
	defer s.forking.Unlock()
	if !s.adopts {
		return
	}
	s.mu.Lock()
	s.orphaned = s.orphaned || aborted
	hunt := s.orphaned && s.active == 0
	if hunt {
		s.orphaned = false
	}
	s.mu.Unlock()
	if !hunt {
		s.reap()
		return
	}
	kill(func() []int { return unmarked(s.reap()) })
	s.reap()
}

// reap waits for the adopted children that have ended and returns the living
// ones. The caller holds the forking lock.
func (s *Supervisor) reap() (living []int) {
	session, err := unix.Getsid(0)
	if err != nil {
		return nil
	}
	buf := make([]byte, 1024)
	for _, pid := range children() {
		if _, own := s.own[pid]; own {
			continue
		}
		e, ok := readStat(pid, buf)
		switch {
		case !ok || e.session == session: // another child of this program
		case e.zombie:
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		default:
			living = append(living, pid)
		}
	}
	return living
}

// children returns the adopted children of this process, and possibly others. The
// kernel gives orphans to a process's first thread.
func children() (pids []int) {
	self := os.Getpid()
	if list, ok := readTwice(fmt.Sprintf("/proc/self/task/%d/children", self)); ok {
		for _, field := range bytes.Fields(list) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	table, _ := processes(0) // without a table nothing can be found
	for _, e := range table {
		if e.ppid == self {
			pids = append(pids, e.pid)
		}
	}
	return pids
}

// readTwice reads a list of children until it is the same twice in a row. The
// kernel may skip a child if the one before it ends while the list is read.
func readTwice(file string) (list []byte, ok bool) {
	for i := range 10 {
		next, err := os.ReadFile(file)
		if err != nil { // a kernel without the file
			return nil, false
		}
		if i > 0 && bytes.Equal(next, list) {
			return list, true
		}
		list = next
	}
	return nil, false
}

// unmarked returns the pids without a marker of any supervisor. Those with one
// are ended with their own command, or were allowed to survive it.
func unmarked(pids []int) (list []int) {
	for _, pid := range pids {
		if !carries(pid, []byte(MarkerEnv+"=")) {
			list = append(list, pid)
		}
	}
	return list
}
