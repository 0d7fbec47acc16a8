//go:build !linux

package tui

// dropProgramPages does nothing: only on Linux the pages of the program count as the
// process's memory until others need it.
func dropProgramPages() {}
