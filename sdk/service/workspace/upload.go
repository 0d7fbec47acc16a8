package workspace

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ErrBusy is the error of a second [Upload] for a session.
var ErrBusy = errors.New("files are just being uploaded")

// Upload makes the workspace of a session that does not exist yet, from files that come
// with it. The caller closes it.
type Upload struct {
	root   *Root
	home   string
	dir    string
	files  *os.Root
	unlock func()
}

// Upload begins the workspace of a session; what an earlier one left is deleted.
func (r *Root) Upload(tenant, id string) (*Upload, error) {
	home, err := r.home(tenant, id)
	if err != nil {
		return nil, err
	}
	m := r.mutex(home)
	if !m.TryLock() {
		return nil, ErrBusy
	}
	return &Upload{root: r, home: home, dir: filepath.Join(home, "work"), unlock: m.Unlock}, nil
}

// Add adds a regular file, a directory or a link, by its path with slashes.
func (u *Upload) Add(name string, h *tar.Header, r io.Reader) error {
	if err := u.begin(); err != nil {
		return err
	}
	name = path.Clean(name)
	parts := strings.Split(name, "/")
	if !filepath.IsLocal(filepath.FromSlash(name)) || slices.ContainsFunc(parts, func(p string) bool { return strings.EqualFold(p, ".git") }) {
		return refuse("file %.200q: its path leads out of the workspace, or to .git", name)
	}
	if err := u.files.MkdirAll(path.Dir(name), 0o700); err != nil {
		return unsuited(name, err)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return unsuited(name, u.files.MkdirAll(name, 0o700))
	case tar.TypeSymlink:
		return unsuited(name, u.files.Symlink(h.Linkname, name))
	case tar.TypeReg:
	default:
		return refuse("file %.200q is neither a file nor a link", name)
	}
	f, err := u.files.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(h.Mode).Perm()|0o600)
	if err != nil {
		return unsuited(name, err)
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// unsuited is the error of a file that cannot be made beside those before it.
func unsuited(name string, err error) error {
	if err == nil {
		return nil
	}
	return refuse("file %.200q: %v", name, errors.Unwrap(err))
}

func (u *Upload) begin() (err error) {
	if u.files != nil {
		return nil
	}
	if err = os.RemoveAll(u.home); err == nil {
		err = os.MkdirAll(u.dir, 0o700)
	}
	if err == nil {
		u.files, err = os.OpenRoot(u.dir)
	}
	return err
}

// Commit makes what was added the workspace: differences begin here.
func (u *Upload) Commit(ctx context.Context) error {
	if err := u.begin(); err != nil {
		return err
	}
	if err := u.root.commit(ctx, u.home, u.dir); err != nil {
		return fmt.Errorf("uploaded workspace: %w", err)
	}
	return nil
}

// Close ends the upload.
func (u *Upload) Close() (err error) {
	if u.files != nil {
		err = u.files.Close()
	}
	u.unlock()
	return err
}
