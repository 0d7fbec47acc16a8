// Package gitindex reads the index of a git repository: which files git tracks.
package gitindex
