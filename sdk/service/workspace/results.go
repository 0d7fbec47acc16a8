package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/seed-009c0928/agent/core/snapshot"
)

// Limits of results.
const (
	MaxFile = 32 << 20 // bytes of a file that is shown
	maxDiff = 1 << 20  // bytes of all differences; the files behind are only named
	maxList = 2000     // files
)

// File is a file that a session changed.
type File struct {
	Path    string `json:"path"` // relative, with slashes
	From    string `json:"from,omitempty"`
	Kind    string `json:"kind"` // create, modify, delete or rename
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
	Diff    string `json:"diff,omitempty"` // in the unified format
}

// Diff is what a session changed since its workspace was prepared.
type Diff struct {
	Files     []File `json:"files"`
	Truncated bool   `json:"truncated,omitempty"` // not all is in it
}

// Diff returns what changed, but for what git ignores.
func (r *Root) Diff(ctx context.Context, tenant, id string) (d Diff, err error) {
	home, err := r.home(tenant, id)
	if err != nil {
		return d, err
	}
	defer r.lock(home)()
	n, err := readNote(home)
	if err != nil {
		return d, err
	}
	w, err := openSnapshots(home, n.Dir)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	now, err := w.Take(ctx, snapshot.TakeOptions{})
	if err != nil {
		return d, err
	}
	changes, err := w.Changes(n.Base, now.ID)
	if err != nil {
		return d, err
	}
	d.Truncated, d.Files = len(changes) > maxList, []File{}
	size := 0
	for _, c := range changes[:min(maxList, len(changes))] {
		f := File{Path: c.Path, From: c.From, Kind: string(c.Kind)}
		if size < maxDiff {
			diff, err := w.Diff(ctx, c)
			if err != nil {
				return d, err
			}
			f.Added, f.Removed, f.Binary = diff.Added, diff.Removed, diff.Binary
			if size += len(diff.Text); size <= maxDiff {
				f.Diff = diff.Text
			}
		}
		d.Truncated = d.Truncated || size > maxDiff
		d.Files = append(d.Files, f)
	}
	return d, nil
}

// File opens a regular file of a workspace. Links lead to files of the workspace alone.
func (r *Root) File(tenant, id, name string) (io.ReadCloser, int64, error) {
	home, err := r.home(tenant, id)
	if err != nil {
		return nil, 0, err
	}
	n, err := readNote(home)
	if err != nil {
		return nil, 0, err
	}
	name = filepath.FromSlash(path.Clean(name))
	missing := fmt.Errorf("file %.200q: %w", name, fs.ErrNotExist)
	if !filepath.IsLocal(name) {
		return nil, 0, missing
	}
	root, err := os.OpenRoot(n.Dir)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe has no reader to wait for
	if err != nil {
		return nil, 0, missing
	}
	info, err := f.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = missing
	case err == nil && info.Size() > MaxFile:
		err = fmt.Errorf("file %.200q has %d bytes, at most %d are possible: %w", name, info.Size(), MaxFile, ErrTooLarge)
	case err == nil:
		return f, info.Size(), nil
	}
	return nil, 0, errors.Join(err, f.Close())
}
