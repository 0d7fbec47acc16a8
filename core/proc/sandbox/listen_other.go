//go:build !linux

package sandbox

// Listens reports whether a server on this machine listens on a TCP port. It is
// not known on this system.
func Listens(int) bool { return true }
