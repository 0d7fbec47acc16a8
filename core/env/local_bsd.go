//go:build unix && !linux

package env

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

func osVersion() string {
	name := "kern.osrelease"
	if runtime.GOOS == "darwin" {
		name = "kern.osproductversion"
	}
	version, err := unix.Sysctl(name)
	if err != nil {
		return ""
	}
	return version
}

// handlePath is not supported.
func handlePath(*os.File) (path string, ok bool) { return "", false }
