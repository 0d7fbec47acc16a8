package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	innerDir     = ".bundle" // in the store, for changes in progress
	stagePrefix  = "stage-"
	lockSuffix   = ".lock"
	maxName      = 64 // bytes
	lockPatience = 10 * time.Second
	lockRetry    = 10 * time.Millisecond
)

// The errors of a store.
var (
	ErrNotInstalled = errors.New("not installed")
	ErrInstalled    = errors.New("the name is taken")
	ErrLocalEdits   = errors.New("files were edited since they were installed")
	ErrChanged      = errors.New("the files changed since they were shown")
)

// Options are a store's settings. The zero value is valid.
type Options struct {
	Limits Limits
	Now    func() time.Time // the clock; time.Now if nil
}

// Store is a directory of installed bundles. It keeps nothing in memory but what
// it last decoded, and is safe for concurrent use, even by several processes.
type Store struct {
	dir    string
	limits Limits
	now    func() time.Time

	exchange func(a, b string) error // atomically swaps two folders; may fail
	step     func(name string) error // called before each step of a change, if not nil

	mu   sync.Mutex
	read []byte   // the lock file as it was last read; nil before
	file lockFile // and decoded
}

// Open returns the store in a directory, which need not exist: it is created
// when something is installed. Open itself does no I/O.
func Open(dir string, options Options) *Store {
	s := &Store{dir: dir, limits: options.Limits.filled(), now: options.Now, exchange: exchange}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// Path returns the folder of a bundle.
func (s *Store) Path(name string) string { return filepath.Join(s.dir, name) }

// LockFile returns the path of the lock file.
func (s *Store) LockFile() string { return filepath.Join(s.dir, "lock.json") }

func (s *Store) inner() string { return filepath.Join(s.dir, innerDir) }

// List returns the entries of the lock file by name. Edited ones are left out
// and named in the error, as [EditedError]s.
func (s *Store) List(ctx context.Context) ([]Entry, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	file, edited, err := s.readLock()
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(edited))
	for i, e := range edited {
		delete(file.Entries, e.Name)
		errs[i] = e
	}
	list := make([]Entry, 0, len(file.Entries))
	for _, name := range slices.Sorted(maps.Keys(file.Entries)) {
		list = append(list, file.Entries[name])
	}
	return list, errors.Join(errs...)
}

// Entry returns the entry of a bundle. The error is an [EditedError] if the
// entry was edited, and an ErrNotInstalled if there is none.
func (s *Store) Entry(ctx context.Context, name string) (Entry, error) {
	if err := s.settle(ctx); err != nil {
		return Entry{}, err
	}
	return s.entry(name)
}

func (s *Store) entry(name string) (Entry, error) {
	file, edited, err := s.readLock()
	if err != nil {
		return Entry{}, err
	}
	for _, e := range edited {
		if e.Name == name {
			return Entry{}, e
		}
	}
	entry, ok := file.Entries[name]
	if !ok {
		return Entry{}, fmt.Errorf("%q: %w: not in %s", name, ErrNotInstalled, s.LockFile())
	}
	return entry, nil
}

// Verify compares the files of a bundle with its entry and returns the changes
// since it was installed. If the folder is missing, all files are Removed. The
// error is that of Entry, or says that files cannot be read or are not allowed.
func (s *Store) Verify(ctx context.Context, name string) (Entry, []Change, error) {
	entry, err := s.Entry(ctx, name)
	if err != nil {
		return entry, nil, err
	}
	changes, err := s.compare(ctx, entry)
	return entry, changes, err
}

func (s *Store) compare(ctx context.Context, entry Entry) ([]Change, error) {
	found, err := Scan(ctx, s.Path(entry.Name), s.limits)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("bundle: %s: %w", s.Path(entry.Name), err)
	}
	if !modesKept {
		found = believeModes(found, entry.Files)
	}
	return Compare(Tree{entry.Tree, entry.Files}, found), nil
}

// believeModes sets which files are executable from those installed.
func believeModes(found Tree, installed []File) Tree {
	executable := make(map[string]bool, len(installed))
	for _, f := range installed {
		executable[f.Path] = f.Executable
	}
	for i := range found.Files {
		found.Files[i].Executable = executable[found.Files[i].Path]
	}
	return Tree{HashFiles(found.Files), found.Files}
}

// unedited returns the entry of a bundle. The error is an ErrLocalEdits if its
// files were edited.
func (s *Store) unedited(ctx context.Context, name string) (Entry, error) {
	entry, err := s.entry(name)
	if err != nil {
		return entry, err
	}
	changes, err := s.compare(ctx, entry)
	if err == nil && len(changes) > 0 {
		err = fmt.Errorf("%q: %w: %s", name, ErrLocalEdits, summary(changes))
	}
	return entry, err
}

// summary lists the first changes.
func summary(changes []Change) string {
	const most = 3
	var parts []string
	for _, c := range changes[:min(most, len(changes))] {
		parts = append(parts, fmt.Sprintf("%s %s", c.Kind, c.Path))
	}
	if more := len(changes) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

func (s *Store) changeLock(change func(map[string]Entry)) error {
	file, _, err := s.readLock()
	if err != nil {
		return err
	}
	change(file.Entries)
	if err := s.writeLock(file); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// checkName validates the name of a bundle.
func checkName(name string) error {
	wrong := strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" ||
		name == "" || len(name) > maxName || name[0] == '.' || name == "lock.json" || checkElement(name) != ""
	if wrong {
		return fmt.Errorf("bundle: invalid name %q: expected at most %d letters, digits, -, _ and ., not beginning with a dot", name, maxName)
	}
	return nil
}

// exclusively completes an interrupted change, then calls f while no other
// process or goroutine changes the store.
func (s *Store) exclusively(ctx context.Context, f func() error) (err error) {
	if err := s.prepare(); err != nil {
		return err
	}
	path := filepath.Join(s.inner(), "lock")
	guard := flock.New(path)
	waiting, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if _, err := guard.TryLockContext(waiting, lockRetry); err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("another process has been installing for %s", lockPatience)
		}
		return fmt.Errorf("bundle: lock %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, guard.Close()) }()
	if err := s.finish(ctx); err != nil {
		return err
	}
	return f()
}

// prepare creates the store's directories.
func (s *Store) prepare() error {
	err := os.MkdirAll(s.dir, 0o755)
	if err == nil {
		err = os.MkdirAll(s.inner(), 0o700)
	}
	ignore := filepath.Join(s.inner(), ".gitignore")
	if _, missing := os.Lstat(ignore); err == nil && missing != nil {
		err = os.WriteFile(ignore, []byte("*\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// settle waits for a change in progress, or completes an interrupted one. If
// there is none it costs one Lstat.
func (s *Store) settle(ctx context.Context) error {
	if _, err := os.Lstat(s.pendingFile()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.exclusively(ctx, func() error { return nil })
}

// timestamp returns the time in the lock file's precision.
func (s *Store) timestamp() time.Time { return s.now().UTC().Truncate(time.Second) }
