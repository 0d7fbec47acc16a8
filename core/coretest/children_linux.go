package coretest

import (
	"bytes"
	"os"
	"strconv"
)

// children returns the names of the child processes of this one by pid, including
// those that have ended and were not reaped.
func children() map[int]string {
	found := make(map[int]string)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return found
	}
	self := strconv.Itoa(os.Getpid())
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid …; the name may contain anything, even ")".
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if open < 0 || end < open {
			continue
		}
		if fields := bytes.Fields(stat[end+1:]); len(fields) > 1 && string(fields[1]) == self {
			found[pid] = string(stat[open+1 : end])
		}
	}
	return found
}
