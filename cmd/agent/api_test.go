package main_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "write docs/api.txt")

// TestAPI compares the public API of the supported packages with docs/api.txt.
func TestAPI(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	var lines []string
	for _, pkg := range supported(promises(t, root)) {
		pkgLines, err := packageAPI(os.DirFS(root), pkg)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, pkgLines...)
	}
	golden := filepath.Join(root, "docs", "api.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(data), "\r", "")), "\n")
	if diff := lineDiff(want, lines); diff != "" {
		t.Errorf("the public API differs from docs/api.txt (-recorded +actual):\n%s"+
			"If the change is intended and docs/api.md allows it, run: go test ./cmd/agent -run TestAPI -update", diff)
	}
}

// TestAPIPromises checks that docs/api.md decides on every package that can be
// imported from outside the module, and on no other.
func TestAPIPromises(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	promise := promises(t, root)
	packages, err := importablePackages(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range packages {
		if promise[pkg] == "" {
			t.Errorf("docs/api.md: no row for package %s; add one, or move the package below internal/", pkg)
		}
	}
	for pkg := range promise {
		if !slices.Contains(packages, pkg) {
			t.Errorf("docs/api.md: package %s does not exist or is internal; remove its row", pkg)
		}
	}
}

// TestAPIUsesSupportedPackages checks that a signature of a supported package
// names no type of a package without a promise.
func TestAPIUsesSupportedPackages(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	promise := promises(t, root)
	for _, pkg := range supported(promise) {
		used, err := packagesInAPI(os.DirFS(root), pkg)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(used)) {
			if promise[name] == "none" || promise[name] == "" {
				t.Errorf("package %s has %s in its API, which docs/api.md does not support", pkg, used[name])
			}
		}
	}
}

func TestPackageAPI(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"p/a.go": {Data: []byte(`package p

import "io"

const (
	A Kind = "a"
	b      = 1
)

const (
	One Level = iota
	Two
)

var ErrGone, hidden = io.EOF, 1

type (
	Kind  string
	Alias = io.Reader
	Box[T any] struct {
		Value, Other T
		hidden       int
		io.Writer
		*inner
	}
	inner struct{}
	Doer interface {
		Do(ctx, more string) (n int, err error)
		io.Closer
		hide()
	}
	secret struct{ Field int }
)

func New(name string, more ...io.Reader) *Box[int] { return nil }
func (b *Box[T]) Get() (value T) { return b.Value }
func (*inner) Promoted() {}
func (secret) Exported() {}
`)},
		"p/a_windows.go": {Data: []byte("//go:build windows\n\npackage p\n\nfunc New(n string, m ...io.Reader) *Box[int] { return nil }\nfunc OnWindows() {}\n")},
		"p/a_test.go":    {Data: []byte("package p\n\nfunc Helper() {}\n")},
	}
	got, err := packageAPI(tree, "p")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`p: const A Kind = "a"`,
		`p: const One Level = iota`,
		`p: const Two Level`,
		`p: func New(string, ...io.Reader) *Box[int]`,
		`p: func OnWindows()`,
		`p: method (*Box) Get() T`,
		`p: method (*Box) Promoted()`,
		`p: type Alias = io.Reader`,
		`p: type Box[T any] struct`,
		`p: type Box struct, Other T`,
		`p: type Box struct, Value T`,
		`p: type Box struct, embeds io.Writer`,
		`p: type Doer interface`,
		`p: type Doer interface, Do(string, string) (int, error)`,
		`p: type Doer interface, embeds io.Closer`,
		`p: type Doer interface, unexported methods`,
		`p: type Kind string`,
		`p: var ErrGone`,
	}
	slices.Sort(want)
	if diff := lineDiff(want, got); diff != "" {
		t.Errorf("packageAPI (-want +got):\n%s", diff)
	}
}

