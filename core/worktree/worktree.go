package worktree

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/snapshot"
)

// Options describe a worktree.
type Options struct {
	Root string // the directory of the workspace, absolute, without symbolic links
	Name string // letters, digits, ., - and _; empty = any
	Keep bool   // it stays when its process ends, until it is removed

	Home     string // the directory of the agent's files; worktrees are beside it
	Excludes []string
	Secret   func(content []byte) bool // as of changes.Options
}

// Worktree is a copy of a workspace. The caller calls [Worktree.Close]. It is not
// safe for concurrent use.
type Worktree struct {
	opts Options
	dir  string // of the worktree with its record
	rec  record
	lock *flock.Flock
	w    *snapshot.Workspace // nil until it is needed
}

// Info describes a worktree.
type Info struct {
	Name    string    `json:"name"`
	Dir     string    `json:"dir"`    // its working directory
	Root    string    `json:"root"`   // what it is a copy of
	Commit  string    `json:"commit"` // that was checked out; empty without git
	Branch  string    `json:"branch"` // in its own repository; empty without git
	Created time.Time `json:"created"`
}

// record is the file that describes a worktree. Nothing in the worktree can write it.
type record struct {
	Info
	Top    string           // the copied directory: Dir, or a parent of it
	Keep   bool             // it outlives its process
	Ready  bool             // it is complete
	Base   string           // snapshot of the beginning
	Forced []string         // tracked files that git ignores
	Left   map[string]stamp // what the snapshot left out
}

// stamp tells whether a file that no snapshot holds was changed.
type stamp struct {
	Size  int64
	MTime time.Time
}

const (
	recordName = "worktree.json"
	lockName   = "lock"
	allName    = ".lock" // of the directory of all worktrees
)

var validName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ErrExists means that there is a worktree of that name.
var ErrExists = errors.New("there is a worktree of that name")

// ErrInUse means that another process works in a worktree.
var ErrInUse = errors.New("it is in use by another process")

// Create makes a worktree.
func Create(ctx context.Context, opts Options) (_ *Worktree, err error) {
	if opts.Home == "" {
		return nil, errors.New("a worktree needs a home directory: set HOME or AGENT_HOME")
	}
	if opts.Name == "" {
		opts.Name = strings.ToLower(rand.Text()[:6])
	}
	if !validName().MatchString(opts.Name) || strings.HasSuffix(opts.Name, ".lock") || strings.Contains(opts.Name, "..") {
		return nil, fmt.Errorf("invalid name of a worktree %q: use at most 64 letters, digits, ., - and _", opts.Name)
	}
	w := &Worktree{opts: opts, dir: filepath.Join(Dir(opts.Home, opts.Root), opts.Name)}
	w.rec = record{Info: Info{Name: opts.Name, Root: opts.Root, Created: time.Now().UTC()}, Keep: opts.Keep}
	if err := w.reserve(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Remove())
		}
	}()
	if err := w.copyAll(ctx); err != nil {
		return nil, fmt.Errorf("copy %s: %w", opts.Root, err)
	}
	snap, err := w.take(ctx)
	if err != nil {
		return nil, err
	}
	w.rec.Base, w.rec.Left = snap.ID, map[string]stamp{}
	for _, l := range snap.Left {
		w.rec.Left[l.Path] = w.stamp(l.Path)
	}
	if err := w.w.Keep(w.owner(), snap.ID); err != nil {
		return nil, err
	}
	w.rec.Ready = true
	return w, w.save()
}

// reserve creates the directory and locks it.
func (w *Worktree) reserve() error {
	all, err := lockAll(changes.Worktrees(w.opts.Home))
	if err != nil {
		return err
	}
	defer all.Close()
	if err := os.MkdirAll(filepath.Dir(w.dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(w.dir, 0o700); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", ErrExists, w.rec.Name)
	} else if err != nil {
		return err
	}
	w.rec.Top = filepath.Join(w.dir, filepath.Base(w.opts.Root))
	w.rec.Dir = w.rec.Top
	w.lock = flock.New(filepath.Join(w.dir, lockName))
	if err := w.lock.RLock(); err != nil {
		return err
	}
	return w.save()
}

// lockAll locks the directory of all worktrees, so that none is removed while it
// is being created.
func lockAll(dir string) (*flock.Flock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, allName))
	return lock, lock.Lock()
}

