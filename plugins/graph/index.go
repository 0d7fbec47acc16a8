package graph

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/gitignore"
)

// version is part of all hashes: facts of another version are made again.
const version = "15"

// Options configure an [Index].
type Options struct {
	// Cache is a directory for the facts; without one they are lost with the Index.
	Cache string
	// Languages limits what is analysed; empty is all.
	Languages []string
	// Ignore are further patterns, as in .gitignore.
	Ignore []string
}

// Index keeps a [Graph] up to date. Its methods are safe for concurrent use.
type Index struct {
	root    string
	options Options
	graph   *Graph

	mu      sync.Mutex // of a refresh
	dir     *os.Root
	golang  *golang
	scanned map[string]*fileFacts
	walker  *walker  // of the last look at all files
	watcher *watcher // nil while nobody watches
	changed []string // by the last refresh
	modules string   // the version of the modules of the last analysis; "" if that did not end
	methods bool     // some method set changed
	store   *store
	summary Summary
}

// Summary counts what an index holds.
type Summary struct {
	Files      int                         `json:"files"`
	Lines      int                         `json:"lines"`
	Nodes      map[Kind]int                `json:"nodes"`
	Edges      map[Relation]map[string]int `json:"edges"` // by confidence
	Languages  map[string]int              `json:"languages"`
	Warnings   map[string]int              `json:"warnings"` // by code
	Changed    int                         `json:"changed"`  // files that differed at the last refresh
	Elapsed    time.Duration               `json:"-"`
	Millis     float64                     `json:"ms"`
	Incomplete bool                        `json:"incomplete,omitempty"`
}

// Open returns the index of a workspace, with the facts that its cache holds.
// Close it.
func Open(root string, o Options) (*Index, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("cannot open the workspace: %w", err)
	}
	x := &Index{root: root, options: o, dir: dir, scanned: map[string]*fileFacts{}}
	x.golang = newGolang(func(name string) ([]byte, error) { return readFile(dir, name, maxFile) })
	if o.Cache != "" {
		if x.store, err = openStore(o.Cache, root); err != nil {
			return nil, errors.Join(err, dir.Close())
		}
		x.scanned = x.store.load()
		x.methods = len(x.scanned) > 0
	}
	nodes := 0
	for _, f := range x.scanned {
		nodes += len(f.nodes)
	}
	x.graph = newGraph(nodes + nodes/10) // and what is named without being there
	for path, f := range x.scanned {
		x.graph.put(path, f)
	}
	x.graph.fit()
	return x, nil
}

// Close releases the index. The graph stays usable.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.dir.Close()
}

// Graph returns the graph, which follows each refresh.
func (x *Index) Graph() *Graph { return x.graph }

// Root returns the absolute path of the workspace.
func (x *Index) Root() string { return x.root }

// Refresh reads the files that changed since the last one and updates the graph.
// If ctx ends it returns its error; what is known by then stays.
func (x *Index) Refresh(ctx context.Context) (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer func() {
		if err != nil && x.watcher != nil {
			x.watcher.lost() // look at all files again
		}
	}()
	start := time.Now()
	read, gone, err := x.look(ctx)
	if err != nil {
		return err
	}
	changed := map[string]*fileFacts{}
	for _, path := range gone {
		changed[path] = nil
		x.methods = x.methods || x.scanned[path].golang != nil
		delete(x.scanned, path)
	}
	x.scan(ctx, read, changed)
	x.changed = slices.Sorted(maps.Keys(changed))
	err = x.analyse(ctx, changed)
	for path, f := range changed {
		f.normalize()
		x.graph.put(path, f)
	}
	x.link()
	x.summary.Changed, x.summary.Elapsed, x.summary.Incomplete = len(x.changed), time.Since(start), err != nil
	if x.store != nil && len(changed) > 0 {
		err = errors.Join(err, x.store.save(changed, x.scanned))
	}
	return err
}

// look returns the files that are to be read, and those that are gone: of those that
// a watcher saw change, or of all.
func (x *Index) look(ctx context.Context) (read []source, gone []string, err error) {
	if x.watcher != nil {
		if paths, ok := x.watcher.take(ctx); ok {
			if read, gone, ok = x.walker.again(paths, x.scanned); ok {
				return read, gone, nil
			}
		}
	}
	w := &walker{root: x.dir, languages: x.options.Languages}
	if x.watcher != nil {
		w.enter = x.watcher.add
	}
	for _, p := range x.options.Ignore {
		w.ignore = append(w.ignore, gitignore.Parse(p)...)
	}
	if err := w.walk(ctx); err != nil {
		return nil, nil, err
	}
	x.walker = w
	seen := make(map[string]bool, len(w.files))
	for _, s := range w.files {
		seen[s.path] = true
		if old := x.scanned[s.path]; old == nil || old.size != s.size || !old.modified.Equal(s.modified) {
			read = append(read, s)
		}
	}
	for path := range x.scanned {
		if !seen[path] {
			gone = append(gone, path)
		}
	}
	w.files = nil
	return read, gone, nil
}

