//go:build linux && !amd64 && !arm64

package early

import "syscall"

// vfork is not called: there is no sandbox on this architecture.
//
//go:nosplit
func vfork() (result uintptr) { return ^uintptr(syscall.ENOSYS) + 1 }
