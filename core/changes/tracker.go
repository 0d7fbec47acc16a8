package changes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/sensitive"
	"github.com/seed-009c0928/agent/core/snapshot"
)

// Options describe what a [Tracker] watches.
type Options struct {
	Session string   // the root session, which keeps the snapshots
	Roots   []string // the workspace on this machine, absolute
	Dir     string   // where the stores are, see [Dir]; what is beside it is no part of the workspace
	// Excludes are files like .gitignore that apply everywhere.
	Excludes []string
	// Secret reports whether a file's content must not be kept; nil keeps all.
	Secret func(content []byte) bool
	// Symbols returns the functions and types that differ in two contents of a file;
	// nil means none.
	Symbols func(path string, before, after []byte) []event.SymbolChange
	// Note adds an event to the root session, for the calls of subagents.
	Note func(ctx context.Context, body event.Body)
}

// Dir returns the directory of all stores below home, such as ~/.agent.
func Dir(home string) string { return filepath.Join(home, "snapshots") }

// Worktrees returns the directory of all worktrees of a home; see core/worktree.
func Worktrees(home string) string { return home + "-worktrees" }

// Store returns the store of a root; dir is that of all stores.
func Store(dir, root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(dir, hex.EncodeToString(sum[:10]))
}

// Tracker watches the calls of a session and of its subagents. It is safe for
// concurrent use. The caller calls [Tracker.Close].
type Tracker struct {
	opts Options

	ctx    context.Context
	cancel context.CancelFunc
	start  sync.Once
	opened chan struct{} // closed when the stores are open
	ready  chan struct{} // closed after the first snapshots

	mu      sync.Mutex
	roots   []*root
	failed  error // why there are no snapshots of the whole workspace
	warned  bool
	running int // calls under way
}

// root is one directory of the workspace.
type root struct {
	path  string
	w     *snapshot.Workspace
	last  snapshot.Snapshot // the state up to which all changes are known
	since time.Time         // when last was taken
}

