package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// tempPrefix is the prefix of the names of temporary directories.
const tempPrefix = "agent-tmp-"

// TempDir is a directory for temporary files of confined processes. It is locked
// until it is removed, even if the TempDir is dropped while processes still use it:
// that of a killed agent is removed by [SweepTempDirs].
type TempDir struct {
	Path   string
	unlock func()
}

// NewTempDir creates a directory. The caller must remove it.
func NewTempDir() (*TempDir, error) {
	for {
		path, err := os.MkdirTemp("", tempPrefix)
		if err != nil {
			return nil, err
		}
		dir, err := openDir(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another agent removed it before it was locked
		}
		if err != nil {
			return nil, err
		}
		locked := runtime.GOOS == "windows" || tryLock(dir) && sameDir(dir, path)
		unlock, err := keepOpen(dir)
		dir.Close()
		if err != nil {
			return nil, errors.Join(err, os.Remove(path))
		}
		if locked {
			return &TempDir{path, unlock}, nil
		}
		unlock()
	}
}

// Remove removes the directory with its content. It may be called on nil.
func (t *TempDir) Remove() error {
	if t == nil {
		return nil
	}
	defer t.unlock()
	return removeAll(t.Path)
}

// SweepTempDirs removes the directories of agents of this user that were killed.
func SweepTempDirs() {
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*")) // cannot fail
	for _, path := range paths {
		dir, err := openDir(path)
		if err != nil {
			continue
		}
		if ownedByUser(dir) && tryLock(dir) && sameDir(dir, path) {
			_ = removeAll(path) // the next agent tries again
		}
		dir.Close()
	}
}

// sameDir reports whether path is the open directory.
func sameDir(dir *os.File, path string) bool {
	opened, err := dir.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, named)
}

// removeAll removes a directory with its content, even if parts are not writable,
// such as the work directories of layers and Go's module cache.
func removeAll(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
