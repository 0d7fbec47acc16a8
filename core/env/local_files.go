package env

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// localFS is the file system of a [Local]. Every operation resolves its path,
// opens the parent directory, verifies that it is the resolved one, and works on
// the last element from there.
type localFS struct {
	local *Local
	exact bool // refuse paths that are not resolved
}

// place is an element of an open directory.
type place struct {
	dir  *os.Root
	name string // "." is the directory itself
	path string // resolved path, for errors
}

func (p place) close() { p.dir.Close() }

// fail puts the full path into an error of the directory.
func (p place) fail(op string, err error) error { return pathError(op, p.path, err) }

// pathError returns a PathError with the cause of err.
func pathError(op, path string, err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	if inner, ok := errors.AsType[*os.LinkError](err); ok {
		err = inner.Err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// find resolves a path and opens its parent directory. With parents set, it
// creates that directory if necessary.
func (f *localFS) find(ctx context.Context, op, name string, parents bool) (place, error) {
	path, err := f.resolve(ctx, op, name)
	if err != nil {
		return place{}, err
	}
	dir, base := filepath.Dir(path), filepath.Base(path)
	if dir == path || slices.Contains(f.local.info.Roots, path) {
		dir, base = path, "."
	}
	root, err := f.local.openDir(dir, parents)
	if err != nil {
		return place{}, pathError(op, path, err)
	}
	return place{dir: root, name: base, path: path}, nil
}

// resolve resolves a path, or verifies that it is resolved.
func (f *localFS) resolve(ctx context.Context, op, name string) (string, error) {
	to, err := f.local.Resolve(ctx, name)
	if err != nil {
		return "", err
	}
	if f.exact && to.Path != name {
		return "", pathError(op, name, errChanged)
	}
	return to.Path, nil
}

// resolved reports whether a path should be resolved already, so that the kernel
// can refuse every link in it.
func (f *localFS) resolved(ctx context.Context, name string) bool {
	return f.exact && ctx.Err() == nil && filepath.IsAbs(name) && filepath.Clean(name) == name
}

// openDir opens a resolved directory; in the workspace through the root of the
// workspace, so that no link leads out of it.
func (l *Local) openDir(path string, create bool) (*os.Root, error) {
	dir, err := l.openUnchecked(path, create)
	if err != nil {
		return nil, err
	}
	if err := unchanged(dir, path); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

func (l *Local) openUnchecked(path string, create bool) (*os.Root, error) {
	top, rel, inside := l.root(path)
	if !inside {
		if create {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return nil, err
			}
		}
		return os.OpenRoot(path)
	}
	root, err := os.OpenRoot(top)
	if err != nil || rel == "." {
		return root, err
	}
	defer root.Close()
	if create {
		if err := root.MkdirAll(rel, 0o755); err != nil {
			return nil, err
		}
	}
	return root.OpenRoot(rel)
}

// errChanged is the error for a path that changed after it was checked.
var errChanged = fmt.Errorf("the path changed after it was checked: %w", fs.ErrPermission)

// unchanged verifies that dir is the one at the resolved path: that no element
// of the path has become a link since. If the system cannot tell, it trusts dir.
func unchanged(dir *os.Root, path string) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if is, ok := handlePath(f); ok && !strings.EqualFold(is, path) { // folding: see ext4's casefold
		return errChanged
	}
	return nil
}

// regular refuses what is not a regular file.
func (p place) regular(op string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.Mode()&fs.ModeSymlink != 0: // the path was resolved, so the link is new
		return p.fail(op, errChanged)
	default:
		return notAFile(op, p.path, info.Mode())
	}
}

// Open implements [core.FS]. It refuses anything but a regular file: reading a
// device or a named pipe may never end.
func (f *localFS) Open(ctx context.Context, name string) (core.File, error) {
	if f.resolved(ctx, name) {
		if file := openLinkless(name); file != nil {
			return file, nil
		}
	}
	p, err := f.find(ctx, "open", name, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	// A writer may replace the file between the two checks. Checking again
	// tells that from a link put in its place.
	for range maxReplaced {
		file, err := p.open()
		if !errors.Is(err, errChanged) {
			return file, err
		}
	}
	return nil, p.fail("open", errChanged)
}

// maxReplaced is how often a file may be replaced while it is opened.
const maxReplaced = 20

// open opens a regular file. The error is errChanged if it is not the file that
// was there just before.
func (p place) open() (core.File, error) {
	before, err := p.dir.Lstat(p.name)
	if err != nil {
		return nil, p.fail("open", err)
	}
	if err := p.regular("open", before); err != nil {
		return nil, err
	}
	file, err := p.dir.OpenFile(p.name, openFlags, 0)
	if err != nil {
		return nil, p.fail("open", err)
	}
	opened, err := file.Stat()
	if err == nil && !os.SameFile(before, opened) {
		err = errChanged
	}
	if err != nil {
		file.Close()
		return nil, p.fail("open", err)
	}
	return file, nil
}

// Stat implements [core.FS].
func (f *localFS) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	p, err := f.find(ctx, "stat", name, false)
	if err != nil {
		return nil, err
	}
	defer p.close()
	info, err := p.dir.Lstat(p.name)
	if err != nil {
		return nil, p.fail("stat", err)
	}
	return info, nil
}

