//go:build !linux

package sandbox

// ReadChanges lists what a process changed in dir. There are no layers on this
// system.
func ReadChanges(_, _ string) ([]Change, error) { return nil, ErrUnavailable }

// MountsBelow lists the mounts below a directory, which no layer on it covers.
func MountsBelow(string) ([]string, error) { return nil, ErrUnavailable }
