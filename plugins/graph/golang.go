package graph

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// golang analyses Go code with go/types, one unit (a directory) at a time. Other
// modules are not looked at: their packages are empty, and what they declare is
// unknown. Type errors are expected and ignored.
type golang struct {
	read    func(path string) ([]byte, error)
	modules []goModule
	fset    *token.FileSet
	units   map[string]*goUnit // by directory
	paths   map[string]*goUnit // by import path

	mu        sync.Mutex
	external  map[string]*types.Package
	kept      map[string]parsed // files that were just read, until they are analysed
	keptBytes int
	order     []*goUnit // each after those that it imports
}

// parsed is a file that need not be parsed again.
type parsed struct {
	hash string
	tree *ast.File
	data []byte
}

// maxKept is how many bytes of source are kept as syntax trees between reading and
// analysis; more files are parsed twice, which costs less than their memory.
const maxKept = 16 << 20

// keep remembers a file that was parsed until the next update has ended.
func (g *golang) keep(f *fileFacts, tree *ast.File, data []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if tree == nil || g.keptBytes+len(data) > maxKept {
		return
	}
	if g.kept == nil {
		g.kept = map[string]parsed{}
	}
	g.kept[f.path] = parsed{f.hash, tree, data}
	g.keptBytes += len(data)
}

// goUnit is a directory with Go files: the package, its tests and the tests'
// external package.
type goUnit struct {
	dir, path string
	files     map[string]*fileFacts
	imports   []string // of files that are not tests
	export    string   // hash of what other packages can see
	key       string   // hash of all that the facts of a file depend on besides its text
	cut       map[string]bool

	once   sync.Once
	types  *types.Package // what other units import
	tests  *types.Package // the same with its tests; nil if not checked yet
	outer  *types.Package // the tests' external package; nil if not checked yet
	asts   map[string]*ast.File
	datas  map[string][]byte
	info   *types.Info // of types, if it was checked with the bodies of functions
	whole  bool        // check bodies, too
	warmed bool
}

func newGolang(read func(string) ([]byte, error)) *golang {
	return &golang{read: read, fset: token.NewFileSet(), units: map[string]*goUnit{}, paths: map[string]*goUnit{}, external: map[string]*types.Package{}}
}

// update takes all files and those that changed, and analyses the units whose facts
// are out of date. It returns the files that have new facts.
func (g *golang) update(ctx context.Context, all, changed map[string]*fileFacts, modules []goModule) ([]*fileFacts, error) {
	if !slices.Equal(modules, g.modules) {
		g.modules, g.units, g.order = modules, map[string]*goUnit{}, nil
	}
	if g.fset.Base() > 1<<30 { // positions of files that are long replaced
		g.fset, g.units, g.order, g.kept = token.NewFileSet(), map[string]*goUnit{}, nil, nil
	}
	defer func() { g.kept, g.keptBytes = nil, 0 }()
	if !g.replace(changed) {
		g.order = g.arrange(all)
	}
	var dirty []*goUnit
	for _, u := range g.order {
		if u.whole = u.dirty(slices.Collect(maps.Keys(u.files))) != nil; u.whole {
			dirty = append(dirty, u)
		}
	}
	return g.analyseAll(ctx, dirty)
}

// replace puts changed files into their units if nothing changed but the bodies of
// functions. It reports false if the units must be arranged.
func (g *golang) replace(changed map[string]*fileFacts) bool {
	if g.order == nil {
		return false
	}
	for name, f := range changed {
		u := g.units[path.Dir(name)]
		var old *fileFacts
		if u != nil {
			old = u.files[name]
		}
		switch {
		case old == nil && (f == nil || f.golang == nil):
		case old == nil || f == nil || f.golang == nil || !f.golang.looksLike(old.golang):
			return false
		}
	}
	for name, f := range changed {
		if f != nil && f.golang != nil {
			g.units[path.Dir(name)].files[name] = f
		}
	}
	return true
}

