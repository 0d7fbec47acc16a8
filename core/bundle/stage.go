package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

const versionControl = ".git"

// Stage is a private folder in which something is put together before it is
// installed. It belongs to one goroutine, which has to close it.
type Stage struct {
	store      *Store
	dir        string // absolute
	alive      *flock.Flock
	root       string         // the selected folder below content, with slashes
	filled     bool           // by AddArchive or AddFolder
	refused    []RefusedError // what was not taken over
	executable map[string]bool
}

// Stage returns an empty stage. What killed processes left of theirs is cleared
// away.
func (s *Store) Stage(ctx context.Context) (*Stage, error) {
	g := &Stage{store: s, root: ".", executable: map[string]bool{}}
	err := s.exclusively(ctx, func() error {
		if err := s.sweep(); err != nil {
			return err
		}
		dir, err := os.MkdirTemp(s.inner(), stagePrefix)
		if err != nil {
			return err
		}
		g.dir = dir
		g.alive = flock.New(dir + lockSuffix)
		if held, err := g.alive.TryLock(); err != nil || !held {
			return errors.Join(fmt.Errorf("lock %s", dir+lockSuffix), err, os.Remove(dir))
		}
		return os.Mkdir(g.Dir(), 0o755)
	})
	if err != nil {
		return nil, fmt.Errorf("bundle: making a place to put things together: %w", err)
	}
	return g, nil
}

// sweep removes the stages of processes that are gone. The caller has the
// store's lock.
func (s *Store) sweep() error {
	locks, err := filepath.Glob(filepath.Join(s.inner(), stagePrefix+"*"+lockSuffix))
	if err != nil {
		return err
	}
	for _, name := range locks {
		l := flock.New(name)
		held, err := l.TryLock()
		if err != nil || !held {
			continue // its owner lives
		}
		err = errors.Join(os.RemoveAll(strings.TrimSuffix(name, lockSuffix)), l.Close())
		if gone := os.Remove(name); !errors.Is(gone, fs.ErrNotExist) { // its owner may be clearing up just now
			err = errors.Join(err, gone)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Dir returns the folder to fill, an absolute path.
func (g *Stage) Dir() string { return filepath.Join(g.dir, "content") }

// Root returns the selected folder, an absolute path.
func (g *Stage) Root() string { return filepath.Join(g.Dir(), filepath.FromSlash(g.root)) }

// Select makes a folder below the selected one, given with slashes, the one to
// be installed.
func (g *Stage) Select(sub string) error {
	name := path.Clean(sub)
	if escapes(sub) {
		return fmt.Errorf("bundle: folder %q: it must lie in what is installed", sub)
	}
	at := g.Root()
	for element := range strings.SplitSeq(name, "/") {
		at = filepath.Join(at, element)
		info, err := os.Lstat(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("bundle: folder %q: %w", sub, err)
		}
		if err != nil || !info.IsDir() {
			return fmt.Errorf("bundle: there is no folder %q in what is installed", sub)
		}
	}
	g.root = path.Join(g.root, name)
	return nil
}

// Unwrap selects the folder in the selected one, if there is nothing else in
// it, as in archives that were made of a folder.
func (g *Stage) Unwrap() error {
	entries, err := os.ReadDir(g.Root())
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if len(entries) == 1 && entries[0].IsDir() {
		return g.Select(entries[0].Name())
	}
	return nil
}

// Tree returns what the selected folder holds. Version control (.git) and what
// systems leave in folders are removed from it first. All that must not be
// installed is named in the error, as [RefusedError]s.
func (g *Stage) Tree(ctx context.Context) (Tree, error) {
	if err := g.prune(); err != nil {
		return Tree{}, fmt.Errorf("bundle: %w", err)
	}
	tree, err := Scan(ctx, g.Root(), g.store.limits)
	errs := []error{err}
	for _, refused := range g.refused {
		if inside(g.root, refused.Path) {
			errs = append(errs, &RefusedError{below(g.root, refused.Path), refused.Reason})
		}
	}
	if len(tree.Files) == 0 {
		errs = append(errs, errors.New("there are no files in it"))
	}
	if err := errors.Join(errs...); err != nil {
		return Tree{}, fmt.Errorf("bundle: this cannot be installed: %w", err)
	}
	if !modesKept {
		for i := range tree.Files {
			tree.Files[i].Executable = g.executable[path.Join(g.root, tree.Files[i].Path)]
		}
		tree.Hash = HashFiles(tree.Files)
	}
	return tree, nil
}

// prune removes what does not belong to a bundle.
func (g *Stage) prune() error {
	return filepath.WalkDir(g.Root(), func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == g.Root():
			return nil
		case entry.Name() == versionControl:
			if err := removeAll(name); err != nil || !entry.IsDir() {
				return err
			}
			return fs.SkipDir
		case litter(entry.Name()) && entry.Type().IsRegular():
			return os.Remove(name)
		}
		return nil
	})
}

// Close removes the stage.
func (g *Stage) Close() error {
	if g.alive == nil {
		return nil
	}
	err := errors.Join(removeAll(g.dir), g.alive.Close())
	g.alive = nil
	if gone := os.Remove(g.dir + lockSuffix); !errors.Is(gone, fs.ErrNotExist) { // another process may have swept it up
		err = errors.Join(err, gone)
	}
	if err != nil {
		return fmt.Errorf("bundle: clearing up: %w", err)
	}
	return nil
}

// removeAll is os.RemoveAll, also where folders cannot be written to.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	walk := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(name, 0o700)
		}
		return err
	})
	return errors.Join(walk, os.RemoveAll(dir))
}
