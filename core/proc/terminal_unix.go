//go:build unix

package proc

import (
	"errors"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// openTerminal creates a terminal that passes output on unchanged and does not
// echo.
func openTerminal(rows, cols int) (ours, its *os.File, err error) {
	ours, its, err = pty.Open()
	if err != nil {
		return nil, nil, err
	}
	if err := setUpTerminal(its, rows, cols); err != nil {
		return nil, nil, errors.Join(err, ours.Close(), its.Close())
	}
	return ours, its, nil
}

func setUpTerminal(its *os.File, rows, cols int) error {
	if err := pty.Setsize(its, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)}); err != nil {
		return err
	}
	return plainTerminal(int(its.Fd()))
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
