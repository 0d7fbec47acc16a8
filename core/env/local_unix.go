//go:build unix

package env

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags keep Open from blocking if the file is replaced with a pipe.
const openFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY

// checkElement accepts any name.
func checkElement(string, string) error { return nil }

// shell returns the shell's dialect and the start of its command line.
func shell() (dialect string, argv []string) {
	const bash = "/bin/bash"
	if unix.Access(bash, unix.X_OK) == nil {
		return "bash", []string{bash, "-c"}
	}
	return "sh", []string{"/bin/sh", "-c"}
}

// keepOwner gives f the owner of the file that it replaces, as far as this
// process is permitted to.
func keepOwner(f *os.File, old fs.FileInfo) {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	info, err := f.Stat()
	if err != nil {
		return
	}
	if is, ok := info.Sys().(*syscall.Stat_t); ok && (is.Uid != was.Uid || is.Gid != was.Gid) {
		_ = f.Chown(int(was.Uid), int(was.Gid))
	}
}

// renameBetween renames a file from one open directory into another.
func renameBetween(fromDir *os.Root, from string, toDir *os.Root, to string) error {
	src, err := fromDir.Open(".")
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := toDir.Open(".")
	if err != nil {
		return err
	}
	defer dst.Close()
	if err := unix.Renameat(int(src.Fd()), from, int(dst.Fd()), to); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
