//go:build unix && !linux && !darwin

package proc

import (
	"errors"
	"syscall"
)

// childAttributes gives a command its own session.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// processes is not implemented: only a command's process group is known.
func processes(int) ([]entry, error) { return nil, errors.ErrUnsupported }

func environment(int) ([]byte, error) { return nil, errors.ErrUnsupported }

// newestPID is not supported.
func newestPID() int { return 0 }
