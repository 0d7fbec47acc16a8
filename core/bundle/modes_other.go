//go:build !unix

package bundle

// modesKept is false where the file system does not record which files are
// executable. The lock file is trusted instead.
const modesKept = false
