package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	foreignCalls = 0x40000000 // no call has such a number
)

var (
	refusedHere []uintptr
	unownedHere []uintptr
)
