//go:build !unix

package bundle

// modesKept is false where the file system does not know which files are
// executable. What a lock file says of it is then believed.
const modesKept = false
