package graph

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settles is how many changes a refresh waits for that come one after the other.
const settles = 50

// The times of watching.
const (
	settle  = 20 * time.Millisecond // without a change before a refresh: they come in groups, and files may be half written
	poll    = 2 * time.Second       // between looks at all files, where they cannot be watched
	arrival = time.Second           // for the news of a change to arrive
)

// Watch keeps the graph up to date until ctx ends, and then returns nil. After each
// refresh that found something it calls changed, which may be nil, with the paths, and
// once without any when it has loaded what makes later refreshes fast.
// Where the system cannot watch all directories it looks at the files now and then.
// There can be one Watch at a time.
func (x *Index) Watch(ctx context.Context, changed func(paths []string)) error {
	w, err := newWatcher(x.root, x.options.Cache)
	if err != nil {
		w = nil // look at all files, as Refresh does without it
	}
	if err := x.setWatcher(w); err != nil {
		return errors.Join(err, w.close())
	}
	defer func() {
		_ = x.setWatcher(nil) // always possible
		_ = w.close()         // it only frees memory
	}()
	for warm := false; ; {
		if err := x.Refresh(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		x.mu.Lock()
		paths := x.changed
		x.mu.Unlock()
		if len(paths) > 0 && changed != nil {
			changed(paths)
		}
		if x.warm(ctx); !warm && changed != nil {
			changed(nil)
		}
		warm = true
		if !w.wait(ctx) {
			return nil
		}
	}
}

func (x *Index) setWatcher(w *watcher) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if w != nil && x.watcher != nil {
		return errors.New("the workspace is watched already")
	}
	x.watcher = w
	return nil
}

// warm loads what later edits need, in small steps, so that a question in between
// does not wait.
func (x *Index) warm(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		x.mu.Lock()
		more = x.golang.warm()
		x.mu.Unlock()
	}
}

// watcher collects the paths that change below a root. A nil watcher knows nothing.
type watcher struct {
	root, own string // own is a directory outside of the root
	fs        *fsnotify.Watcher
	news      chan struct{} // something changed

	mu     sync.Mutex
	dirty  map[string]bool
	dirs   map[string]bool
	all    bool          // the whole tree must be walked
	broken bool          // and always will
	cookie string        // the file in own that is looked for
	seen   chan struct{} // closed when its news arrive
}

// newWatcher returns a watcher of no directory yet. It needs an empty directory
// outside the root, for itself: news arrive in order, so that those of a file that it writes
// there come after all before. That holds for Linux.
func newWatcher(root, dir string) (*watcher, error) {
	if runtime.GOOS != "linux" || dir == "" {
		return nil, errors.ErrUnsupported
	}
	dir = filepath.Clean(dir)
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{root: root, own: dir, fs: fs, news: make(chan struct{}, 1), dirty: map[string]bool{}, dirs: map[string]bool{}, all: true}
	if err := fs.Add(dir); err != nil {
		return nil, errors.Join(err, fs.Close())
	}
	go w.listen() // ends with fs
	return w, nil
}

func (w *watcher) close() error {
	if w == nil {
		return nil
	}
	return w.fs.Close()
}

func (w *watcher) listen() {
	for {
		select {
		case e, ok := <-w.fs.Events:
			if !ok {
				return
			}
			w.event(e)
		case _, ok := <-w.fs.Errors: // news were lost
			if !ok {
				return
			}
			w.lost()
		}
	}
}

// event notes what changed.
func (w *watcher) event(e fsnotify.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Name == w.cookie {
		close(w.seen)
		w.cookie = ""
		return
	}
	rel, err := filepath.Rel(w.root, e.Name)
	name := path.Base(e.Name)
	if err != nil || strings.HasPrefix(rel, "..") || e.Op == fsnotify.Chmod {
		return
	}
	switch info, _ := os.Lstat(e.Name); {
	case w.dirs[rel], moduleFiles[name], name == ".gitignore", info != nil && info.IsDir() && e.Has(fsnotify.Create) && !skipped[name] && name[0] != '.':
		w.all = true
	case languageOf(name) != "":
		w.dirty[rel] = true
	default:
		return
	}
	w.tell()
}

// lost says that changes may have been missed.
func (w *watcher) lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = true
	w.tell()
}

func (w *watcher) tell() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// add watches a directory; it must be called before the directory is read.
func (w *watcher) add(dir string) {
	w.mu.Lock()
	broken := w.broken
	w.dirs[dir] = true
	w.mu.Unlock()
	if broken {
		return
	}
	if err := w.fs.Add(filepath.Join(w.root, dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.mu.Lock()
		w.broken = true // too many, or a file system without news
		w.mu.Unlock()
	}
}

// take returns the paths that changed up to now. It reports false if all must be
// looked at.
func (w *watcher) take(ctx context.Context) ([]string, bool) {
	arrived := w.arrive(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	var paths []string
	for name := range w.dirty {
		paths = append(paths, filepath.ToSlash(name))
	}
	all := w.all || w.broken || !arrived
	w.dirty, w.all = map[string]bool{}, false
	return paths, !all
}

// arrive waits for the news of all changes up to now: for those of a file that it
// makes after them. It reports whether they came.
func (w *watcher) arrive(ctx context.Context) bool {
	seen := make(chan struct{})
	w.mu.Lock() // no news are read before the name is known
	f, err := os.CreateTemp(w.own, ".watch-*")
	if err == nil {
		w.cookie, w.seen = f.Name(), seen
	}
	w.mu.Unlock()
	if err != nil || errors.Join(f.Close(), os.Remove(f.Name())) != nil {
		return false
	}
	late := time.NewTimer(arrival)
	defer late.Stop()
	select {
	case <-seen:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// wait waits until something changed; it reports false if ctx ended.
func (w *watcher) wait(ctx context.Context) bool {
	pause, news := poll, (chan struct{})(nil)
	if w != nil {
		if w.mu.Lock(); !w.broken {
			pause, news = settle, w.news
		}
		w.mu.Unlock()
	}
	if news != nil {
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
	for range settles {
		select {
		case <-news:
		case <-time.After(pause):
			return true
		case <-ctx.Done():
			return false
		}
	}
	return true
}
