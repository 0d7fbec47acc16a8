//go:build !windows && !darwin

package env

import (
	"io/fs"
	"path/filepath"
)

// trueName returns the path of an existing element of dir. Names are
// case-sensitive on this system.
func trueName(dir, element string, _ fs.FileInfo) string { return filepath.Join(dir, element) }
