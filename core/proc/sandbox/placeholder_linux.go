package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A placeholder is an empty directory in place of a missing protected one. Any
// number of processes, of any agent, can use it at once: each holds a shared lock
// on it, and whoever gets the exclusive lock afterwards was the last and removes it.
// The kernel releases the locks of a killed agent, so that its placeholders are
// removed by the next agent that finds them. The sticky bit distinguishes them from
// other empty directories.

// placeholderMode is the mode of a placeholder. Programs outside the sandbox, such
// as git init, may fill it.
const placeholderMode = unix.S_ISVTX | 0o755

// placeholderTime is the time after which a placeholder is used without a lock:
// a confined process could hold one to block others.
const placeholderTime = 2 * time.Second

// isPlaceholder reports whether path, as just seen, is a placeholder or was one:
// another agent may be removing it.
func isPlaceholder(path string, seen fs.FileInfo) bool {
	if !seen.IsDir() || seen.Mode()&fs.ModeSticky == 0 {
		return false
	}
	entries, err := os.ReadDir(path)
	return len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
}

// placeholder is one use of a placeholder.
type placeholder struct {
	path string
	dir  *os.File // locked
}

// usePlaceholder creates the placeholder, unless another process did.
func usePlaceholder(path string) (*placeholder, error) {
	deadline := time.Now().Add(placeholderTime)
	for {
		if err := unix.Mkdir(path, placeholderMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("sandbox: create a placeholder for %s: %w", path, err)
		}
		dir, err := openDir(path)
		if errors.Is(err, fs.ErrNotExist) && time.Now().Before(deadline) {
			continue // just removed
		}
		if err != nil {
			return nil, fmt.Errorf("sandbox: open the placeholder for %s: %w", path, err)
		}
		p := &placeholder{path, dir}
		locked := lock(dir, unix.LOCK_SH)
		if late := time.Now().After(deadline); (locked || late) && p.current() {
			return p, nil
		}
		dir.Close()
		if !locked {
			time.Sleep(time.Millisecond)
		}
	}
}

// release removes the placeholder if no other process uses it.
func (p *placeholder) release() {
	defer p.dir.Close()
	if !lock(p.dir, unix.LOCK_EX) || !p.current() {
		return
	}
	info, err := p.dir.Stat()
	if err != nil || info.Mode()&fs.ModeSticky == 0 {
		return // not a placeholder
	}
	if os.Remove(p.path) != nil { // filled meanwhile
		_ = p.dir.Chmod(info.Mode() &^ fs.ModeSticky)
	}
}

// current reports whether the locked directory is still the one at its path.
func (p *placeholder) current() bool { return sameDir(p.dir, p.path) }

// RemovePlaceholder removes the placeholder that a killed agent left at a path. Any
// other file, and a placeholder in use, is left alone.
func RemovePlaceholder(path string) {
	info, err := os.Lstat(path)
	if err != nil || !isPlaceholder(path, info) {
		return
	}
	if dir, err := openDir(path); err == nil {
		(&placeholder{path, dir}).release()
	}
}