// Open opens a worktree of a workspace that is kept.
func Open(opts Options) (*Worktree, error) {
	w := &Worktree{opts: opts, dir: filepath.Join(Dir(opts.Home, opts.Root), opts.Name)}
	missing := fmt.Errorf("there is no worktree %q of %s; agent worktrees list shows them", opts.Name, opts.Root)
	if !validName().MatchString(opts.Name) {
		return nil, missing
	}
	var err error
	if w.rec, err = readRecord(w.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	} else if err != nil {
		return nil, err
	}
	if !w.rec.Ready || !w.rec.Keep {
		return nil, fmt.Errorf("worktree %s: %w", opts.Name, ErrInUse)
	}
	w.lock = flock.New(filepath.Join(w.dir, lockName))
	if ok, err := w.lock.TryRLock(); err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("worktree %s: %w", opts.Name, ErrInUse), err)
	}
	return w, nil
}

// Dir returns the directory of the worktrees of a workspace. It may not exist.
func Dir(home, root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(changes.Worktrees(home), filepath.Base(root)+"-"+hex.EncodeToString(sum[:4]))
}

func readRecord(dir string) (rec record, err error) {
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return rec, fmt.Errorf("%s: %w", filepath.Join(dir, recordName), err)
	}
	return rec, nil
}

func (w *Worktree) save() error {
	data, err := json.MarshalIndent(w.rec, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(w.dir, recordName), data, 0o600)
}

// Info describes the worktree.
func (w *Worktree) Info() Info { return w.rec.Info }

// Base is the snapshot of what the worktree began with.
func (w *Worktree) Base() string { return w.rec.Base }

// Keep makes the worktree outlive its process.
func (w *Worktree) Keep() error {
	w.rec.Keep = true
	return w.save()
}

// Close ends the use of a worktree, and removes it unless it is kept.
func (w *Worktree) Close() error {
	if w.lock == nil {
		return nil
	}
	if !w.rec.Keep {
		return w.Remove()
	}
	return w.release()
}

// release closes what is open.
func (w *Worktree) release() (err error) {
	if w.w != nil {
		err = w.w.Close()
	}
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	w.w, w.lock = nil, nil
	return err
}

// Remove removes the worktree and its snapshots. It fails with [ErrInUse] while
// another process works in it.
func (w *Worktree) Remove() error {
	all, err := lockAll(changes.Worktrees(w.opts.Home))
	if err != nil {
		return err
	}
	defer all.Close()
	if err := w.release(); err != nil {
		return err
	}
	return remove(w.opts.Home, w.dir, w.rec.Root)
}

// remove removes a worktree that no process uses. The lock of all must be held.
func remove(home, dir, root string) error {
	lock := flock.New(filepath.Join(dir, lockName))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return errors.Join(fmt.Errorf("worktree %s: %w", filepath.Base(dir), ErrInUse), err)
	}
	if err := lock.Close(); err != nil {
		return err
	}
	if err := removeAll(dir); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(dir)) // unless there are others
	if root == "" {
		return nil
	}
	store := changes.Store(changes.Dir(home), root)
	if _, err := os.Lstat(store); err != nil {
		return nil
	}
	if err := snapshot.Forget(store, owner(dir)); err != nil {
		return err
	}
	_, err := snapshot.Prune(store)
	return err
}

// removeAll removes a directory also if parts of it are not writable, such as Go's
// module cache.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700) // else the removal fails
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Sweep removes what processes left behind that were killed: worktrees that are
// not kept or not complete.
func Sweep(home string) error {
	dir := changes.Worktrees(home)
	if _, err := os.Lstat(dir); home == "" || err != nil {
		return nil
	}
	all, err := lockAll(dir)
	if err != nil {
		return err
	}
	defer all.Close()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	for _, at := range found {
		rec, recErr := readRecord(at)
		if recErr == nil && rec.Ready && rec.Keep {
			continue
		}
		if removeErr := remove(home, at, rec.Root); !errors.Is(removeErr, ErrInUse) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}

// List returns the worktrees that are kept, of one workspace or, without a root,
// of all.
func List(home, root string) ([]Info, error) {
	pattern := filepath.Join(changes.Worktrees(home), "*", "*")
	if root != "" {
		pattern = filepath.Join(Dir(home, root), "*")
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	all := []Info{}
	for _, dir := range found {
		if rec, err := readRecord(dir); err == nil && rec.Ready && rec.Keep {
			all = append(all, rec.Info)
		}
	}
	slices.SortFunc(all, func(a, b Info) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// Origin returns the workspace that a directory is a worktree of, empty for none.
func Origin(home, dir string) string {
	rel, err := filepath.Rel(changes.Worktrees(home), dir)
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if home == "" || err != nil || !filepath.IsLocal(rel) || len(parts) < 3 {
		return ""
	}
	rec, err := readRecord(filepath.Join(changes.Worktrees(home), parts[0], parts[1]))
	if err != nil || rec.Dir != dir {
		return ""
	}
	return rec.Root
}

// owner is the name by which a store keeps the snapshots of a worktree.
func owner(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "worktree-" + hex.EncodeToString(sum[:8])
}

func (w *Worktree) owner() string { return owner(w.dir) }
