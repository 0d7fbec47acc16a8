package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core/atomicfile"
)

// Install are the arguments of [Stage.Install].
type Install struct {
	Name    string // letters, digits, -, _ and .
	Source  Source
	Tree    string   // hash of the files that the user was shown
	Consent *Consent // nil without the user's consent
	Replace bool     // replace the bundle of this name
	Discard bool     // with Replace, also if it was edited
}

// Install moves the selected folder of the stage into the store and records it
// in the lock file, atomically. The error is an ErrChanged if the files are not
// those that were shown, an ErrInstalled if the name is taken by something that
// was not installed or is not to be replaced, and an ErrLocalEdits if it was
// edited. Afterwards, the stage can only be closed.
func (g *Stage) Install(ctx context.Context, in Install) (Entry, error) {
	if err := checkName(in.Name); err != nil {
		return Entry{}, err
	}
	tree, err := g.Tree(ctx)
	if err != nil {
		return Entry{}, err
	}
	if tree.Hash != in.Tree {
		return Entry{}, fmt.Errorf("bundle: installing %q: %w", in.Name, ErrChanged)
	}
	entry := Entry{
		Name: in.Name, Source: in.Source, Installed: g.store.timestamp(),
		Tree: tree.Hash, Files: tree.Files, Consent: in.Consent.normal(),
	}
	if err := entry.check(); err != nil {
		return Entry{}, err
	}
	if entry.Sum, err = entry.sum(); err != nil {
		return Entry{}, err
	}
	from, err := filepath.Rel(g.store.inner(), g.Root())
	if err != nil {
		return Entry{}, fmt.Errorf("bundle: %w", err)
	}
	err = g.store.exclusively(ctx, func() error {
		if err := g.store.mayPlace(ctx, in); err != nil {
			return err
		}
		return g.store.change(ctx, pending{Name: in.Name, Entry: &entry, From: filepath.ToSlash(from), Stage: filepath.Base(g.dir)})
	})
	if err != nil {
		return Entry{}, fmt.Errorf("bundle: installing %q: %w", in.Name, err)
	}
	return entry, nil
}

// mayPlace returns why nothing may be installed under a name.
func (s *Store) mayPlace(ctx context.Context, in Install) error {
	_, gone := os.Lstat(s.Path(in.Name))
	if gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		return gone
	}
	entry, err := s.entry(in.Name)
	switch {
	case errors.Is(err, ErrNotInstalled) && gone != nil:
		return nil
	case errors.Is(err, ErrNotInstalled):
		return fmt.Errorf("%w: %s was not installed by agent; move it away first", ErrInstalled, s.Path(in.Name))
	case err != nil:
		return err
	case !in.Replace:
		return fmt.Errorf("%w, from %s: update or remove it", ErrInstalled, entry.Source.Location)
	case gone != nil:
		return nil
	}
	if _, err = s.unedited(ctx, in.Name); in.Discard && errors.Is(err, ErrLocalEdits) {
		return nil
	}
	return err
}

// Remove removes an installed bundle and its entry, atomically. If its files
// were edited the error is an ErrLocalEdits, unless edits are discarded; an
// edited entry is discarded then, too.
func (s *Store) Remove(ctx context.Context, name string, discardEdits bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	err := s.exclusively(ctx, func() error {
		_, err := s.unedited(ctx, name)
		if _, gone := os.Lstat(s.Path(name)); errors.Is(gone, fs.ErrNotExist) && errors.Is(err, ErrLocalEdits) {
			err = nil // there are no edits to lose
		}
		if errors.Is(err, ErrNotInstalled) || err != nil && !discardEdits {
			return err
		}
		return s.change(ctx, pending{Name: name})
	})
	if err != nil {
		return fmt.Errorf("bundle: removing %q: %w", name, err)
	}
	return nil
}

func (s *Store) pendingFile() string { return filepath.Join(s.inner(), "pending.json") }

// pending is a change to be made. It is written to a file before anything is
// changed, and whoever finds it completes the change: with the file, the new
// state is decided.
type pending struct {
	Name  string `json:"name"`
	Entry *Entry `json:"entry"` // nil: the bundle is removed
	From  string `json:"from"`  // the folder to install, below the inner directory, with slashes
	Stage string `json:"stage"` // the stage that the folder is in
}

// backup is where a bundle is moved before it is removed.
func (s *Store) backup(name string) string { return filepath.Join(s.inner(), "old-"+name) }

