//go:build unix

package proc

import (
	"bytes"
	"time"
)

// marked is the set of processes with a text in their environment. It remembers
// those that it found, since an environment cannot be read while its process
// executes a program or ends. It is not safe for concurrent use.
type marked struct {
	text  []byte
	known map[int]int64 // the start of each, by pid
}

func newMarked(text string) *marked { return &marked{text: []byte(text), known: map[int]int64{}} }

// has reports whether a living process is in the set.
func (m *marked) has(e entry) bool {
	if e.zombie || e.kernel {
		return false
	}
	if started, ok := m.known[e.pid]; ok && started == e.started {
		return true
	}
	if e.exiting || !carries(e.pid, m.text) {
		return false
	}
	m.known[e.pid] = e.started
	return true
}

// carries reports whether the process has text in its environment. One that seems
// to have none may be executing a program, and is looked at again shortly after.
// Environments of other users' processes are not readable.
func carries(pid int, text []byte) bool {
	for range 5 {
		env, err := environment(pid)
		if err != nil || len(env) > 0 {
			return bytes.Contains(env, text)
		}
		time.Sleep(500 * time.Microsecond)
	}
	return false
}
