package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
)

const versionControl = ".git"

// Stage is a private folder in which a bundle is prepared before it is
// installed. It belongs to one goroutine, which must close it.
type Stage struct {
	store      *Store
	dir        string // absolute
	alive      *flock.Flock
	root       string         // the selected folder below content, with slashes
	filled     bool           // by AddArchive or AddFolder
	refused    []RefusedError // by AddArchive or AddFolder
	executable map[string]bool
}

// Stage returns an empty stage. It removes the stages of killed processes.
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
		if locked, err := g.alive.TryLock(); err != nil || !locked {
			return errors.Join(fmt.Errorf("lock %s", dir+lockSuffix), err, os.Remove(dir))
		}
		return os.Mkdir(g.Dir(), 0o755)
	})
	if err != nil {
		return nil, fmt.Errorf("bundle: creating a stage: %w", err)
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
		locked, err := l.TryLock()
		if err != nil || !locked {
			continue // its owner is running
		}
		err = errors.Join(os.RemoveAll(strings.TrimSuffix(name, lockSuffix)), l.Close())
		if gone := os.Remove(name); !errors.Is(gone, fs.ErrNotExist) { // its owner may be removing it, too
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

// Select selects a folder to install, given relative to the selected one, with
// slashes.
func (g *Stage) Select(sub string) error {
	name := path.Clean(sub)
	if escapes(sub) {
		return fmt.Errorf("bundle: folder %q: must be inside the bundle", sub)
	}
	at := g.Root()
	for element := range strings.SplitSeq(name, "/") {
		at = filepath.Join(at, element)
		info, err := os.Lstat(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("bundle: folder %q: %w", sub, err)
		}
		if err != nil || !info.IsDir() {
			return fmt.Errorf("bundle: no folder %q in the bundle", sub)
		}
	}
	g.root = path.Join(g.root, name)
	return nil
}

// Unwrap selects the only folder in the selected one, if there is nothing else
// in it, as in archives of a folder.
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

// Refused returns what AddArchive or AddFolder left out, relative to Dir.
func (g *Stage) Refused() []RefusedError { return slices.Clone(g.refused) }

// Tree returns the content of the selected folder. Version control (.git) and
// files such as .DS_Store are removed from it first. The error names everything
// that must not be installed, as [RefusedError]s.
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
		errs = append(errs, errors.New("it has no files"))
	}
	if err := errors.Join(errs...); err != nil {
		return Tree{}, fmt.Errorf("bundle: cannot be installed: %w", err)
	}
	if !modesKept {
		for i := range tree.Files {
			tree.Files[i].Executable = g.executable[path.Join(g.root, tree.Files[i].Path)]
		}
		tree.Hash = HashFiles(tree.Files)
	}
	return tree, nil
}

// prune removes what is not part of a bundle.
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
		case isJunk(entry.Name()) && entry.Type().IsRegular():
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
	if gone := os.Remove(g.dir + lockSuffix); !errors.Is(gone, fs.ErrNotExist) { // another process may have removed it
		err = errors.Join(err, gone)
	}
	if err != nil {
		return fmt.Errorf("bundle: removing the stage: %w", err)
	}
	return nil
}

// removeAll is os.RemoveAll that makes folders writable if necessary.
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
