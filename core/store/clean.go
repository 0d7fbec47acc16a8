package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// orphanAge is how long a context without a session log is left alone: a
// session may run without a log.
const orphanAge = 24 * time.Hour

// Clean removes, below dir, the contexts of sessions whose log in sessionsDir is
// gone, and of those whose log was last changed more than maxAge before now; 0
// keeps these. It keeps the context of an open session, and one without a log
// that changed within the last day. It returns the sessions whose contexts it
// removed; the error names those that it could not remove.
func Clean(dir, sessionsDir string, maxAge time.Duration, now time.Time) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("clean context stores: %w", err)
	}
	var removed []string
	var failed []error
	for _, entry := range entries {
		id := entry.Name()
		if !entry.IsDir() || !validID(id) {
			continue
		}
		path := filepath.Join(dir, id)
		ok, err := stale(path, filepath.Join(sessionsDir, id), maxAge, now)
		if err == nil && ok {
			if err = os.RemoveAll(path); err == nil {
				removed = append(removed, id)
			}
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("clean context store: %w", err))
		}
	}
	return removed, errors.Join(failed...)
}

// stale reports whether a context can be removed. Base is the path of the
// session's files without their suffix.
func stale(context, base string, maxAge time.Duration, now time.Time) (bool, error) {
	log, err := os.Stat(base + fileSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		changed, err := lastChange(context)
		return err == nil && now.Sub(changed) > orphanAge, err
	case err != nil:
		return false, err
	case maxAge <= 0 || now.Sub(log.ModTime()) <= maxAge:
		return false, nil
	}
	if _, err := os.Stat(base + lockSuffix); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	l, err := acquire(filepath.Base(base), base+lockSuffix)
	if errors.Is(err, ErrLocked) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, l.release()
}

// lastChange returns the newest modification time in a directory tree.
func lastChange(dir string) (time.Time, error) {
	var newest time.Time
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return err
	})
	return newest, err
}
