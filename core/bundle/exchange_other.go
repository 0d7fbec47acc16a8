//go:build !linux && !darwin

package bundle

import "errors"

// exchange is not to be had here: two renames stand in for it.
func exchange(string, string) error { return errors.ErrUnsupported }
