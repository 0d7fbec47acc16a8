//go:build !linux && !darwin && !windows

package doctor

import (
	"errors"
	"os"
)

// writable returns why files cannot be created in a directory, or nil.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".agent-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// freeSpace is not implemented on this system.
func freeSpace(string) (uint64, error) {
	return 0, errors.New("it cannot be determined on this system")
}
