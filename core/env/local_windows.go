package env

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// openFlags keep Open from blocking.
const openFlags = os.O_RDONLY

// checkElement refuses names that Windows interprets: streams, devices, and
// names whose end it cuts off.
func checkElement(path, element string) error {
	if strings.ContainsRune(element, ':') || strings.TrimRight(element, ". ") != element || !filepath.IsLocal(element) {
		return &fs.PathError{Op: "resolve", Path: path, Err: fmt.Errorf("%q is not a valid file name on Windows: %w", element, fs.ErrInvalid)}
	}
	return nil
}

// shell returns the shell's dialect and the start of its command line.
func shell() (dialect string, argv []string) { return "cmd", []string{"cmd.exe", "/d", "/s", "/c"} }

func osVersion() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}

// handlePath is not supported.
func handlePath(*os.File) (path string, ok bool) { return "", false }

// keepOwner does nothing: the directory's rules determine the owner.
func keepOwner(*os.File, fs.FileInfo) {}

// renameBetween renames a file from one open directory into another. Windows
// renames by path only.
func renameBetween(fromDir *os.Root, from string, toDir *os.Root, to string) error {
	return os.Rename(filepath.Join(fromDir.Name(), from), filepath.Join(toDir.Name(), to))
}
