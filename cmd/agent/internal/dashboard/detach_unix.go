//go:build unix

package dashboard

import "syscall"

// detached makes a process outlive the terminal that it was started from.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
