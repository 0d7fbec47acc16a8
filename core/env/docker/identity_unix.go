//go:build unix

package docker

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// identity returns the device and the inode of a file, as stat prints them.
func identity(name string) (string, error) {
	var s unix.Stat_t
	if err := unix.Stat(name, &s); err != nil {
		return "", err
	}
	return fmt.Sprint(s.Dev, " ", s.Ino), nil
}