// analyseAll analyses units side by side.
func (g *golang) analyseAll(ctx context.Context, dirty []*goUnit) ([]*fileFacts, error) {
	var (
		mu      sync.Mutex
		changed []*fileFacts
		work    = make(chan *goUnit)
		wg      sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for u := range work {
				fresh := g.analyse(u)
				for _, f := range fresh {
					u.files[f.path] = f
				}
				mu.Lock()
				changed = append(changed, fresh...)
				mu.Unlock()
			}
		})
	}
	for _, u := range dirty {
		if ctx.Err() != nil {
			break
		}
		work <- u
	}
	close(work)
	wg.Wait()
	return changed, ctx.Err()
}

// arrange groups files into units and returns these in an order in which each
// comes after those that it imports. Imports that form a cycle are cut.
func (g *golang) arrange(files map[string]*fileFacts) []*goUnit {
	old := g.units
	g.units, g.paths = map[string]*goUnit{}, map[string]*goUnit{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name].golang == nil {
			continue
		}
		dir := path.Dir(name)
		u := g.units[dir]
		if u == nil {
			u = &goUnit{dir: dir, path: importPath(g.modules, dir), files: map[string]*fileFacts{}, cut: map[string]bool{}}
			g.units[dir], g.paths[u.path] = u, u
		}
		u.files[name] = files[name]
		if f := files[name].golang; !f.isTest(name) {
			u.imports = append(u.imports, f.Imports...)
		}
	}
	var order []*goUnit
	state := map[*goUnit]int{} // 1: being visited, 2: done
	var visit func(u *goUnit)
	visit = func(u *goUnit) {
		state[u] = 1
		for _, p := range u.imports {
			if dep := g.paths[p]; dep != nil {
				if state[dep] == 1 {
					u.cut[p] = true
				} else if state[dep] == 0 {
					visit(dep)
				}
			}
		}
		state[u] = 2
		order = append(order, u)
	}
	for _, dir := range slices.Sorted(maps.Keys(g.units)) {
		if u := g.units[dir]; state[u] == 0 {
			visit(u)
		}
	}
	for _, u := range order {
		g.hash(u)
	}
	for dir, u := range g.units { // what others import stays as long as it looks the same
		if before := old[dir]; before != nil && before.export == u.export && before.types != nil {
			u.types = before.types
			u.once.Do(func() {})
			if before.key == u.key {
				u.tests, u.outer = before.tests, before.outer
			}
		}
	}
	return order
}

// hash computes the hashes of a unit from those of the units that it imports.
func (g *golang) hash(u *goUnit) {
	export, key := sha256.New(), sha256.New()
	fmt.Fprintln(export, version, u.path)
	deps := func(w interface{ Write([]byte) (int, error) }, imports []string) {
		for _, p := range slices.Sorted(maps.Keys(set(imports))) {
			if dep := g.paths[p]; dep != nil && dep != u && !u.cut[p] {
				fmt.Fprintln(w, p, dep.export)
			}
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(u.files)) {
		f := u.files[name]
		if !f.golang.isTest(name) {
			fmt.Fprintln(export, name, f.golang.Package, f.golang.Decls)
		}
		fmt.Fprintln(key, name, f.golang.Package, f.golang.Decls)
		all = append(all, f.golang.Imports...)
	}
	deps(export, u.imports)
	u.export = hex.EncodeToString(export.Sum(nil)[:12])
	fmt.Fprintln(key, u.export)
	deps(key, all)
	u.key = hex.EncodeToString(key.Sum(nil)[:12])
}

// clean reports whether the facts of a file are up to date: its text did not change,
// nor any declaration that it may use.
func (u *goUnit) clean(f *fileFacts) bool { return f.golang.Unit == u.key }

// dirty returns those of some files whose facts are not.
func (u *goUnit) dirty(names []string) (old []string) {
	for _, name := range names {
		if !u.clean(u.files[name]) {
			old = append(old, name)
		}
	}
	return old
}

// warm loads a package that is not loaded yet, so that the first edit does not wait
// for it. It reports whether there was one.
func (g *golang) warm() bool {
	for _, u := range g.order {
		if !u.warmed {
			u.warmed = true
			g.load(u)
			g.loadTests(u)
			u.drop()
			return true
		}
	}
	return false
}

// words returns the words of a text as a set that is made on first use: most
// commands need none.
func words(text string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool { return set(strings.Fields(text)) })
}

