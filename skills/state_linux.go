package skills

import (
	"io/fs"
	"syscall"
)

// stateOf returns what changes when a file does: on Linux also its number and the
// time of the last change, which no program can set.
func stateOf(info fs.FileInfo) fileState {
	s := fileState{Size: info.Size(), Changed: info.ModTime().UnixNano()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Number, s.Status = stat.Ino, stat.Ctim.Nano()
	}
	return s
}
