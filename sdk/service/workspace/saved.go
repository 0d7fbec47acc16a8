package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/core/snapshot"
)

// Saved is a snapshot of a workspace that is kept elsewhere, so that another machine can
// continue with it: the files, but for what git ignores, and the repository if it is one.
type Saved struct {
	Time  time.Time `json:"time,omitzero"`
	Base  string    `json:"base,omitempty"`  // the snapshot before the first input
	Files string    `json:"files,omitempty"` // the snapshot of the files
	Git   string    `json:"git,omitempty"`   // and of .git
	Bytes int64     `json:"bytes"`           // of all packs
	Packs []Pack    `json:"packs,omitempty"`
	Left  []string  `json:"left,omitempty"` // what is left out, and why; the first few
}

// Pack is a part of a [Saved]: what a turn added.
type Pack struct {
	Name  string `json:"name"`
	Git   bool   `json:"git,omitempty"`
	Bytes int64  `json:"bytes"`
}

// Put keeps a pack under its name, Get opens it.
type (
	Put func(ctx context.Context, name string, content io.Reader) error
	Get func(ctx context.Context, name string) (io.ReadCloser, error)
)

// Limits of what is saved.
const (
	maxSaved   = 1 << 30 // bytes of all packs
	maxPacks   = 16      // then one is made of all
	maxGitFile = 64 << 20
	maxLeft    = 10
)

// Own reports whether the session has the directory for itself. Only those are saved.
func (s Spec) Own() bool { return s.Git != "" || s.Directory == New }

// part is a directory with its snapshots.
type part struct {
	git   bool
	open  func() (*snapshot.Workspace, error)
	ids   []string // of the snapshots that are to be kept, the newest last
	known []string // of those that are kept already
}

func parts(home, dir string) (files, git part) {
	files.open = func() (*snapshot.Workspace, error) { return openSnapshots(home, dir) }
	git.git, git.open = true, func() (*snapshot.Workspace, error) {
		return snapshot.Open(snapshot.Options{
			Root: filepath.Join(dir, ".git"), Dir: filepath.Join(home, "repository"), Plain: true, MaxFiles: maxFiles, MaxFileSize: maxGitFile,
		})
	}
	return files, git
}

// Save keeps the session's own workspace as it is now: what last does not have, or all of
// it if last has many packs. It returns last if nothing changed since. The session must
// not be running.
func (r *Root) Save(ctx context.Context, tenant, id string, last *Saved, put Put) (*Saved, error) {
	home, err := r.home(tenant, id)
	if err != nil {
		return last, err
	}
	defer r.lock(home)()
	n, err := readNote(home)
	if err != nil {
		return last, err
	}
	now := &Saved{Time: time.Now().UTC(), Base: n.Base}
	files, git := parts(home, n.Dir)
	files.ids = []string{n.Base}
	if last != nil && len(last.Packs) < maxPacks {
		now.Packs, now.Bytes = slices.Clone(last.Packs), last.Bytes
		if files.known = []string{last.Base, last.Files}; last.Git != "" {
			git.known = []string{last.Git}
		}
	}
	if now.Files, err = r.save(ctx, files, now, put); err != nil {
		return last, err
	}
	if info, err := os.Lstat(filepath.Join(n.Dir, ".git")); err == nil && info.IsDir() {
		if now.Git, err = r.save(ctx, git, now, put); err != nil {
			return last, err
		}
	}
	if last != nil && now.Files == last.Files && now.Git == last.Git {
		return last, nil
	}
	return now, nil
}

