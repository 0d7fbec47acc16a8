package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/gitignore"
)

// Options describe a workspace and its store.
type Options struct {
	Root string // the workspace, absolute
	Dir  string // the store, outside of the workspace; it is created

	// NoIndex keeps no index between processes, as of a directory that shares the
	// store of another one.
	NoIndex bool
	// Plain leaves out nothing that git ignores.
	Plain bool

	MaxFiles    int   // in the workspace; 0 = 200,000
	MaxBytes    int64 // of files read for one snapshot; 0 = 1 GiB
	MaxFileSize int64 // larger files are left out; 0 = 10 MiB

	// Excludes are files like .gitignore that apply to the whole workspace, such
	// as a user's global one.
	Excludes []string
	// Skip are directories that are no part of the workspace even if they are in
	// it, such as the one with the store.
	Skip []string
	// Leave returns why a file must not be kept, such as that it holds secrets;
	// empty means that it may be. Nil keeps all.
	Leave func(path string) string
	// Secret reports whether a file's content must not be kept; nil keeps all. It
	// is called by several goroutines.
	Secret func(content []byte) bool

	levels []gitignore.Level
	skip   map[string]bool // paths in the workspace
}

// Why a path is left out of a snapshot.
const (
	leftUnreadable = "it cannot be read"
	leftRepository = "it is another git repository"
	leftSpecial    = "it is not a regular file"
	leftSecret     = "it may hold secrets"
)

// leaves returns why a file is left out.
func (o *Options) leaves(at string, st stamp) string {
	switch st.kind() {
	case typeLink:
		return ""
	case typeRegular:
	default:
		return leftSpecial
	}
	if st.size > o.MaxFileSize {
		return fmt.Sprintf("it is larger than %d MiB", o.MaxFileSize>>20)
	}
	if o.Leave != nil {
		return o.Leave(at)
	}
	return ""
}

// Left is a path that a snapshot does not hold. Of a directory, it is everything
// below.
type Left struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	// State differs if the file has changed; empty if that is not known.
	State string `json:"state,omitempty"`
}

// note is what a snapshot says besides its tree.
type note struct {
	Left  []Left     `json:"left,omitempty"`
	Links [][]string `json:"links,omitempty"` // paths of the same file
}

// Snapshot is a state of a workspace.
type Snapshot struct {
	ID   string // the name of a git commit, in hex
	Left []Left // sorted by path
}

// Workspace takes and restores snapshots of one directory. It is safe for
// concurrent use. Several processes may use one store.
type Workspace struct {
	opts    Options
	files   *os.Root
	objects *objects
	lock    *storeLock

	mu     sync.Mutex
	index  *node
	forced map[string]bool
	last   Snapshot
	tree   ID     // of last
	note   []byte // of last
	git    gitIndex
}

// Open opens the store of a workspace. It reads nothing of the workspace yet.
// The caller calls [Workspace.Close].
func Open(opts Options) (*Workspace, error) {
	set := func(n *int64, def int64) {
		if *n <= 0 {
			*n = def
		}
	}
	if opts.MaxFiles <= 0 {
		opts.MaxFiles = 200_000
	}
	set(&opts.MaxBytes, 1<<30)
	set(&opts.MaxFileSize, 10<<20)
	var git gitIndex
	if !opts.Plain {
		opts.levels, git = outerLevels(&opts)
	}
	opts.skip = skipped(&opts)
	files, err := os.OpenRoot(opts.Root)
	if err != nil {
		return nil, err
	}
	w := &Workspace{opts: opts, files: files, forced: map[string]bool{}, git: git}
	if w.lock, err = lockStore(opts.Dir); err != nil {
		return nil, errors.Join(err, files.Close())
	}
	if w.objects, err = openObjects(opts.Dir); err != nil {
		return nil, errors.Join(err, w.lock.Close(), files.Close())
	}
	w.index = w.loadIndex()
	return w, nil
}

// Close writes the index down, which makes the next scan fast.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.saveIndex(), w.lock.Close(), w.files.Close())
}

// skipped returns the directories to skip as paths in the workspace.
func skipped(opts *Options) map[string]bool {
	all := map[string]bool{}
	for _, dir := range append([]string{opts.Dir}, opts.Skip...) {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			dir = resolved
		}
		if rel, err := filepath.Rel(opts.Root, dir); err == nil && filepath.IsLocal(rel) {
			all[filepath.ToSlash(rel)] = true
		}
	}
	return all
}

