//go:build unix

package coretest

import (
	"os"
	"syscall"
)

// ownSession puts a child into a session and a process group of its own: no
// terminal's signal reaches it, and killGroup reaches all that it started.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killGroup kills what is left of a child's group. An empty group is no error.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
