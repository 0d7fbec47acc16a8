//go:build !linux && !darwin

package bundle

import "errors"

// exchange is not supported: two renames are used instead.
func exchange(string, string) error { return errors.ErrUnsupported }
