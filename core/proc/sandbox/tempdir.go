package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// tempPrefix is the prefix of the names of temporary directories.
const tempPrefix = "agent-tmp-"

// TempDir is a directory for temporary files, such as those of confined processes,
// that only this user can access. It is locked until it is removed, even if the
// TempDir is dropped while processes still use it: that of a killed agent is
// removed by [SweepTempDirs].
type TempDir struct {
	Path   string
	unlock func()
}

// NewTempDir creates a directory. The caller must remove it.
func NewTempDir() (*TempDir, error) { return NewTempDirIn(os.TempDir()) }

// NewTempDirIn is [NewTempDir] in base, which is one of [TempBases].
func NewTempDirIn(base string) (*TempDir, error) {
	for {
		path, err := os.MkdirTemp(base, tempPrefix)
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

// Remove removes the directory with its content. It may be called again, and on nil.
func (t *TempDir) Remove() error {
	if t == nil {
		return nil
	}
	defer t.unlock()
	return removeAll(t.Path)
}

// InTempDir reports whether a path is in a directory of [NewTempDir].
func InTempDir(path string) bool {
	return slices.ContainsFunc(TempBases(), func(base string) bool {
		rest, err := filepath.Rel(base, path)
		return err == nil && strings.HasPrefix(rest, tempPrefix)
	})
}

// SweepTempDirs removes the directories of agents of this user that were killed.
func SweepTempDirs() {
	var paths []string
	for _, base := range TempBases() {
		found, _ := filepath.Glob(filepath.Join(base, tempPrefix+"*")) // cannot fail
		paths = append(paths, found...)
	}
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

// TempBases returns the directories for temporary files, the best for sockets
// first.
func TempBases() []string {
	bases := []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"}
	return slices.Compact(slices.DeleteFunc(bases, func(dir string) bool { return !filepath.IsAbs(dir) }))
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
