//go:build !windows

package plugins

import "io/fs"

// executable reports whether somebody may execute the file.
func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }
