//go:build !unix

package permissions

import "io/fs"

// systemLinks is not known here, where no command line runs unasked.
func systemLinks(fs.FileInfo) uint64 { return 0 }
