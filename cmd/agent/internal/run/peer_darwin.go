package run

import "golang.org/x/sys/unix"

// peerUID returns the user of the other end of a socket.
func peerUID(fd int) (uint32, error) {
	const level = 0 // SOL_LOCAL
	c, err := unix.GetsockoptXucred(fd, level, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return c.Uid, nil
}
