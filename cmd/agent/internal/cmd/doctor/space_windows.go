package doctor

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// writable returns why files cannot be created in a directory, or nil. The effect
// of access lists is known only by trying.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".agent-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// freeSpace returns how many bytes the user can write to the disk of a
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
