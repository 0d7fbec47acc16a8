//go:build !linux

package skills

import "io/fs"

// stateOf returns what changes when a file does.
func stateOf(info fs.FileInfo) fileState {
	return fileState{Size: info.Size(), Changed: info.ModTime().UnixNano()}
}