func set(list []string) map[string]bool {
	m := map[string]bool{}
	for _, s := range list {
		m[s] = true
	}
	return m
}

// parse parses files of a unit again, unless it has their syntax trees.
func (g *golang) parse(u *goUnit, names []string) {
	if u.asts == nil {
		u.asts, u.datas = map[string]*ast.File{}, map[string][]byte{}
	}
	for _, name := range names {
		if u.asts[name] != nil {
			continue
		}
		f := u.files[name]
		if k, ok := g.kept[name]; ok && k.hash == f.hash {
			u.asts[name], u.datas[name] = k.tree, k.data
			continue
		}
		data, err := g.read(name)
		if err != nil || contentHash(data) != f.hash {
			f.modified = f.modified.Add(-1) // it changed meanwhile: the next refresh reads it again
			if err != nil {
				continue
			}
		}
		scratch := &fileFacts{path: name, hash: f.hash}
		if tree, _ := parseGo(g.fset, scratch, data); tree != nil {
			u.asts[name], u.datas[name] = tree, data
		}
	}
}

// importer resolves the imports of one unit.
type importer struct {
	g    *golang
	unit *goUnit
	own  *types.Package // of the unit with its tests, for the tests' external package
}

// Import implements types.Importer.
func (i *importer) Import(p string) (*types.Package, error) {
	if p == "unsafe" {
		return types.Unsafe, nil
	}
	dep := i.g.paths[p]
	switch {
	case dep != nil && dep == i.unit && i.own != nil:
		return i.own, nil
	case dep != nil && !i.unit.cut[p]:
		if pkg := i.g.load(dep); pkg != nil {
			return pkg, nil
		}
	}
	return i.g.stub(p), nil
}

// stub returns an empty package in place of one of another module.
func (g *golang) stub(p string) *types.Package {
	g.mu.Lock()
	defer g.mu.Unlock()
	if pkg := g.external[p]; pkg != nil {
		return pkg
	}
	name := path.Base(p)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" && path.Dir(p) != "." {
		name = path.Base(path.Dir(p))
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "go-"), ".")
	pkg := types.NewPackage(p, strings.ReplaceAll(name, "-", "_"))
	pkg.MarkComplete()
	g.external[p] = pkg
	return pkg
}

// group returns the names of a unit's files, sorted: those of the package, of its tests
// and of the tests' external package.
func (u *goUnit) group() (base, tests, outer []string) {
	for _, name := range slices.Sorted(maps.Keys(u.files)) {
		switch f := u.files[name].golang; {
		case !f.isTest(name):
			base = append(base, name)
		case strings.HasSuffix(f.Package, "_test"):
			outer = append(outer, name)
		default:
			tests = append(tests, name)
		}
	}
	return base, tests, outer
}

// drop forgets what only an analysis needs.
func (u *goUnit) drop() { u.asts, u.datas, u.info, u.whole = nil, nil, nil, false }

// load returns the package that other units import.
func (g *golang) load(u *goUnit) *types.Package {
	u.once.Do(func() {
		base, _, _ := u.group()
		u.types, u.info = g.check(u, u.path, g.trees(u, base), u.whole, nil)
		if !u.whole {
			u.drop()
		}
	})
	return u.types
}

// loadTests checks the packages of a unit's tests if they are not known yet. It
// returns what it found in the bodies of those that are out of date.
func (g *golang) loadTests(u *goUnit) (tests, outer *types.Info) {
	base, inner, external := u.group()
	if u.tests == nil && len(inner) > 0 {
		files := g.trees(u, inner)
		for _, f := range g.trees(u, base) {
			files = append(files, withoutBodies(f))
		}
		u.tests, tests = g.check(u, u.path, files, u.whole, nil)
	}
	if u.outer == nil && len(external) > 0 {
		u.outer, outer = g.check(u, u.path+"_test", g.trees(u, external), u.whole, cmp.Or(u.tests, u.types))
	}
	return tests, outer
}

// check type-checks files as far as possible.
func (g *golang) check(u *goUnit, p string, files []*ast.File, bodies bool, own *types.Package) (*types.Package, *types.Info) {
	return g.checkIn(types.NewPackage(p, ""), u, files, bodies, own)
}

