package env

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// openFlags are those of an Open that must not hang.
const openFlags = os.O_RDONLY

// checkElement refuses names that stand for something else than they say:
// streams, devices, and those whose end the system cuts off.
func checkElement(path, element string) error {
	if strings.ContainsRune(element, ':') || strings.TrimRight(element, ". ") != element || !filepath.IsLocal(element) {
		return &fs.PathError{Op: "resolve", Path: path, Err: fmt.Errorf("%q is no name of a file on Windows: %w", element, fs.ErrInvalid)}
	}
	return nil
}

// shell returns the shell's dialect and the beginning of its command line.
func shell() (dialect string, argv []string) { return "cmd", []string{"cmd.exe", "/d", "/s", "/c"} }

func osVersion() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}

// handlePath is not known.
func handlePath(*os.File) (path string, ok bool) { return "", false }

// keepOwner has nothing to do: a file belongs to the directory's rules.
func keepOwner(*os.File, fs.FileInfo) {}

// renameBetween renames a file from one open directory into another. Windows
// renames by path only.
func renameBetween(fromDir *os.Root, from string, toDir *os.Root, to string) error {
	return os.Rename(filepath.Join(fromDir.Name(), from), filepath.Join(toDir.Name(), to))
}
