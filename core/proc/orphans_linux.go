package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Subreaper makes this process the parent of every process that a command
// orphans, and s the one that ends and reaps them. It is for a program's main
// function, before the first command, and for one supervisor of the program.
// From then on the children of this process that are in another session than
// its own belong to s: whatever else starts children must leave them in the
// session of this process, and is then free to wait for them.
func (s *Supervisor) Subreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphaned processes: %w", err)
	}
	s.forking.Lock()
	defer s.forking.Unlock()
	s.adopts = true
	return nil
}

// collect cleans up after a command: it reaps adopted children that have ended,
// and, after an abort, ends orphans that cannot be told to belong to any
// command. That has to wait until no command runs; ending commands count no more.
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
// ones. The forking lock is held.
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
		case !ok || e.session == session: // of somebody else in this program
		case e.zombie:
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		default:
			living = append(living, pid)
		}
	}
	return living
}

// children returns the children of this process that it adopted, and perhaps
// others. The kernel gives orphans to a process's first thread.
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
// kernel skips a child when one that it has just listed goes away; the next
// reading then lacks the latter.
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

// unmarked returns the pids that carry no marker of any supervisor. Those with
// one are ended with their own command, or have been left to live on.
func unmarked(pids []int) (list []int) {
	for _, pid := range pids {
		if !carries(pid, []byte(MarkerEnv+"=")) {
			list = append(list, pid)
		}
	}
	return list
}
