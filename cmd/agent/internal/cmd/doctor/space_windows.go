package doctor

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// writable says why files cannot be made in a directory: what access lists
// come to shows only when it is tried.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".agent-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// freeSpace returns the bytes that this user can write to the disk of a
// directory.
func freeSpace(dir string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return free, err
}
