package coretest

import (
	"os"
	"syscall"
)

// ownSession keeps the console's Ctrl-C away from a child. There are no
// sessions to put it in.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills the child only: groups cannot be killed here. What it
// started must end with its stdin.
func killGroup(p *os.Process) { _ = p.Kill() }
