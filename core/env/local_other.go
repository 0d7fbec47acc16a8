//go:build !linux

package env

import "os"

// linkless cannot tell here.
func linkless(string) bool { return false }

// openLinkless cannot tell here.
func openLinkless(string) *os.File { return nil }

// openLinklessDir cannot tell here.
func openLinklessDir(string) *os.File { return nil }
