//go:build !linux

package store_test

import "errors"

func limitFileSize(uint64) error { return errors.ErrUnsupported }
