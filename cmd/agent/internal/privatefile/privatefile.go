package privatefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/core/atomicfile"
)

const (
	// MaxSize is the number of bytes that a file may have.
	MaxSize = 1 << 20

	lockPatience = 5 * time.Second
	lockRetry    = 10 * time.Millisecond
)

// Update replaces what the file at path holds by what change makes of it; nil
// stands for a file that does not exist. If change fails or changes nothing,
// nothing is written. Directories that are missing are made. Where path is a
// symbolic link, the file that it names is replaced.
//
// The lock is a file that is made beside what it guards and stays there; who
// holds it for more than 5 seconds is an error. The written file has the mode
// 0600, directories 0700.
func Update(ctx context.Context, path, lock string, change func(old []byte) ([]byte, error)) (err error) {
	if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
		return err
	}
	guard := flock.New(lock, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	waiting, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if _, err := guard.TryLockContext(waiting, lockRetry); err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("another program has held it for %s", lockPatience)
		}
		return fmt.Errorf("lock %s: %w", lock, err)
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	old, err := Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := change(old)
	if err != nil || bytes.Equal(old, data) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}

// Read returns what a file holds. It must be a regular one of at most MaxSize
// bytes. The error is an fs.ErrNotExist if there is none.
func Read(path string) ([]byte, error) {
	info, err := os.Stat(path) // first: opening a pipe would wait for its other end
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = fmt.Errorf("%s is larger than %d bytes", path, MaxSize)
	}
	return data, err
}
