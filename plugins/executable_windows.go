package plugins

import "io/fs"

// executable always returns true: Windows has no executable bit.
func executable(fs.FileInfo) bool { return true }
