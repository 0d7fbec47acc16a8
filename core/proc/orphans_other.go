//go:build !linux

package proc

import (
	"errors"
	"fmt"
)

// Subreaper fails: only Linux lets a process adopt orphans.
func (s *Supervisor) Subreaper() error {
	return fmt.Errorf("adopt orphaned processes: %w", errors.ErrUnsupported)
}

// collect has nothing to do: orphans belong to the first process of the system.
func (s *Supervisor) collect(bool) {}

// reap returns no orphans.
func (s *Supervisor) reap() []int { return nil }
