//go:build !linux && !darwin && !windows

package doctor

import (
	"errors"
	"os"
)

// writable says why files cannot be made in a directory.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".agent-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// freeSpace is not known here.
func freeSpace(string) (uint64, error) {
	return 0, errors.New("it cannot be determined on this system")
}