// scan reads files side by side. New facts go into changed; those of Go files and
// of languages that are resolved by names are completed by analyse.
func (x *Index) scan(ctx context.Context, files []source, changed map[string]*fileFacts) {
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		work = make(chan source)
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for s := range work {
				old := x.known(&mu, s.path)
				f := x.scanFile(s, old)
				mu.Lock()
				x.scanned[s.path] = f
				if old == nil || old.hash != f.hash || f.hash == "" {
					changed[s.path] = f
				}
				mu.Unlock()
			}
		})
	}
	for _, s := range files {
		if ctx.Err() != nil {
			break
		}
		work <- s
	}
	close(work)
	wg.Wait()
}

func (x *Index) known(mu *sync.Mutex, path string) *fileFacts {
	mu.Lock()
	defer mu.Unlock()
	return x.scanned[path]
}

// racy is how long after its modification a file can change without a new time.
const racy = 2 * time.Second

func (x *Index) scanFile(s source, old *fileFacts) (f *fileFacts) {
	f = &fileFacts{path: s.path, language: s.language, size: s.size, modified: s.modified}
	defer func() {
		if r := recover(); r != nil {
			f.nodes, f.facts, f.golang, f.outline = nil, nil, nil, nil
			f.warn("failed", 0, "cannot be analysed: %v", r)
		}
	}()
	data, err := settled(s, old, func() ([]byte, error) { return readFile(x.dir, s.path, maxFile) })
	if err != nil {
		f.warn("unreadable", 0, "not analysed: %v", err)
		return f
	}
	if time.Since(s.modified) < racy {
		f.modified = time.Time{}
	}
	f.hash = contentHash(data)
	if old != nil && old.hash == f.hash {
		same := *old
		same.size, same.modified = f.size, f.modified
		return &same
	}
	if s.language == "javascript" && minified(data) {
		f.warn("generated", 0, "not analysed: its lines are too long to be written by hand")
		return f
	}
	if s.language == "go" {
		var tree *ast.File
		tree, f.golang = parseGo(x.golang.fset, f, data)
		x.golang.keep(f, tree, data)
	} else {
		outlineFile(f, data)
		if old != nil {
			f.before = old.outline
		}
	}
	return f
}

// settled reads a file. One that had a text and was just emptied is likely to be written:
// many programs empty a file and then fill it. Read in between, a package would be without
// its declarations, and all that import it be analysed twice. It is given a moment.
func settled(s source, old *fileFacts, read func() ([]byte, error)) (data []byte, err error) {
	const tries = 10
	for range tries {
		data, err = read()
		if err != nil || len(data) > 0 || old == nil || old.hash == contentHash(nil) || time.Since(s.modified) > settle {
			break
		}
		time.Sleep(settle / tries)
	}
	return data, err
}

// analyse completes the facts of changed files and of those that depend on them.
func (x *Index) analyse(ctx context.Context, changed map[string]*fileFacts) error {
	if len(changed) == 0 && x.modules == x.walker.version {
		return nil
	}
	fresh, err := x.golang.update(ctx, x.scanned, changed, goModules(x.walker.modules))
	for _, f := range fresh {
		old := x.graph.file(f.path)
		x.methods = x.methods || old == nil || old.golang == nil || !slices.EqualFunc(old.golang.Methods, f.golang.Methods, sameType)
		x.scanned[f.path], changed[f.path] = f, f
	}
	resolve(x.scanned, changed, x.walker)
	if x.modules = x.walker.version; err != nil {
		x.modules = ""
	}
	return err
}

func sameType(a, b goType) bool {
	return a.ID == b.ID && a.Interface == b.Interface && slices.Equal(a.Methods, b.Methods)
}

// methodsFile is the pseudo-file that holds which types implement which interfaces.
const methodsFile = "\x00go"

// link renews the facts that belong to no single file.
func (x *Index) link() {
	if x.methods {
		f := &fileFacts{path: methodsFile, facts: implementations(x.scanned)}
		f.normalize()
		x.graph.put(methodsFile, f)
		x.methods = false
	}
}

// Summary counts what the index holds now.
func (x *Index) Summary() Summary {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.summary
	s.Millis = float64(s.Elapsed.Microseconds()) / 1000
	s.Files = len(x.scanned)
	s.Nodes, s.Edges, s.Languages, s.Warnings = map[Kind]int{}, map[Relation]map[string]int{}, map[string]int{}, map[string]int{}
	for _, n := range x.graph.Nodes() {
		s.Nodes[n.Kind]++
		if n.Kind == File {
			s.Lines += n.EndLine
			s.Languages[n.Language()]++
		}
	}
	for _, e := range x.graph.Edges() {
		if s.Edges[e.Kind] == nil {
			s.Edges[e.Kind] = map[string]int{}
		}
		s.Edges[e.Kind][string(e.Confidence)]++
	}
	for _, w := range x.graph.Warnings() {
		s.Warnings[w.Code]++
	}
	return s
}