// promises reads the table of docs/api.md: what is promised for each package.
func promises(t *testing.T, root string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_/]+)` \\|.*\\| (stable|evolving|none) \\|\r?$").FindAllStringSubmatch(string(page), -1) {
		found[m[1]] = m[2]
	}
	if len(found) == 0 {
		t.Fatal("docs/api.md has no table of packages")
	}
	return found
}

func supported(promise map[string]string) []string {
	var packages []string
	for pkg, level := range promise {
		if level != "none" {
			packages = append(packages, pkg)
		}
	}
	slices.Sort(packages)
	return packages
}

// importablePackages lists the packages of the module that other modules can
// import: libraries outside internal directories. cmd/agent itself is a program.
func importablePackages(tree fs.FS) ([]string, error) {
	var found []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "internal" {
				return fs.SkipDir
			}
			return enterPackage(tree, name)
		}
		if pkg := path.Dir(name); pkg != "cmd/agent" && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !slices.Contains(found, pkg) {
			found = append(found, pkg)
		}
		return nil
	})
	return found, err
}

// apiLister collects the exported declarations of one package.
type apiLister struct {
	fset  *token.FileSet
	pkg   string
	lines map[string]bool
	types []ast.Expr // all types that the declarations mention
	// The exported struct that embeds an unexported type has its methods.
	embeddedIn map[string]string
}

func newAPILister(fset *token.FileSet, pkg string) *apiLister {
	return &apiLister{fset: fset, pkg: pkg, lines: map[string]bool{}, embeddedIn: map[string]string{}}
}

// packageAPI lists the exported declarations of a package, one per line and
// sorted, for all platforms together.
func packageAPI(tree fs.FS, pkg string) ([]string, error) {
	l := newAPILister(token.NewFileSet(), pkg)
	files, err := parsePackage(tree, l.fset, pkg)
	if err != nil {
		return nil, err
	}
	for range 2 { // the second time with embeddedIn known
		for _, file := range files {
			l.file(file)
		}
	}
	return slices.Sorted(maps.Keys(l.lines)), nil
}

// packagesInAPI maps each package of this module that the API of pkg mentions
// to one of the types that it uses.
func packagesInAPI(tree fs.FS, pkg string) (map[string]string, error) {
	fset := token.NewFileSet()
	files, err := parsePackage(tree, fset, pkg)
	if err != nil {
		return nil, err
	}
	used := map[string]string{}
	for _, file := range files {
		imports := map[string]string{}
		for _, spec := range file.Imports {
			full, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, err
			}
			name := path.Base(full)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if ours, ok := ownPath(full); ok {
				imports[name] = ours
			}
		}
		l := newAPILister(fset, pkg)
		l.file(file)
		for _, expr := range l.types {
			ast.Inspect(expr, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && imports[x.Name] != "" {
					used[imports[x.Name]] = x.Name + "." + sel.Sel.Name
				}
				return true
			})
		}
	}
	return used, nil
}

// parsePackage parses the non-test files of a package, whatever their build
// constraints say.
func parsePackage(tree fs.FS, fset *token.FileSet, pkg string) ([]*ast.File, error) {
	names, err := fs.Glob(tree, pkg+"/*.go")
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func (l *apiLister) add(format string, args ...any) {
	l.lines[l.pkg+": "+fmt.Sprintf(format, args...)] = true
}

func (l *apiLister) file(file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			l.function(d)
		case *ast.GenDecl:
			l.declaration(d)
		}
	}
}

func (l *apiLister) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	if d.Recv == nil {
		l.add("func %s%s%s", d.Name.Name, l.fields(d.Type.TypeParams, "[", "]"), l.signature(d.Type))
		return
	}
	receiver, star := d.Recv.List[0].Type, ""
	if p, ok := receiver.(*ast.StarExpr); ok {
		receiver, star = p.X, "*"
	}
	switch x := receiver.(type) { // without type parameters
	case *ast.IndexExpr:
		receiver = x.X
	case *ast.IndexListExpr:
		receiver = x.X
	}
	name := l.text(receiver)
	if outer := l.embeddedIn[name]; outer != "" {
		name = outer
	}
	if ast.IsExported(name) {
		l.add("method (%s%s) %s%s", star, name, d.Name.Name, l.signature(d.Type))
	}
}

func (l *apiLister) declaration(d *ast.GenDecl) {
	var constType string // of the last constant with a value: the next ones repeat it
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			l.typeSpec(s)
		case *ast.ValueSpec:
			kind := d.Tok.String()
			declared := l.typeSuffix(s.Type)
			if d.Tok == token.CONST {
				if s.Type != nil || s.Values != nil {
					constType = declared
				}
				declared = constType
			}
			for i, name := range s.Names {
				if !name.IsExported() {
					continue
				}
				if d.Tok == token.CONST && i < len(s.Values) {
					l.add("const %s%s = %s", name.Name, declared, l.text(s.Values[i]))
				} else {
					l.add("%s %s%s", kind, name.Name, declared)
				}
			}
		}
	}
}

func (l *apiLister) typeSpec(s *ast.TypeSpec) {
	name := s.Name.Name
	if !s.Name.IsExported() {
		return
	}
	params := l.fields(s.TypeParams, "[", "]")
	switch t := s.Type.(type) {
	case *ast.StructType:
		l.add("type %s%s struct", name, params)
		l.members(name, "struct", t.Fields)
	case *ast.InterfaceType:
		l.add("type %s%s interface", name, params)
		l.members(name, "interface", t.Methods)
	default:
		assign := " "
		if s.Assign.IsValid() {
			assign = " = "
		}
		l.add("type %s%s%s%s", name, params, assign, l.mention(s.Type))
	}
}

// members lists the exported fields of a struct or methods of an interface.
func (l *apiLister) members(name, kind string, list *ast.FieldList) {
	for _, f := range list.List {
		if embedded := strings.TrimPrefix(l.text(f.Type), "*"); len(f.Names) == 0 {
			if token.IsIdentifier(embedded) && !token.IsExported(embedded) {
				l.embeddedIn[embedded] = name
				continue
			}
			l.add("type %s %s, embeds %s", name, kind, l.mention(f.Type))
		}
		for _, n := range f.Names {
			method, isMethod := f.Type.(*ast.FuncType)
			switch {
			case !n.IsExported() && kind == "interface":
				l.add("type %s interface, unexported methods", name) // nobody else can implement it
			case !n.IsExported():
			case kind == "interface" && isMethod:
				l.add("type %s interface, %s%s", name, n.Name, l.signature(method))
			default:
				l.add("type %s %s, %s %s", name, kind, n.Name, l.mention(f.Type))
			}
		}
	}
}

// signature renders parameters and results without their names.
func (l *apiLister) signature(t *ast.FuncType) string {
	params := l.fieldTypes(t.Params)
	results := l.fieldTypes(t.Results)
	text := "(" + strings.Join(params, ", ") + ")"
	switch len(results) {
	case 0:
		return text
	case 1:
		return text + " " + results[0]
	default:
		return text + " (" + strings.Join(results, ", ") + ")"
	}
}

func (l *apiLister) fieldTypes(list *ast.FieldList) []string {
	if list == nil {
		return nil
	}
	var types []string
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			types = append(types, l.mention(f.Type))
		}
	}
	return types
}

// fields renders a list with names: type parameters.
func (l *apiLister) fields(list *ast.FieldList, left, right string) string {
	if list == nil {
		return ""
	}
	var parts []string
	for _, f := range list.List {
		for _, n := range f.Names {
			parts = append(parts, n.Name+" "+l.mention(f.Type))
		}
	}
	return left + strings.Join(parts, ", ") + right
}

func (l *apiLister) typeSuffix(t ast.Expr) string {
	if t == nil {
		return ""
	}
	return " " + l.mention(t)
}

// mention renders a type and remembers it.
func (l *apiLister) mention(t ast.Expr) string {
	l.types = append(l.types, t)
	if f, ok := t.(*ast.FuncType); ok {
		return "func" + l.signature(f)
	}
	return l.text(t)
}

// text renders an expression on one line.
func (l *apiLister) text(x ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, l.fset, x); err != nil {
		panic(err) // not a valid expression: the parser made it
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// lineDiff lists the lines that only one of two sorted lists has.
func lineDiff(want, got []string) string {
	var b strings.Builder
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			fmt.Fprintf(&b, "+ %s\n", line)
		}
	}
	return b.String()
}
