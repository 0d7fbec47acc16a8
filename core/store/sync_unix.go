//go:build unix

package store

import (
	"errors"
	"os"
)

// syncDir makes the names of new files in a directory survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
