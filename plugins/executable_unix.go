//go:build !windows

package plugins

import "io/fs"

// executable reports whether the file has an executable bit.
func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }
