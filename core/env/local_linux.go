package env

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func osVersion() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// handlePath returns the path by which an open file can be reached now.
func handlePath(f *os.File) (path string, ok bool) {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	return path, err == nil
}
