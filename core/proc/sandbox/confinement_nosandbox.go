//go:build !linux && !darwin

package sandbox

import "os/exec"

// levelsHere are the levels of this system.
var levelsHere []Level

const noLevels = "this system has no sandbox"

// build is never called: there are no levels.
func (c *Confinement) build(*Profile, *exec.Cmd) error { return ErrUnavailable }

// probe is never called: there are no levels.
func (m *Manager) probe(Level) (works bool, reason string) { return false, noLevels }
