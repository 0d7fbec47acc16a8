//go:build unix

package proc

import (
	"errors"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// openTerminal creates a terminal that passes output on unchanged, does not echo,
// and returns end-of-file to the first reader.
func openTerminal() (ours, its *os.File, err error) {
	ours, its, err = pty.Open()
	if err != nil {
		return nil, nil, err
	}
	if err := setUpTerminal(ours, its); err != nil {
		return nil, nil, errors.Join(err, ours.Close(), its.Close())
	}
	return ours, its, nil
}

func setUpTerminal(ours, its *os.File) error {
	if err := pty.Setsize(its, &pty.Winsize{Rows: 40, Cols: 120}); err != nil {
		return err
	}
	if err := plainTerminal(int(its.Fd())); err != nil {
		return err
	}
	const endOfFile = 4 // the terminal's VEOF
	_, err := ours.Write([]byte{endOfFile})
	return err
}

// controlTerminal makes the command's standard input its controlling terminal.
func controlTerminal(attr *syscall.SysProcAttr) { attr.Setctty, attr.Ctty = true, 0 }

func plainTerminal(fd int) error {
	mode, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	mode.Oflag &^= unix.OPOST
	mode.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, setTermios, mode)
}