// outerLevels returns the rules from outside of the workspace: the excluded files
// of the options, .git/info/exclude, and the .gitignore files of the directories
// above, up to the root of the repository, whose index it names.
func outerLevels(opts *Options) (levels []gitignore.Level, git gitIndex) {
	read := func(file, below string) {
		data, err := os.ReadFile(file)
		if rules := gitignore.Parse(string(data)); err == nil && len(data) <= maxIgnoreFile && len(rules) > 0 {
			levels = append(levels, gitignore.Level{Below: below, Rules: rules})
		}
	}
	dirs, below := []string{opts.Root}, []string{""}
	for dir := opts.Root; ; {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			dirs, below = dirs[:1], below[:1] // no repository
			break
		}
		dirs, below = append(dirs, parent), append(below, path.Join(filepath.Base(dir), below[len(below)-1])+"/")
		dir = parent
	}
	top := len(dirs) - 1
	git = gitIndex{file: filepath.Join(gitDir(dirs[top]), "index"), below: below[top]}
	for _, file := range opts.Excludes {
		read(file, below[top])
	}
	read(filepath.Join(dirs[top], ".git", "info", "exclude"), below[top])
	for i := top; i > 0; i-- {
		read(filepath.Join(dirs[i], ".gitignore"), below[i])
	}
	return levels, git
}

// TakeOptions describe a snapshot.
type TakeOptions struct {
	// Paths are kept even if git ignores them, from now on. They are relative to
	// the root, with slashes.
	Paths []string
	Only  bool // take everything but Paths as unchanged since the previous snapshot
	// Secret leaves out the files that changed since the previous snapshot.
	Secret bool
}

// Take takes a snapshot. If nothing changed, it is the previous one.
func (w *Workspace) Take(ctx context.Context, opts TakeOptions) (Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &scan{ctx: ctx, opts: &w.opts, forced: w.forced, secret: opts.Secret && w.last.ID != ""}
	w.force(w.git.added())
	only := w.force(opts.Paths)
	if opts.Only && w.last.ID != "" {
		s.only = only
	}
	snap, err := w.take(s)
	if err != nil {
		w.index, w.last = newIndex(), Snapshot{} // it may be ahead of the store
	}
	return snap, err
}

// Peek takes a snapshot that holds nothing but some paths, and does not wait for a
// Take under way. Two of the same paths tell how these changed.
func (w *Workspace) Peek(ctx context.Context, paths []string) (Snapshot, error) {
	objects, err := openObjects(w.opts.Dir)
	if err != nil {
		return Snapshot{}, err
	}
	p := &Workspace{opts: w.opts, files: w.files, objects: objects, index: newIndex(), forced: map[string]bool{}}
	only := p.force(paths)
	return p.take(&scan{ctx: ctx, opts: &p.opts, only: only, forced: only})
}

// Holds reports whether the latest snapshot holds all of some files.
func (w *Workspace) Holds(paths []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range paths {
		n := w.index.at(path.Clean(p))
		if w.last.ID == "" || n == nil || n.isDir || !n.kept() || n.id == (ID{}) {
			return false
		}
	}
	return true
}

// at returns the node at a path; nil if it does not exist or is left out with a
// directory.
func (n *node) at(path string) *node {
	for more := true; more; {
		var name string
		name, path, more = strings.Cut(path, "/")
		i, found := slices.BinarySearchFunc(n.kids, name, func(kid *node, name string) int { return strings.Compare(kid.name, name) })
		if !found {
			return nil
		}
		n = n.kids[i]
	}
	return n
}

// force keeps paths although they may be ignored. It returns them with their
// parents.
func (w *Workspace) force(paths []string) map[string]bool {
	all := map[string]bool{}
	for _, p := range paths {
		if p = path.Clean(p); !filepath.IsLocal(p) {
			continue
		}
		if !w.forced[p] {
			w.index.relist(p)
		}
		for ; p != "."; p = path.Dir(p) {
			all[p], w.forced[p] = true, true
		}
	}
	return all
}

