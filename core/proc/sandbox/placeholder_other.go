//go:build !linux

package sandbox

import "io/fs"

// placeholder is for level Namespace only.
type placeholder struct{}

func (*placeholder) release() {}

func isPlaceholder(string, fs.FileInfo) bool { return false }

// RemovePlaceholder does nothing: there are no placeholders on this system.
func RemovePlaceholder(string) {}
