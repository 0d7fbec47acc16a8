package env

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// plainFile is a regular file, open for reading. A search opens thousands: an
// [os.File] would ask the kernel twice whether it can be polled, and keep each one
// for the garbage collector.
type plainFile struct {
	fd     atomic.Int64 // -1 once closed
	opened plainInfo
}

// use calls the kernel until no signal interrupts it.
func (f *plainFile) use(call func(fd int) (int, error)) (int, error) {
	fd := int(f.fd.Load())
	if fd < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.opened.path, Err: os.ErrClosed}
	}
	for {
		n, err := call(fd)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, &fs.PathError{Op: "read", Path: f.opened.path, Err: err}
		}
		return n, nil
	}
}

// Read implements [core.File].
func (f *plainFile) Read(p []byte) (int, error) {
	n, err := f.use(func(fd int) (int, error) { return unix.Read(fd, p) })
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// ReadAt implements [core.File].
func (f *plainFile) ReadAt(p []byte, at int64) (int, error) {
	total := 0
	for total < len(p) {
		n, err := f.use(func(fd int) (int, error) { return unix.Pread(fd, p[total:], at+int64(total)) })
		if err != nil {
			return total, err
		}
		if n == 0 {
			return total, io.EOF
		}
		total += n
	}
	return total, nil
}

// Close implements [core.File].
func (f *plainFile) Close() error {
	fd := f.fd.Swap(-1)
	if fd < 0 {
		return &fs.PathError{Op: "close", Path: f.opened.path, Err: os.ErrClosed}
	}
	return unix.Close(int(fd)) // not again if interrupted: Linux has closed it
}

// Stat implements [core.File]. It is about the file as it was opened.
func (f *plainFile) Stat() (fs.FileInfo, error) {
	if f.fd.Load() < 0 {
		return nil, &fs.PathError{Op: "stat", Path: f.opened.path, Err: os.ErrClosed}
	}
	return &f.opened, nil
}

// plainInfo describes a regular file.
type plainInfo struct {
	path string
	stat syscall.Stat_t
}

func (i *plainInfo) Name() string       { return filepath.Base(i.path) }
func (i *plainInfo) Size() int64        { return i.stat.Size }
func (i *plainInfo) Mode() fs.FileMode  { return modeOf(i.stat.Mode) }
func (i *plainInfo) ModTime() time.Time { return time.Unix(i.stat.Mtim.Unix()) }
func (i *plainInfo) IsDir() bool        { return false }
func (i *plainInfo) Sys() any           { return &i.stat }

// modeOf returns the mode of a regular file.
func modeOf(mode uint32) fs.FileMode {
	m := fs.FileMode(mode) & fs.ModePerm
	for _, bit := range []struct {
		unix uint32
		mode fs.FileMode
	}{{unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, fs.ModeSticky}} {
		if mode&bit.unix != 0 {
			m |= bit.mode
		}
	}
	return m
}
