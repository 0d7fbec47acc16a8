//go:build !linux

package env

import (
	"os"
	"time"
)

// stamp identifies the state of a file.
type stamp struct {
	size, changed int64
}

func stampOf(path string) (stamp, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, false
	}
	return stamp{info.Size(), info.ModTime().UnixNano()}, true
}

// now is the time by the clock of the file system.
func now() stamp { return stamp{changed: time.Now().UnixNano()} }

func (s stamp) before(t stamp) bool { return s.changed < t.changed }

// A program can set the time here, so that the stamp of a directory proves nothing.
func (s stamp) device() uint64     { return 0 }
func (s stamp) settled(stamp) bool { return false }
func steady(string) bool           { return false }

// born reports whether a file was created since then.
func born(path string, since stamp) bool {
	s, ok := stampOf(path)
	return ok && !s.before(since)
}
