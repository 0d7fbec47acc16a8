package env

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/seed-009c0928/agent/core"
)

// maxLinks is the maximum number of symbolic links in a path.
const maxLinks = 255

// Resolve implements [core.Environment]. "~" and "~/" mean the home directory;
// the empty path is the working directory. If a is a link, "a/.." is the parent
// of its target, as for the system.
func (l *Local) Resolve(ctx context.Context, name string) (core.Resolved, error) {
	if err := ctx.Err(); err != nil {
		return core.Resolved{}, err
	}
	if err := checkName(name); err != nil {
		return core.Resolved{}, err
	}
	abs, err := l.abs(name)
	if err != nil {
		return core.Resolved{}, err
	}
	path, err := resolve(abs)
	if err != nil {
		return core.Resolved{}, err
	}
	_, _, inside := l.root(path)
	return core.Resolved{Path: path, Inside: inside}, nil
}

// abs makes a path absolute, but does not clean it.
func (l *Local) abs(name string) (string, error) {
	rest, home := strings.CutPrefix(name, "~")
	switch {
	case home && (rest == "" || os.IsPathSeparator(rest[0])):
		if l.info.Home == "" {
			return "", &fs.PathError{Op: "resolve", Path: name, Err: errors.New("no home directory: give an absolute path")}
		}
		return l.info.Home + rest, nil
	case filepath.IsAbs(name):
		return name, nil
	case filepath.VolumeName(name) != "" || name != "" && os.IsPathSeparator(name[0]):
		// Windows: relative to the current drive, or to the current directory
		// of a drive. The system resolves it.
		return filepath.Abs(name)
	default:
		return l.info.Dir + string(filepath.Separator) + name, nil
	}
}

// root finds the workspace directory that contains a resolved path.
func (l *Local) root(path string) (root, rel string, ok bool) {
	for _, dir := range l.info.Roots {
		if rel, ok := below(dir, path); ok {
			return dir, rel, true
		}
	}
	return "", "", false
}

// below returns path relative to dir, if it is dir or below it.
func below(dir, path string) (rel string, ok bool) {
	if path == dir {
		return ".", true
	}
	if !os.IsPathSeparator(dir[len(dir)-1]) {
		dir += string(filepath.Separator)
	}
	return strings.CutPrefix(path, dir)
}

// resolve follows the symbolic links in an absolute path. Elements that do not
// exist are kept.
func resolve(abs string) (string, error) {
	// Fast path: usually there is no link, which one system call tells.
	if plain := filepath.Clean(abs); !strings.Contains(abs, "..") && linkless(plain) {
		return plain, nil
	}
	path := volumeRoot(abs)
	todo := split(abs[len(filepath.VolumeName(abs)):])
	for links := 0; len(todo) > 0; {
		element := todo[0]
		todo = todo[1:]
		if element == ".." {
			path = filepath.Dir(path)
			continue
		}
		if err := checkElement(abs, element); err != nil {
			return "", err
		}
		next := filepath.Join(path, element)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			path = next
			continue
		case err != nil:
			return "", fmt.Errorf("resolve %s: %w", abs, err)
		case info.Mode()&fs.ModeSymlink == 0:
			path = trueName(path, element, info)
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "resolve", Path: abs, Err: syscall.ELOOP}
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", abs, err)
		}
		if filepath.IsAbs(target) {
			path = volumeRoot(target)
			target = target[len(filepath.VolumeName(target)):]
		}
		todo = slices.Concat(split(target), todo)
	}
	return path, nil
}

// volumeRoot returns the root directory of an absolute path.
func volumeRoot(abs string) string {
	return filepath.VolumeName(abs) + string(filepath.Separator)
}

// split returns the elements of a path except empty ones and ".".
func split(path string) []string {
	elements := strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
	return slices.DeleteFunc(elements, func(e string) bool { return e == "." })
}
