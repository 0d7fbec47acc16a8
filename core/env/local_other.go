//go:build !linux

package env

import (
	"os"

	"github.com/seed-009c0928/agent/core"
)

// linkless is not supported.
func linkless(string) bool { return false }

// openLinkless is not supported.
func openLinkless(string) core.File { return nil }

// openLinklessDir is not supported.
func openLinklessDir(string) *os.File { return nil }
