//go:build unix

package bundle

// modesKept says that the file system knows which files are executable.
const modesKept = true
