package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core/changes"
)

// Limits of what is copied.
const (
	maxFiles = 200_000
	maxBytes = 8 << 30
	parallel = 8
)

// copyAll fills the worktree.
func (w *Worktree) copyAll(ctx context.Context) error {
	repo, err := openRepository(ctx, w.opts.Root)
	if err != nil {
		return err
	}
	if repo == nil {
		list, err := w.walk()
		if err != nil {
			return err
		}
		return copyFiles(ctx, w.opts.Root, w.rec.Top, list)
	}
	list, err := repo.files(ctx)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(repo.top, w.opts.Root)
	if err != nil {
		return err
	}
	w.rec.Top = filepath.Join(w.dir, filepath.Base(repo.top))
	w.rec.Dir = filepath.Join(w.rec.Top, rel)
	if w.rec.Forced, err = repo.forced(ctx, rel); err != nil {
		return err
	}
	if err := copyFiles(ctx, repo.top, w.rec.Top, list); err != nil {
		return err
	}
	if err := os.MkdirAll(w.rec.Dir, 0o755); err != nil {
		return err
	}
	w.rec.Commit, w.rec.Branch, err = repo.clone(ctx, w.rec.Top, w.rec.Name)
	return err
}

// walk lists the files of a workspace without git. A directory ends in a slash.
func (w *Worktree) walk() (list []string, err error) {
	root := w.opts.Root
	skip := []string{w.opts.Home, changes.Worktrees(w.opts.Home)}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission) && name != root:
			return nil // nobody here can read it
		case err != nil:
			return err
		case name == root:
			return nil
		case d.IsDir() && slices.Contains(skip, name):
			return fs.SkipDir
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); d.IsDir() {
			rel += "/"
		}
		if list = append(list, rel); len(list) > maxFiles {
			return fmt.Errorf("it has more than %d files; work in a git repository that ignores what needs no copy", maxFiles)
		}
		return nil
	})
	return list, err
}

// copyFiles copies files and symbolic links. Those that are gone, or are neither,
// are left out.
func copyFiles(ctx context.Context, from, to string, list []string) error {
	if len(list) > maxFiles {
		return fmt.Errorf("it has more than %d files", maxFiles)
	}
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	c := &copier{src: src, dst: dst, left: maxBytes}
	var wg sync.WaitGroup
	work := make(chan string)
	for range parallel {
		wg.Go(func() {
			for name := range work {
				if err := ctx.Err(); err != nil {
					c.fail(err)
				} else if c.failed() == nil {
					c.fail(c.copy(name))
				}
			}
		})
	}
	for _, name := range list {
		work <- name
	}
	close(work)
	wg.Wait()
	return c.err
}

// copier copies files from one directory to another one.
type copier struct {
	src, dst *os.Root

	mu   sync.Mutex
	left int64 // bytes
	err  error
}

func (c *copier) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *copier) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *copier) copy(name string) error {
	info, err := c.src.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := c.dst.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch {
	case info.IsDir(): // an empty one, or a submodule
		return c.dst.MkdirAll(name, 0o755)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := c.src.Readlink(name)
		if err != nil {
			return err
		}
		return c.dst.Symlink(target, name)
	case !info.Mode().IsRegular():
		return nil
	}
	return c.file(name, info)
}

// file copies a regular file with its permissions and time.
func (c *copier) file(name string, info fs.FileInfo) error {
	c.mu.Lock()
	c.left -= info.Size()
	full := c.left < 0
	c.mu.Unlock()
	if full {
		return fmt.Errorf("it has more than %d GiB", maxBytes>>30)
	}
	in, err := c.src.Open(name)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close())
	return errors.Join(err, c.dst.Chtimes(name, info.ModTime(), info.ModTime()))
}
