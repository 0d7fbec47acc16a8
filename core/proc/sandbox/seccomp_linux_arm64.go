package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	foreignCalls = 0x40000000 // no call has such a number
)

var (
	refusedHere []uintptr
	unownedHere []uintptr

	brokeredHere  map[uintptr]form
	openCallsHere map[uintptr]int
)

// rmdirCall is no call: there is only unlinkat.
const rmdirCall = ^uintptr(0)