// New returns a tracker. It reads nothing until [Tracker.Begin].
func New(opts Options) *Tracker {
	t := &Tracker{opts: opts, opened: make(chan struct{}), ready: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Begin implements [core.Watcher]: it takes the first snapshots in the background,
// best while the model is called.
func (t *Tracker) Begin(context.Context) {
	t.start.Do(func() {
		go func() { // ends with t.ctx, see Close
			defer close(t.ready)
			err := t.open()
			t.fail(err)
			close(t.opened)
			if err == nil {
				t.fail(t.first())
			}
		}()
	})
}

// fail notes why there are no snapshots.
func (t *Tracker) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = cmp.Or(t.failed, err)
}

// open opens the stores, and finishes an undo that was interrupted.
func (t *Tracker) open() error {
	for _, path := range t.opts.Roots {
		w, err := Open(t.opts, path, path)
		if err != nil {
			return err
		}
		t.mu.Lock()
		t.roots = append(t.roots, &root{path: path, w: w})
		t.mu.Unlock()
	}
	return nil
}

// first takes the first snapshots. Nothing else writes t.roots any more.
func (t *Tracker) first() error {
	for _, r := range t.roots {
		snap, err := r.w.Take(t.ctx, snapshot.TakeOptions{})
		if err != nil {
			return err
		}
		t.mu.Lock()
		r.last = snap
		t.mu.Unlock()
	}
	return nil
}

// Open opens a directory as a tracker does, with the store of root: that
// directory, or one that it is a copy of. The caller closes it.
func Open(opts Options, path, root string) (*snapshot.Workspace, error) {
	skip, home := len(path), filepath.Dir(opts.Dir)
	w, err := snapshot.Open(snapshot.Options{
		Root: path, Dir: Store(opts.Dir, root), NoIndex: path != root,
		Excludes: opts.Excludes, Skip: []string{home, Worktrees(home)}, Secret: opts.Secret,
		Leave: func(name string) string {
			if e, ok := sensitive.Match(filepath.ToSlash(path)+"/"+name, skip); ok && e.Class == sensitive.Secret {
				return "it may hold secrets"
			}
			return ""
		},
	})
	if err != nil {
		return nil, err
	}
	if path != root {
		return w, nil // what was interrupted is of the workspace
	}
	if _, err := w.Recover(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Close ends the tracker.
func (t *Tracker) Close() error {
	t.cancel()
	t.start.Do(func() { close(t.opened); close(t.ready) })
	<-t.ready
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	for _, r := range t.roots {
		err = errors.Join(err, r.w.Close())
	}
	t.roots, t.failed = nil, errors.New("the session is closed")
	return err
}

// Before implements [core.Watcher].
func (t *Tracker) Before(ctx context.Context, call *core.Call, accesses []core.Access) func(context.Context) []event.Body {
	t.Begin(ctx)
	if wait(ctx, t.opened) != nil {
		return func(context.Context) []event.Body { return nil }
	}
	done := t.claim(accesses)
	after := t.before(ctx, call.Session.AgentPath, accesses)
	return func(ctx context.Context) []event.Body {
		defer done()
		return after(ctx)
	}
}

func (t *Tracker) before(ctx context.Context, path []string, accesses []core.Access) func(context.Context) []event.Body {
	if after := t.peek(ctx, path, accesses); after != nil {
		return after
	}
	if wait(ctx, t.ready) != nil {
		return func(context.Context) []event.Body { return nil }
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.large() || len(t.roots) < len(t.opts.Roots) {
		return func(context.Context) []event.Body { return t.warning() }
	}
	takes, _ := t.touched(accesses)
	for i, r := range t.roots {
		before := takes[i]
		before.Secret = false
		snap, err := r.w.Take(ctx, before)
		if err != nil {
			return func(context.Context) []event.Body { return t.failing(ctx, err) }
		}
		if t.running == 0 { // what came before was no call's doing
			r.last, r.since = snap, time.Now()
		}
	}
	t.failed, t.warned = nil, false // a disk that was full has space again
	t.running++
	return func(ctx context.Context) []event.Body { return t.after(ctx, path, takes) }
}

// large reports whether the workspace is too large for snapshots.
func (t *Tracker) large() bool {
	var large *snapshot.TooLargeError
	return errors.As(t.failed, &large)
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// peek watches a call that changes nothing but certain files, while there is no
// snapshot of the whole workspace, or if it is too large for one. It returns nil
// if the call is another one.
func (t *Tracker) peek(ctx context.Context, agent []string, accesses []core.Access) func(context.Context) []event.Body {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.ready:
		if !t.large() {
			return nil
		}
	default:
	}
	takes, named := t.touched(accesses)
	if !named {
		return nil
	}
	before := make([]snapshot.Snapshot, len(t.roots))
	for i, r := range t.roots {
		var err error
		if before[i], err = r.w.Peek(ctx, takes[i].Paths); err != nil {
			return func(context.Context) []event.Body { return t.failing(ctx, err) }
		}
	}
	return func(ctx context.Context) []event.Body {
		t.mu.Lock()
		defer t.mu.Unlock()
		var bodies []event.Body
		for i, r := range t.roots {
			after, err := r.w.Peek(ctx, takes[i].Paths)
			if err != nil {
				return append(bodies, t.failing(ctx, err)...)
			}
			bodies = append(bodies, t.report(ctx, r, agent, before[i], after)...)
		}
		return bodies
	}
}

// Holds takes a snapshot, and reports whether it holds all of the files, ignored ones
// included: a call that removes or overwrites them can be undone.
func (t *Tracker) Holds(ctx context.Context, files []string) bool {
	t.Begin(ctx)
	if wait(ctx, t.ready) != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed != nil {
		return false
	}
	found := 0
	for _, r := range t.roots {
		var paths []string
		for _, name := range files {
			if rel, err := filepath.Rel(r.path, filepath.FromSlash(name)); err == nil && filepath.IsLocal(rel) {
				paths = append(paths, filepath.ToSlash(rel))
			}
		}
		if found += len(paths); len(paths) == 0 {
			continue
		}
		snap, err := r.w.Take(ctx, snapshot.TakeOptions{Paths: paths})
		if err != nil || !r.w.Holds(paths) || r.w.Keep(t.opts.Session, snap.ID) != nil {
			return false
		}
	}
	return found >= len(files)
}

// touched returns what to look at for a call with these accesses, by root, and
// whether it names all that can change. What a call writes that reads sensitive
// files may be their content.
func (t *Tracker) touched(accesses []core.Access) (takes []snapshot.TakeOptions, named bool) {
	secret := false
	named = true
	takes = make([]snapshot.TakeOptions, len(t.roots))
	for _, a := range accesses {
		if !a.Scope.IsFile() {
			named = false
			continue
		}
		if e, ok := sensitive.Match(filepath.ToSlash(a.Resource), 0); ok && e.Class == sensitive.Secret {
			secret = true
		}
		for i, r := range t.roots {
			rel, err := filepath.Rel(r.path, a.Resource)
			if err == nil && filepath.IsLocal(rel) && rel != "." && a.Scope != core.ScopeRead {
				takes[i].Paths = append(takes[i].Paths, filepath.ToSlash(rel))
			}
		}
	}
	for i := range takes {
		takes[i].Only, takes[i].Secret = named && t.running == 0, secret
	}
	return takes, named && !secret
}

// after returns the events of a call that ended.
func (t *Tracker) after(ctx context.Context, agent []string, takes []snapshot.TakeOptions) []event.Body {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.failed != nil {
		return nil
	}
	var bodies []event.Body
	for i, r := range t.roots {
		snap, err := r.w.Take(ctx, takes[i])
		if err != nil {
			return append(bodies, t.failing(ctx, err)...)
		}
		before := r.last
		if others := t.claimed(r, r.since); len(others) > 0 && !takes[i].Only {
			others = slices.DeleteFunc(others, func(p string) bool { return slices.Contains(takes[i].Paths, p) })
			if before, err = r.w.Graft(before, snap, others); err != nil {
				return append(bodies, t.failing(ctx, err)...)
			}
		}
		r.last, r.since = snap, time.Now()
		bodies = append(bodies, t.report(ctx, r, agent, before, snap)...)
	}
	return bodies
}

// report returns the event for what a call of an agent changed, if anything.
func (t *Tracker) report(ctx context.Context, r *root, agent []string, before, after snapshot.Snapshot) []event.Body {
	body, changed, err := t.describe(ctx, r, before, after)
	switch {
	case err != nil:
		return t.failing(ctx, err)
	case !changed:
		return nil
	}
	body.Agent = agent
	if len(agent) > 0 && t.opts.Note != nil {
		t.opts.Note(ctx, body)
	}
	return []event.Body{body}
}

// failing is [Tracker.warning] for an error that ends the snapshots; one that only
// came from the end of the context does not.
func (t *Tracker) failing(ctx context.Context, err error) []event.Body {
	if ctx.Err() != nil {
		return nil
	}
	t.failed = err
	return t.warning()
}

// warning says once that there are no snapshots.
func (t *Tracker) warning() []event.Body {
	if t.warned {
		return nil
	}
	t.warned = true
	return []event.Body{event.Warning{Code: "SNAPSHOT", Message: fmt.Sprintf("changes to files are not recorded and cannot be undone: %v", t.failed)}}
}

// Limits of an event.
const (
	maxFiles = 200
	maxDiff  = 64 << 10 // bytes of all diffs

	maxSymbols  = 200     // of all files
	maxCompared = 8 << 20 // bytes of files whose symbols are compared
)

// describe returns what changed between two snapshots, and keeps them.
func (t *Tracker) describe(ctx context.Context, r *root, before, after snapshot.Snapshot) (event.FilesChanged, bool, error) {
	if before.ID == after.ID {
		return event.FilesChanged{}, false, nil
	}
	list, err := r.w.Changes(before.ID, after.ID)
	if err != nil {
		return event.FilesChanged{}, false, err
	}
	left, err := r.w.LeftOut(before.ID, after.ID)
	if err != nil || len(list)+len(left) == 0 {
		return event.FilesChanged{}, false, err
	}
	if err := errors.Join(r.w.Keep(t.opts.Session, before.ID), r.w.Keep(t.opts.Session, after.ID)); err != nil {
		return event.FilesChanged{}, false, err
	}
	body := event.FilesChanged{Root: r.path, Before: before.ID, After: after.ID, Left: max(0, len(list)-maxFiles)}
	for _, l := range left[:min(len(left), maxFiles)] {
		body.Unrecorded = append(body.Unrecorded, event.Unrecorded{Path: l.Path, Reason: l.Reason})
	}
	list = list[:min(len(list), maxFiles)]
	if body.Files, err = Files(ctx, r.w, list, maxDiff); err == nil {
		err = t.symbols(r.w, list, body.Files)
	}
	return body, true, err
}

// symbols adds which functions and types changed in files, as far as the limits allow.
func (t *Tracker) symbols(w *snapshot.Workspace, list []snapshot.Change, files []event.FileChange) error {
	left, bytes := maxSymbols, maxCompared
	for i, c := range list {
		if t.opts.Symbols == nil || files[i].Binary || files[i].Added+files[i].Removed == 0 || left == 0 || bytes <= 0 {
			continue
		}
		before, after, err := w.Contents(c)
		if err != nil {
			return err
		}
		found := t.opts.Symbols(c.Path, before, after)
		files[i].Symbols = found[:min(len(found), left)]
		left, bytes = left-len(files[i].Symbols), bytes-len(before)-len(after)
	}
	return nil
}

// Files describes changes, with at most that many bytes of diffs.
func Files(ctx context.Context, w *snapshot.Workspace, list []snapshot.Change, diffs int) (files []event.FileChange, err error) {
	for _, c := range list {
		d, err := w.Diff(ctx, c)
		if err != nil {
			return nil, err
		}
		files = append(files, fileChange(c, d, &diffs))
	}
	return files, nil
}

// fileChange describes a change. Left is how much diff fits.
func fileChange(c snapshot.Change, d snapshot.Diff, left *int) event.FileChange {
	f := event.FileChange{
		Path: c.Path, From: c.From, Kind: string(c.Kind), Dir: c.Dir,
		Binary: d.Binary, Added: d.Added, Removed: d.Removed,
	}
	if c.Mode != 0 && c.Kind != snapshot.Create {
		f.Mode = fmt.Sprintf("%o", c.Mode)
	}
	if text := strings.ToValidUTF8(d.Text, "\uFFFD"); len(text) <= *left {
		f.Diff = text
		*left -= len(text)
	}
	return f
}
