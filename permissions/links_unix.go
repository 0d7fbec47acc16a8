//go:build unix

package permissions

import (
	"io/fs"
	"syscall"
)

// systemLinks returns the number of hard links of a local file; 0 if unknown.
func systemLinks(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) // its type differs between systems
	}
	return 0
}
