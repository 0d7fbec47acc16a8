package plugins

import "io/fs"

// executable reports whether the file may be a program; Windows has no bit
// that says so.
func executable(fs.FileInfo) bool { return true }
