package atomicfile

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// renamePatience is how long another program, such as a virus scanner or an
// indexer, may keep the old file open.
const renamePatience = 2 * time.Second

// rename tries again while the file is open elsewhere.
func rename(from, to string) error {
	deadline := time.Now().Add(renamePatience)
	for delay := time.Millisecond; ; delay *= 2 {
		err := os.Rename(from, to)
		busy := errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION)
		if !busy || time.Now().Add(delay).After(deadline) {
			return err
		}
		time.Sleep(delay)
	}
}

// SyncDir does nothing: Windows cannot sync a directory, and NTFS journals its
// names.
func SyncDir(string) error { return nil }