// relist makes the next scan list the directories on the way to a path again.
func (n *node) relist(at string) {
	for n != nil && n.isDir {
		n.racy = true
		name, rest, more := strings.Cut(at, "/")
		if !more {
			return
		}
		n, at = n.at(name), rest
	}
}

// bulkFrom is the number of changed files from which on they go into a pack.
const bulkFrom = 16

// take scans, and stores what changed.
func (w *Workspace) take(s *scan) (Snapshot, error) {
	if err := s.run(w.index); err != nil {
		return Snapshot{}, err
	}
	end := func(bool) error { return nil }
	if len(s.changed) > bulkFrom {
		var err error
		if end, err = w.objects.bulk(); err != nil {
			return Snapshot{}, err
		}
	}
	snap, err := w.store(s)
	return snap, errors.Join(err, end(err == nil))
}

func (w *Workspace) store(s *scan) (Snapshot, error) {
	if err := w.readAll(s); err != nil {
		return Snapshot{}, err
	}
	if err := w.objects.putTree(w.index); err != nil {
		return Snapshot{}, err
	}
	about := w.index.about()
	note, err := json.Marshal(about)
	if err != nil {
		return Snapshot{}, err
	}
	if w.last.ID != "" && w.tree == w.index.id && bytes.Equal(note, w.note) {
		return w.last, nil
	}
	id, err := w.objects.putCommit(w.index.id, note)
	if err != nil {
		return Snapshot{}, err
	}
	w.last, w.tree, w.note = Snapshot{ID: id.String(), Left: about.Left}, w.index.id, note
	return w.last, nil
}

// readAll reads the changed files into the store.
func (w *Workspace) readAll(s *scan) error {
	var wg sync.WaitGroup
	work := make(chan changedFile)
	for range min(parallel, len(s.changed)) {
		wg.Go(func() {
			for c := range work {
				if s.failed() {
					continue
				}
				id, left, err := w.read(c.path, c.node)
				if err != nil {
					s.fail(err)
				}
				c.node.id, c.node.left = id, left
			}
		})
	}
	for _, c := range s.changed {
		work <- c
	}
	close(work)
	wg.Wait()
	return s.err
}

// read puts a file's content into the store. A file that cannot be read is left
// out; an error is one of the store.
func (w *Workspace) read(at string, n *node) (id ID, left string, err error) {
	if n.stamp.kind() == typeLink {
		target, err := w.files.Readlink(at)
		if err != nil {
			return ID{}, leftUnreadable, nil
		}
		id, err = w.objects.put(kindBlob, []byte(target))
		return id, "", err
	}
	f, err := w.files.OpenFile(at, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return ID{}, leftUnreadable, nil
	}
	defer f.Close()
	st, err := statOpen(f)
	if err != nil {
		return ID{}, leftUnreadable, nil
	}
	if reason := w.opts.leaves(at, st); reason != "" {
		return ID{}, reason, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, w.opts.MaxFileSize+1))
	if err != nil || int64(len(data)) > w.opts.MaxFileSize {
		return ID{}, leftUnreadable, nil
	}
	if w.opts.Secret != nil && w.opts.Secret(data) {
		n.stamp = st
		return ID{}, leftSecret, nil
	}
	n.racy = n.racy || st != n.stamp || int64(len(data)) != st.size // it is being written
	n.stamp = st
	id, err = w.objects.put(kindBlob, data)
	return id, "", err
}

// about describes what the tree below n does not.
func (n *node) about() note {
	var about note
	links := map[stamp][]string{}
	n.collect(&about, links, "")
	for _, names := range links {
		if len(names) > 1 {
			about.Links = append(about.Links, names)
		}
	}
	slices.SortFunc(about.Links, slices.Compare)
	return about
}

func (n *node) collect(about *note, links map[stamp][]string, at string) {
	for _, kid := range n.kids {
		switch path := at + kid.name; {
		case kid.left != "":
			l := Left{Path: path, Reason: kid.left}
			if kid.stamp != (stamp{}) {
				l.State = fmt.Sprintf("%d %d", kid.stamp.size, kid.stamp.mtime)
			}
			about.Left = append(about.Left, l)
		case kid.isDir:
			kid.collect(about, links, path+"/")
		case kid.stamp.links > 1:
			links[kid.stamp] = append(links[kid.stamp], path)
		}
	}
}