// save adds a pack with what changed in a part, and returns its snapshot.
func (r *Root) save(ctx context.Context, p part, to *Saved, put Put) (id string, err error) {
	w, err := p.open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	s, err := w.Take(ctx, snapshot.TakeOptions{})
	if err != nil {
		return "", err
	}
	if p.git && len(s.Left) > 0 {
		return "", nil // a repository is whole, or fetched again
	}
	for _, l := range s.Left[:min(len(s.Left), maxLeft)] {
		to.Left = append(to.Left, l.Path+": "+l.Reason)
	}
	if len(p.known) > 0 {
		before := p.known[len(p.known)-1]
		if changes, err := w.Changes(before, s.ID); err == nil && len(changes) == 0 {
			return before, nil
		}
	}
	return s.ID, r.pack(ctx, w, p.git, append(p.ids, s.ID), p.known, to, put)
}

func (r *Root) pack(ctx context.Context, w *snapshot.Workspace, git bool, ids, known []string, to *Saved, put Put) error {
	f, err := os.CreateTemp(r.opts.Dir, "pack-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := w.Export(f, ids, known); err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if to.Bytes += size; to.Bytes > maxSaved {
		return fmt.Errorf("the snapshot has more than %d MiB", maxSaved>>20)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	p := Pack{Name: "pack-" + rand.Text(), Git: git, Bytes: size}
	to.Packs = append(to.Packs, p)
	return put(ctx, p.Name, f)
}

// Restore makes a session's own workspace as it was saved, in place of what is there, which
// stays if that fails. A repository that is not in it is fetched again.
func (r *Root) Restore(ctx context.Context, tenant, id string, s Spec, from Saved, get Get) (dir string, err error) {
	home, err := r.home(tenant, id)
	if err != nil {
		return "", err
	}
	defer r.lock(home)()
	dir = filepath.Join(home, "work")
	next := home + nextSuffix
	if err = os.RemoveAll(next); err == nil {
		err = r.rebuild(ctx, next, s, from, get)
	}
	if err == nil {
		err = writeNote(next, note{Dir: dir, Base: from.Base})
	}
	if err == nil {
		err = os.RemoveAll(home)
	}
	if err == nil {
		err = os.Rename(next, home)
	}
	if err != nil {
		return "", fmt.Errorf("restore the workspace of session %s: %w", id, errors.Join(err, os.RemoveAll(next)))
	}
	return dir, nil
}

// nextSuffix makes the name of a session's home while it is restored. No ID has it.
const nextSuffix = ".new"

// rebuild makes the home of a session from what was saved.
func (r *Root) rebuild(ctx context.Context, home string, s Spec, from Saved, get Get) (err error) {
	dir := filepath.Join(home, "work")
	if err = os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	switch {
	case from.Git == "" && s.Git != "":
		err = r.clone(ctx, dir, s)
	case from.Git != "":
		err = os.MkdirAll(filepath.Join(dir, ".git"), 0o700)
	default:
		err = os.Mkdir(dir, 0o700)
	}
	files, git := parts(home, dir)
	if files.ids = []string{from.Files}; err == nil && from.Git != "" {
		git.ids = []string{from.Git}
		err = r.restore(ctx, git, from, get)
	}
	if err == nil {
		err = r.restore(ctx, files, from, get)
	}
	return err
}

func (r *Root) restore(ctx context.Context, p part, from Saved, get Get) (err error) {
	w, err := p.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, one := range from.Packs {
		if one.Git != p.git {
			continue
		}
		content, err := get(ctx, one.Name)
		if err != nil {
			return err
		}
		if err := errors.Join(w.Import(content), content.Close()); err != nil {
			return err
		}
	}
	now, err := w.Take(ctx, snapshot.TakeOptions{})
	if err != nil {
		return err
	}
	plan, err := w.Plan(ctx, now.ID, p.ids[0], nil)
	if err != nil {
		return err
	}
	conflicts, err := w.Apply(ctx, plan)
	if conflicts = append(plan.Conflicts, conflicts...); err == nil && len(conflicts) > 0 {
		err = fmt.Errorf("%d files cannot be restored, such as %s: %s", len(conflicts), conflicts[0].Path, conflicts[0].Reason)
	}
	return err
}
