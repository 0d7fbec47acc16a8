package env

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-009c0928/agent/core"
)

func osVersion() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// handlePath returns the current path of an open file.
func handlePath(f *os.File) (path string, ok bool) {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	return path, err == nil
}

// withoutLinks makes the kernel refuse a path with any symbolic link, including
// one that was just created.
const withoutLinks = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// linkless reports whether a clean absolute path exists and has no symbolic
// link. It may be false for any other reason.
func linkless(path string) bool {
	fd, err := openat2(path, unix.O_PATH|unix.O_CLOEXEC, withoutLinks)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// openLinkless opens the regular file at a clean absolute path without symbolic
// links. It returns nil if there is no such file, or if it cannot tell.
func openLinkless(path string) core.File {
	// Opening something other than a file could have side effects.
	var before unix.Stat_t
	if err := unix.Lstat(path, &before); err != nil || before.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	fd, err := openat2(path, openFlags|unix.O_CLOEXEC, withoutLinks)
	if err != nil {
		return nil
	}
	f := &plainFile{opened: plainInfo{path: path}}
	f.fd.Store(int64(fd))
	if err := syscall.Fstat(fd, &f.opened.stat); err != nil || f.opened.stat.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil
	}
	return f
}

// openLinklessDir is openLinkless for a directory.
func openLinklessDir(path string) *os.File {
	fd, err := openat2(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, withoutLinks)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), path)
}

func openat2(path string, flags int, resolve uint64) (int, error) {
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: uint64(flags), Resolve: resolve})
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
