package snapshot

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const noFollow = 0

// openDir opens the directory name of a directory.
func openDir(parent *os.File, name string) (*os.File, error) {
	return os.Open(filepath.Join(parent.Name(), name))
}

// statAt returns the stamp of an entry of a directory, not of what it links to.
func statAt(dir *os.File, name string) (stamp, error) {
	info, err := os.Lstat(filepath.Join(dir.Name(), name))
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info), nil
}

// statOpen returns the stamp of an open file.
func statOpen(f *os.File) (stamp, error) {
	info, err := f.Stat()
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info), nil
}

// stampOf returns a stamp without an inode. Windows has no time of the last
// change of a file's attributes: that of its creation tells replaced files apart.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{mode: unixMode(info.Mode()), size: info.Size(), mtime: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		s.ctime = max(s.mtime, sys.CreationTime.Nanoseconds())
	}
	return s
}
