package graph

import (
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

	mu       sync.Mutex
	external map[string]*types.Package
}

// goUnit is a directory with Go files: the package, its tests and the tests'
// external package.
type goUnit struct {
	dir, path string
	files     map[string]*fileFacts
	imports   []string // of files that are not tests
	export    string   // hash of what other packages can see
	key       string   // hash of all that the facts depend on
	cut       map[string]bool

	once  sync.Once
	types *types.Package // what other units import
	asts  map[string]*ast.File
	datas map[string][]byte
	info  *types.Info // of types, if it was checked with the bodies of functions
	whole bool        // check bodies, too
}

func newGolang(read func(string) ([]byte, error)) *golang {
	return &golang{read: read, fset: token.NewFileSet(), units: map[string]*goUnit{}, paths: map[string]*goUnit{}, external: map[string]*types.Package{}}
}

// update takes the current files of the language, whose go is set, and analyses
// the units whose facts are out of date. It returns the files that have new facts.
func (g *golang) update(ctx context.Context, files map[string]*fileFacts, modules []goModule) ([]*fileFacts, error) {
	if !slices.Equal(modules, g.modules) {
		g.modules, g.units = modules, map[string]*goUnit{}
	}
	if g.fset.Base() > 1<<30 { // positions of files that are long replaced
		g.fset, g.units = token.NewFileSet(), map[string]*goUnit{}
	}
	order := g.arrange(files)
	var dirty []*goUnit
	for _, u := range order {
		u.whole = false
		for _, f := range u.files {
			u.whole = u.whole || f.golang.Unit != u.key
		}
		if u.whole {
			dirty = append(dirty, u)
		}
	}
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
		fmt.Fprintln(key, name, f.hash)
		all = append(all, f.golang.Imports...)
	}
	deps(export, u.imports)
	u.export = hex.EncodeToString(export.Sum(nil)[:12])
	fmt.Fprintln(key, u.export)
	deps(key, all)
	u.key = hex.EncodeToString(key.Sum(nil)[:12])
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

// parse parses the files of a unit again and sets its syntax trees.
func (g *golang) parse(u *goUnit) {
	if u.asts != nil {
		return
	}
	u.asts, u.datas = map[string]*ast.File{}, map[string][]byte{}
	for name, f := range u.files {
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

// load returns the package that other units import.
func (g *golang) load(u *goUnit) *types.Package {
	u.once.Do(func() {
		g.parse(u)
		var files []*ast.File
		for _, name := range slices.Sorted(maps.Keys(u.asts)) {
			if f := u.files[name].golang; !f.isTest(name) {
				files = append(files, u.asts[name])
			}
		}
		u.types, u.info = g.check(u, u.path, files, u.whole, nil)
		if !u.whole {
			u.asts, u.datas, u.info = nil, nil, nil
		}
	})
	return u.types
}

// check type-checks files as far as possible.
func (g *golang) check(u *goUnit, p string, files []*ast.File, bodies bool, own *types.Package) (pkg *types.Package, info *types.Info) {
	info = &types.Info{}
	if bodies {
		info.Uses, info.Defs, info.Selections = map[*ast.Ident]types.Object{}, map[*ast.Ident]types.Object{}, map[*ast.SelectorExpr]*types.Selection{}
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
	pkg, _ = config.Check(p, g.fset, files, info)
	return pkg, info
}

// analyse finds the facts of a unit's files and returns them.
func (g *golang) analyse(u *goUnit) []*fileFacts {
	pkg := g.load(u)
	g.parse(u)
	fresh := make(map[string]*fileFacts, len(u.files))
	decls := map[string][]declared{}
	for name, old := range u.files {
		f := &fileFacts{path: name, language: "go", hash: old.hash, size: old.size, modified: old.modified, warnings: slices.DeleteFunc(slices.Clone(old.warnings), func(w Warning) bool { return w.Code != "syntax" })}
		meta := *old.golang
		meta.Unit, meta.Methods = u.key, nil
		f.golang = &meta
		if tree := u.asts[name]; tree != nil {
			decls[name] = goNodes(g.fset, tree, f, u.datas[name])
			g.fileFacts(u, f)
		}
		fresh[name] = f
	}
	var base, tests, external []string
	for _, name := range slices.Sorted(maps.Keys(u.asts)) {
		switch f := fresh[name].golang; {
		case !f.isTest(name):
			base = append(base, name)
		case strings.HasSuffix(f.Package, "_test"):
			external = append(external, name)
		default:
			tests = append(tests, name)
		}
	}
	trees := func(names []string) []*ast.File {
		var files []*ast.File
		for _, n := range names {
			files = append(files, u.asts[n])
		}
		return files
	}
	info := u.info
	if info == nil { // what others import is still valid
		pkg, info = g.check(u, u.path, trees(base), true, nil)
	}
	x := extractor{g: g, u: u, fresh: fresh, decls: decls}
	x.files(base, pkg, info)
	own := pkg
	if len(tests) > 0 {
		files := trees(tests)
		for _, f := range trees(base) {
			files = append(files, withoutBodies(f))
		}
		own, info = g.check(u, u.path, files, true, nil)
		x.files(tests, own, info)
	}
	if len(external) > 0 {
		p, info := g.check(u, u.path+"_test", trees(external), true, own)
		x.files(external, p, info)
	}
	u.asts, u.datas, u.info, u.whole = nil, nil, nil, false
	return slices.Collect(maps.Values(fresh))
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
		}
	}
}
