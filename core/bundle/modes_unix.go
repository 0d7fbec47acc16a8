//go:build unix

package bundle

// modesKept says that the file system records which files are executable.
const modesKept = true