// checkIn type-checks files as part of a package. It returns nil for the package if
// that cannot be done.
func (g *golang) checkIn(in *types.Package, u *goUnit, files []*ast.File, bodies bool, own *types.Package) (pkg *types.Package, info *types.Info) {
	info = &types.Info{}
	if bodies {
		info.Uses, info.Selections = map[*ast.Ident]types.Object{}, map[*ast.SelectorExpr]*types.Selection{}
	}
	defer func() {
		if r := recover(); r != nil { // a fault of go/types: what it found until then is used
			pkg = nil
		}
	}()
	config := types.Config{
		Importer: &importer{g, u, own}, Error: func(error) {}, FakeImportC: true,
		DisableUnusedImportCheck: true, IgnoreFuncBodies: !bodies,
	}
	_ = types.NewChecker(&config, g.fset, in, info).Files(files) // errors are expected
	return in, info
}

// analyse finds the facts of a unit's files and returns them.
func (g *golang) analyse(u *goUnit) []*fileFacts {
	defer u.drop()
	pkg := g.load(u)
	fresh := make(map[string]*fileFacts, len(u.files))
	decls := map[string][]declared{}
	for name, old := range u.files {
		if u.clean(old) {
			fresh[name] = old
			continue
		}
		f := &fileFacts{path: name, language: "go", hash: old.hash, size: old.size, modified: old.modified, warnings: slices.DeleteFunc(slices.Clone(old.warnings), func(w Warning) bool { return w.Code != "syntax" })}
		meta := *old.golang
		meta.Unit, meta.Methods = u.key, nil
		f.golang = &meta
		if g.parse(u, []string{name}); u.asts[name] != nil {
			decls[name] = goNodes(g.fset, u.asts[name], f, u.datas[name])
			g.fileFacts(u, f)
		}
		fresh[name] = f
	}
	x := extractor{g: g, u: u, fresh: fresh, decls: decls}
	base, tests, outer := u.group()
	x.files(base, pkg, g.bodies(u, u.info, pkg, base, nil))
	if u.dirty(tests) != nil || u.dirty(outer) != nil {
		ofTests, ofOuter := g.loadTests(u)
		x.files(tests, u.tests, g.bodies(u, ofTests, u.tests, tests, nil))
		x.files(outer, u.outer, g.bodies(u, ofOuter, u.outer, outer, cmp.Or(u.tests, u.types)))
	}
	maps.DeleteFunc(fresh, func(name string, f *fileFacts) bool { return f == u.files[name] })
	return slices.Collect(maps.Values(fresh))
}

// trees returns the syntax trees of files, without the bodies of functions if only
// their declarations are of interest.
func (g *golang) trees(u *goUnit, names []string) []*ast.File {
	g.parse(u, names)
	var files []*ast.File
	for _, name := range names {
		switch tree := u.asts[name]; {
		case tree == nil:
		case u.clean(u.files[name]):
			files = append(files, withoutBodies(tree))
		default:
			files = append(files, tree)
		}
	}
	return files
}

// withoutBodies returns a copy of a file whose functions have no bodies.
func withoutBodies(f *ast.File) *ast.File {
	c := *f
	c.Decls = slices.Clone(f.Decls)
	for i, d := range c.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			plain := *fn
			plain.Body = nil
			c.Decls[i] = &plain
		}
	}
	return &c
}

// fileFacts states what a file imports and which package it is part of.
func (g *golang) fileFacts(u *goUnit, f *fileFacts) {
	f.facts = append(f.facts, fact{"go:" + u.dir, "go:" + f.path, 1, Contains, High, "package"})
	for _, p := range f.golang.Imports {
		if dep := g.paths[p]; dep != nil {
			f.facts = append(f.facts, fact{"go:" + f.path, "go:" + dep.dir, 1, Imports, High, "import"})
			if !f.golang.isTest(f.path) {
				f.facts = append(f.facts, fact{"go:" + u.dir, "go:" + dep.dir, 1, Inits, High, "import"})
			}
		}
	}
}