// at marks a step of a change, at which tests can stop it.
func (s *Store) at(step string) error {
	if s.step == nil {
		return nil
	}
	return s.step(step)
}

// change makes a change and undoes it if that fails. The caller has the store's
// lock.
func (s *Store) change(ctx context.Context, p pending) error {
	if err := removeAll(s.backup(p.Name)); err != nil {
		return err
	}
	data, err := encode(p)
	if err == nil {
		err = s.at("decide")
	}
	if err == nil {
		err = atomicfile.Write(s.pendingFile(), data, 0o600)
	}
	if err != nil {
		return err
	}
	undo, err := s.place(p)
	if err != nil {
		return errors.Join(err, os.Remove(s.pendingFile()))
	}
	if err := s.enter(p); err != nil {
		return errors.Join(err, undo(), os.Remove(s.pendingFile()))
	}
	return s.clear(p)
}

// place moves the folders and returns a function that moves them back.
func (s *Store) place(p pending) (undo func() error, err error) {
	target, old := s.Path(p.Name), s.backup(p.Name)
	if err := s.at("place"); err != nil {
		return nil, err
	}
	from := filepath.Join(s.inner(), filepath.FromSlash(p.From))
	if p.Entry != nil {
		if s.exchange(from, target) == nil {
			return func() error { return s.exchange(from, target) }, nil
		}
	}
	hadOld := true
	if err := os.Rename(target, old); errors.Is(err, fs.ErrNotExist) {
		hadOld = false
	} else if err != nil {
		return nil, err
	}
	restore := func() error {
		if !hadOld {
			return nil
		}
		return os.Rename(old, target)
	}
	if p.Entry == nil {
		return restore, nil
	}
	err = s.at("between")
	if err == nil {
		err = os.Rename(from, target)
	}
	if err != nil {
		return nil, errors.Join(err, restore())
	}
	return func() error { return errors.Join(os.Rename(target, from), restore()) }, nil
}

// enter updates the lock file.
func (s *Store) enter(p pending) error {
	if err := s.at("enter"); err != nil {
		return err
	}
	return s.changeLock(func(entries map[string]Entry) {
		if delete(entries, p.Name); p.Entry != nil {
			entries[p.Name] = *p.Entry
		}
	})
}

// clear removes the remains of a change. Those that cannot be removed do no
// harm: the change is complete.
func (s *Store) clear(p pending) error {
	if err := s.at("clear"); err != nil {
		return err
	}
	if err := os.Remove(s.pendingFile()); err != nil {
		return err
	}
	if p.Stage != "" {
		_ = removeAll(filepath.Join(s.inner(), p.Stage, "content"))
	}
	_ = removeAll(s.backup(p.Name))
	return nil
}

// finish completes an interrupted change. The caller has the store's lock.
func (s *Store) finish(ctx context.Context) error {
	data, err := readRegular(s.pendingFile(), maxLockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var p pending
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err == nil && (checkName(p.Name) != nil || escapes(p.From) || strings.ContainsAny(p.Stage, `/\`) || escapes(p.Stage)) {
		err = errors.New("the file was edited")
	}
	if err == nil {
		err = s.redo(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("bundle: completing an interrupted change (%s): %w", s.pendingFile(), err)
	}
	return s.clear(p)
}

// redo completes a change of which any part may be done.
func (s *Store) redo(ctx context.Context, p pending) error {
	if p.Entry != nil {
		p.Entry.Name = p.Name
		target, from := s.holds(ctx, s.Path(p.Name), p), s.holds(ctx, filepath.Join(s.inner(), filepath.FromSlash(p.From)), p)
		switch {
		case target:
			return s.enter(p)
		case !from: // it was removed: keep the old bundle
			if _, err := os.Lstat(s.Path(p.Name)); errors.Is(err, fs.ErrNotExist) {
				err = os.Rename(s.backup(p.Name), s.Path(p.Name))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return nil
		}
	}
	if _, err := s.place(p); err != nil {
		return err
	}
	return s.enter(p)
}

// holds reports whether a folder has the files that a change installs.
func (s *Store) holds(ctx context.Context, dir string, p pending) bool {
	tree, err := Scan(ctx, dir, s.limits)
	if err == nil && !modesKept {
		tree = believeModes(tree, p.Entry.Files)
	}
	return err == nil && tree.Hash == p.Entry.Tree
}
