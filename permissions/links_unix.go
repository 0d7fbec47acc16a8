//go:build unix

package permissions

import (
	"io/fs"
	"syscall"
)

// systemLinks is how many names a file of this machine has; 0 if that is not
// known.
func systemLinks(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) // its type differs between systems
	}
	return 0
}
