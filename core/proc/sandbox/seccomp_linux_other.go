//go:build linux && !amd64 && !arm64

package sandbox

import "golang.org/x/sys/unix"

// sockets says which sockets a filter lets through.
type sockets uint8

const (
	unixSockets sockets = 1 << iota
	inetSockets
	routeSockets
	servedSockets
)

// seccompFilter knows the system calls of this architecture not: without a
// filter, no level is said to work.
func seccompFilter(sockets, bool) []unix.SockFilter { return nil }
