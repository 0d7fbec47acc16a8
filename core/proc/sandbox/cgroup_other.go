//go:build !linux

package sandbox

// removeGroup is for Linux only.
func removeGroup(string) {}
