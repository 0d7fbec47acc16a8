//go:build !unix

package store

import "os"

func openPlain(path string) (*os.File, error) { return os.Open(path) }
