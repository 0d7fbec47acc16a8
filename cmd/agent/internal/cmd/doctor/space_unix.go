//go:build linux || darwin

package doctor

import (
	"golang.org/x/sys/unix"
)

// writable returns why files cannot be created in a directory, or nil.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

// freeSpace returns how many bytes the user can write to the disk of a
// directory.
func freeSpace(dir string) (uint64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	return stat.Bavail * uint64(stat.Bsize), nil
}
