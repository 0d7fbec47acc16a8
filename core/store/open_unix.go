//go:build unix

package store

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// plainFile is a regular file that is read. An [os.File] can also be waited for: to
// open one costs five more system calls, for each of many logs.
type plainFile struct {
	fd   int
	path string
}

func openPlain(path string) (plainFile, error) {
	f := plainFile{path: path}
	err := again(func() (err error) {
		f.fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		return err
	})
	return f, f.wrap("open", err)
}

// Read implements io.Reader.
func (f plainFile) Read(p []byte) (n int, err error) {
	err = again(func() (err error) {
		n, err = syscall.Read(f.fd, p)
		return err
	})
	switch {
	case err != nil:
		return 0, f.wrap("read", err)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Close implements io.Closer. The descriptor is gone even after an error.
func (f plainFile) Close() error { return f.wrap("close", syscall.Close(f.fd)) }

func (f plainFile) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: f.path, Err: err}
}

// again repeats a system call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