// ReadDir implements [core.FS].
func (f *localFS) ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	if f.resolved(ctx, name) {
		if dir := openLinklessDir(name); dir != nil {
			defer dir.Close()
			return sortedEntries(dir, name)
		}
	}
	path, err := f.resolve(ctx, "readdir", name)
	if err != nil {
		return nil, err
	}
	root, err := f.local.openDir(path, false)
	if err != nil {
		return nil, pathError("readdir", path, err)
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return nil, pathError("readdir", path, err)
	}
	defer dir.Close()
	return sortedEntries(dir, path)
}

func sortedEntries(dir *os.File, path string) ([]fs.DirEntry, error) {
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, pathError("readdir", path, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Write implements [core.FS]: it writes a new file in the same directory and
// renames it over the old one. The new file keeps the owner if permitted; a hard
// link to the old one keeps the old content.
func (f *localFS) Write(ctx context.Context, name string, content io.Reader, mode fs.FileMode) error {
	p, err := f.find(ctx, "write", name, true)
	if err != nil {
		return err
	}
	defer p.close()
	old, err := p.dir.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return p.fail("write", err)
	default:
		if err := p.regular("write", old); err != nil {
			return err
		}
		if old.Mode().Perm()&0o222 == 0 {
			return p.fail("write", fmt.Errorf("the file is read-only, change its mode first: %w", fs.ErrPermission))
		}
	}
	if err := p.replace(ctx, content, old, mode); err != nil {
		return p.fail("write", err)
	}
	return nil
}

// replace writes content to a new file and renames it to p. It removes the new
// file if anything fails.
func (p place) replace(ctx context.Context, content io.Reader, old fs.FileInfo, mode fs.FileMode) (err error) {
	temp := ".agent-" + rand.Text() + ".tmp"
	file, err := p.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, createMode(old, mode))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			_ = p.dir.Remove(temp)
		}
	}()
	if _, err := io.Copy(file, withContext(ctx, content)); err != nil {
		return err
	}
	if old != nil {
		keepOwner(file, old)
		if mode == 0 {
			mode = old.Mode()
		}
	}
	if mode != 0 { // after chown, which clears set-id bits
		if err := file.Chmod(mode & permBits); err != nil {
			return err
		}
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.dir.Rename(temp, p.name)
}

// permBits are the bits of a mode that a file keeps.
const permBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// createMode is the mode of the temporary file: until it is complete, nobody can
// read it who cannot read the old one. A new file has 0644 minus the umask.
func createMode(old fs.FileInfo, mode fs.FileMode) fs.FileMode {
	if old == nil && mode == 0 {
		return 0o644
	}
	return 0o600
}

// Rename implements [core.FS]. A file at the new path is replaced.
func (f *localFS) Rename(ctx context.Context, from, to string) error {
	src, err := f.find(ctx, "rename", from, false)
	if err != nil {
		return err
	}
	defer src.close()
	dst, err := f.find(ctx, "rename", to, false)
	if err != nil {
		return err
	}
	defer dst.close()
	info, err := src.dir.Lstat(src.name)
	if err != nil {
		return src.fail("rename", err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return src.fail("rename", errChanged)
	}
	if old, err := dst.dir.Lstat(dst.name); err == nil && old.IsDir() {
		return dst.fail("rename", fs.ErrExist)
	}
	if err := renameBetween(src.dir, src.name, dst.dir, dst.name); err != nil {
		return dst.fail("rename", err)
	}
	return nil
}

// Remove implements [core.FS].
func (f *localFS) Remove(ctx context.Context, name string) error {
	p, err := f.find(ctx, "remove", name, false)
	if err != nil {
		return err
	}
	defer p.close()
	if p.name == "." {
		return p.fail("remove", fmt.Errorf("it is a root directory of the workspace: %w", fs.ErrPermission))
	}
	if err := p.dir.Remove(p.name); err != nil {
		return p.fail("remove", err)
	}
	return nil
}
