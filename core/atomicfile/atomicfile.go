package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path, or creates it, with the permissions perm.
// The directory must exist. A symbolic link is replaced, not followed.
func Write(path string, data []byte, perm fs.FileMode) error {
	f, err := Create(path, perm)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Commit()
}

// File is a file whose content is being written. It takes its name at Commit.
type File struct {
	temp *os.File
	path string
	perm fs.FileMode
	done bool
}

// Create starts to write the file at path, see [Write]. The caller calls
// [File.Close] in any case.
func Create(path string, perm fs.FileMode) (*File, error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp") // with the mode 0600
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &File{temp: temp, path: path, perm: perm}, nil
}

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.temp.Write(p)
	if err != nil {
		err = fmt.Errorf("write %s: %w", f.path, err)
	}
	return n, err
}

// Commit puts the file in place. It returns when the file survives a power
// cut, where the system can tell.
func (f *File) Commit() error {
	if f.done {
		return fmt.Errorf("write %s: %w", f.path, fs.ErrClosed)
	}
	f.done = true
	err := f.temp.Chmod(f.perm)
	if err = errors.Join(err, f.temp.Sync(), f.temp.Close()); err == nil {
		err = rename(f.temp.Name(), f.path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path, errors.Join(err, os.Remove(f.temp.Name())))
	}
	return SyncDir(filepath.Dir(f.path))
}

// Close discards what was written, unless it was committed.
func (f *File) Close() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(f.temp.Close(), os.Remove(f.temp.Name()))
}
