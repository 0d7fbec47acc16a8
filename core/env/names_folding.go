//go:build windows || darwin

package env

import (
	"io/fs"
	"os"
	"path/filepath"
)

// trueName returns the path of an existing element of dir as spelled in the
// directory: the file systems accept other spellings too, but paths that are
// matched with rules must have only one.
func trueName(dir, element string, info fs.FileInfo) string {
	given := filepath.Join(dir, element)
	d, err := os.Open(dir)
	if err != nil {
		return given
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return given
	}
	for _, name := range names {
		if name == element {
			return given
		}
	}
	for _, name := range names {
		other := filepath.Join(dir, name)
		if found, err := os.Lstat(other); err == nil && os.SameFile(found, info) {
			return other
		}
	}
	return given
}
