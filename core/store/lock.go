package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const lockSuffix = ".lock"

// lock is the lock on a session. It ends with the process, however that ends.
type lock struct{ file *flock.Flock }

// acquire takes the lock of a session or returns a *LockedError.
func acquire(id, path string) (*lock, error) {
	for {
		file := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		ok, err := file.TryLock()
		if err == nil && !ok && gone(owner(path)) {
			ok, err = patiently(file)
		}
		if err != nil {
			return nil, fmt.Errorf("lock session %s: %w", id, err)
		}
		if !ok {
			pid, address := ownerOf(path)
			return nil, &LockedError{ID: id, File: path, PID: pid, Address: address}
		}
		// The previous owner may have removed the file after it was opened
		// here: a lock on a removed file excludes nobody.
		locked, lockedErr := file.Stat()
		now, nowErr := os.Stat(path)
		switch {
		case lockedErr == nil && nowErr == nil && os.SameFile(locked, now):
			if err := writeOwner(path); err != nil {
				return nil, errors.Join(fmt.Errorf("lock session %s: %w", id, err), file.Unlock())
			}
			return &lock{file}, nil
		case nowErr != nil && !errors.Is(nowErr, fs.ErrNotExist):
			return nil, errors.Join(fmt.Errorf("lock session %s: %w", id, nowErr), file.Unlock())
		}
		if err := file.Unlock(); err != nil {
			return nil, fmt.Errorf("lock session %s: %w", id, err)
		}
	}
}

// afterlife is how long the lock of a killed process may last: a process that it was
// about to start holds it, too, until that runs its own program.
const afterlife = 2 * time.Second

func patiently(file *flock.Flock) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), afterlife)
	defer cancel()
	ok, err := file.TryLockContext(ctx, 5*time.Millisecond)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return ok, err
}

// gone reports whether there is certainly no process of that id.
func gone(pid int) bool {
	if pid <= 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	return err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// release removes the lock file, if the system can remove an open file, and
// unlocks.
func (l *lock) release() error {
	_ = os.Remove(l.file.Path()) // a remaining file is locked again the next time
	return l.file.Unlock()
}

// The owner's process id follows the first byte: on Windows the lock makes that
// byte unreadable for others.
const (
	ownerOffset = 1
	ownerSize   = 21 // of the id and its line break
)

func writeOwner(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(fmt.Appendf(nil, "%-20d\n\n", os.Getpid()), ownerOffset)
	return errors.Join(err, f.Close())
}

// advertise adds to the lock how other processes reach the owner.
func (l *lock) advertise(address string) error {
	f, err := os.OpenFile(l.file.Path(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(address+"\n"), ownerOffset+ownerSize)
	return errors.Join(err, f.Close())
}

func owner(path string) int {
	pid, _ := ownerOf(path)
	return pid
}

// ownerOf returns the owner's process id, 0 if it is not known, and what it advertises.
func ownerOf(path string) (pid int, address string) {
	f, err := os.Open(path)
	if err != nil {
		return 0, ""
	}
	defer f.Close()
	buf := make([]byte, 1024)
	n, _ := f.ReadAt(buf, ownerOffset)
	first, rest, _ := strings.Cut(string(buf[:n]), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0, ""
	}
	address, _, _ = strings.Cut(rest, "\n")
	return pid, address
}

// InUse reports whether some process has the session open, as far as that can be found
// out without locking it.
func InUse(dir, id string) bool {
	if CheckID(id) != nil {
		return false
	}
	pid := owner(filepath.Join(dir, id+lockSuffix))
	return pid > 0 && !gone(pid)
}
