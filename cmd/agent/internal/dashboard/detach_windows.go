package dashboard

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// detached makes a process outlive the console that it was started from.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
