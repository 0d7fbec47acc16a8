package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// awaitEnd returns when a child that nobody has waited for has ended, or at once if the
// system cannot tell. Until then it takes no thread: one that waits in a system call
// keeps its processor from other goroutines, for up to 10 ms.
func awaitEnd(pid int) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	file := os.NewFile(uintptr(fd), "child")
	defer file.Close()
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool { // without support, the caller waits
		var end unix.Siginfo
		err := unix.Waitid(unix.P_PIDFD, int(fd), &end, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		return err != nil && err != unix.EINTR || end.Signo != 0
	})
}
