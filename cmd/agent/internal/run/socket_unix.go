//go:build unix

package run

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// maxSocketPath is the longest path of a socket that all systems take.
const maxSocketPath = 103

// socket is a listener whose files go with it.
type socket struct {
	net.Listener
	lock *flock.Flock
}

// listen creates a socket that only this user can connect to. A socket that nobody
// listens on any more is replaced: whoever listens holds a lock on a file beside it.
func listen(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path %s has more than %d bytes, the most that a socket can have: use a shorter one", path, maxSocketPath)
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if held, err := lock.TryLock(); err != nil {
		return nil, err
	} else if !held {
		return nil, fmt.Errorf("%s is in use by another agent: use another path, or end that one", path)
	}
	l, err := bind(path)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return &socket{l, lock}, nil
}

func bind(path string) (net.Listener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s exists and is not a socket: use another path", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	return net.Listen("unix", path)
}

// Close closes the socket and removes its files. The lock stays until the end.
func (s *socket) Close() error {
	err := s.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Join(err, os.Remove(s.lock.Path()), s.lock.Unlock())
}

// checkPeer refuses programs of other users.
func checkPeer(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var uid uint32
	var failed error
	if err := raw.Control(func(fd uintptr) { uid, failed = peerUID(int(fd)) }); err != nil || failed != nil {
		return fmt.Errorf("the user of the connection is unknown: %w", errors.Join(err, failed))
	}
	return checkUID(uid)
}

func checkUID(uid uint32) error {
	if int(uid) != os.Geteuid() {
		return fmt.Errorf("the connection is from another user, with ID %d: only user %d can connect", uid, os.Geteuid())
	}
	return nil
}
