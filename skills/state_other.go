//go:build !linux

package skills

import (
	"io/fs"
	"os"
)

// stateOf returns what changes when a file does.
func stateOf(info fs.FileInfo) fileState {
	return fileState{Size: info.Size(), Changed: info.ModTime().UnixNano()}
}

// regularFile returns the state of a regular file, and whether it is one.
func regularFile(path string) (fileState, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return fileState{}, false
	}
	return stateOf(info), true
}
