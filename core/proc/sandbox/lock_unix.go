//go:build unix

package sandbox

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// openDir opens a directory that is not a symbolic link.
func openDir(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// lock takes a lock on an open directory, which lasts until it is closed, if no
// other process holds a conflicting one.
func lock(dir *os.File, how int) bool {
	for {
		err := unix.Flock(int(dir.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// tryLock takes an exclusive lock.
func tryLock(dir *os.File) bool { return lock(dir, unix.LOCK_EX) }

// keepOpen keeps an open directory, and a lock on it, after the file is closed,
// which the garbage collector may do. Only the first call of done has an effect: the
// descriptor may be another file's after that.
func keepOpen(dir *os.File) (done func(), err error) {
	fd, err := unix.FcntlInt(dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return sync.OnceFunc(func() { _ = unix.Close(fd) }), err
}

// ownedByUser reports whether a file belongs to the user of this process.
func ownedByUser(f *os.File) bool {
	var stat unix.Stat_t
	return unix.Fstat(int(f.Fd()), &stat) == nil && int(stat.Uid) == os.Geteuid()
}
