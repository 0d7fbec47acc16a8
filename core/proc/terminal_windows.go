package proc

import (
	"errors"
	"os"
	"syscall"
)

// openTerminal is not implemented.
func openTerminal(int, int) (ours, its *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func controlTerminal(*syscall.SysProcAttr) {}
