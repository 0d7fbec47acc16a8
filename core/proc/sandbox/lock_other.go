//go:build !unix

package sandbox

import "os"

// Without locks nothing is known about other agents: each removes only its own
// directories.

func openDir(path string) (*os.File, error) { return os.Open(path) }

func tryLock(*os.File) bool { return false }

// keepOpen does nothing: an open directory cannot be removed on Windows.
func keepOpen(*os.File) (done func(), err error) { return func() {}, nil }

func ownedByUser(*os.File) bool { return false }
