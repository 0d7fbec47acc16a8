//go:build !linux

package env

import "os"

// linkless is not supported.
func linkless(string) bool { return false }

// openLinkless is not supported.
func openLinkless(string) *os.File { return nil }

// openLinklessDir is not supported.
func openLinklessDir(string) *os.File { return nil }
