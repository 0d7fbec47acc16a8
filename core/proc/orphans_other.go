//go:build !linux

package proc

import (
	"errors"
	"fmt"
)

// Subreaper fails: only Linux supports adopting orphans.
func (s *Supervisor) Subreaper() error {
	return fmt.Errorf("adopt orphaned processes: %w", errors.ErrUnsupported)
}

// collect does nothing: the init process adopts orphans.
func (s *Supervisor) collect(bool) {}

// reap returns no orphans.
func (s *Supervisor) reap() []int { return nil }
