package graph

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// goFile is what the packages around a Go file need to know of it.
type goFile struct {
	Package string   // its package clause
	Imports []string // import paths
	Decls   string   // hash of everything but comments and the bodies of functions
	Unit    string   // hash of all that its facts were made from
	Methods []goType // method sets, to find what implements an interface
}

// goType is the method set of a type.
type goType struct {
	ID        string
	Interface bool
	Methods   []goMethod // sorted by Key
}

// goMethod is a method: Key is its name and signature, Target the ID of its node,
// which may belong to an embedded type.
type goMethod struct{ Key, Target string }

// looksLike reports whether other files see no difference between two states of a file.
func (f *goFile) looksLike(old *goFile) bool {
	return f.Package == old.Package && f.Decls == old.Decls && slices.Equal(f.Imports, old.Imports)
}

func (f *goFile) isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

// parseGo parses a file as far as possible. It returns nil if the file is not part
// of the package on this platform.
func parseGo(fset *token.FileSet, facts *fileFacts, data []byte) (*ast.File, *goFile) {
	context := build.Default
	context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(data))), nil }
	if ok, err := context.MatchFile(path.Dir(facts.path), path.Base(facts.path)); err == nil && !ok {
		facts.warn("other-platform", 0, "not built on this platform: its code is not in the graph")
		return nil, nil
	}
	if !utf8.Valid(data) {
		facts.warn("syntax", 0, "it is not UTF-8")
	}
	f, err := parseText(fset, facts.path, data)
	if err != nil {
		line := 0
		if list, ok := err.(interface{ Unwrap() []error }); ok && len(list.Unwrap()) > 0 {
			err = list.Unwrap()[0]
		}
		facts.warn("syntax", line, "%s", firstLine(err.Error()))
	}
	if f == nil || f.Name == nil {
		return nil, nil
	}
	g := &goFile{Package: f.Name.Name, Decls: declHash(fset, f, data)}
	for _, spec := range f.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && !slices.Contains(g.Imports, p) {
			g.Imports = append(g.Imports, p)
		}
	}
	return f, g
}

// parseText parses a file. Bytes that are not UTF-8 count as question marks: with one
// in the first comment, package parser leaves out all declarations.
func parseText(fset *token.FileSet, name string, data []byte) (*ast.File, error) {
	if !utf8.Valid(data) {
		data = slices.Clone(data)
		for i := 0; i < len(data); {
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size == 1 {
				data[i] = '?'
			}
			i += size
		}
	}
	return parser.ParseFile(fset, name, data, parser.SkipObjectResolution|parser.ParseComments)
}

// declHash hashes the source of all declarations but the bodies of functions.
func declHash(fset *token.FileSet, f *ast.File, data []byte) string {
	h := sha256.New()
	file := fset.File(f.FileStart)
	text := func(from, to token.Pos) {
		if a, b := file.Offset(from), file.Offset(to); a <= b && b <= len(data) {
			h.Write(data[a:b])
			h.Write([]byte{0})
		}
	}
	io.WriteString(h, f.Name.Name)
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			text(fn.Pos(), fn.Type.End())
		} else {
			text(d.Pos(), d.End())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// goNames gives the declarations of a file their names: those that occur several
// times in Go, init and _, are numbered.
type goNames struct {
	path string
	seen map[string]int
}

func (n *goNames) id(name string) string {
	n.seen[name]++
	if i := n.seen[name]; i > 1 {
		name += "~" + strconv.Itoa(i)
	}
	return "go:" + n.path + "#" + name
}

// declared is a declaration with the node that stands for it.
type declared struct {
	id   string
	node ast.Node // *ast.FuncDecl, *ast.TypeSpec or *ast.ValueSpec
}

// goNodes adds the nodes of a file's declarations to its facts.
func goNodes(fset *token.FileSet, f *ast.File, facts *fileFacts, data []byte) []declared {
	names := &goNames{facts.path, map[string]int{}}
	line := func(p token.Pos) int { return fset.Position(p).Line }
	facts.nodes = append(facts.nodes, Node{ID: "go:" + facts.path, Kind: File, File: facts.path, Line: 1, EndLine: line(f.FileEnd), Hash: facts.hash})
	var all []declared
	add := func(name string, kind Kind, n ast.Node, head token.Pos, doc *ast.CommentGroup) {
		id := names.id(name)
		// What is broken can seem to end behind its file.
		start, end := fset.Position(n.Pos()), fset.Position(min(max(n.End(), n.Pos()), f.FileEnd))
		head = min(max(head, n.Pos()), f.FileEnd)
		node := Node{ID: id, Kind: kind, File: facts.path, Line: start.Line, EndLine: end.Line, Doc: firstSentence(doc.Text())}
		if end.Offset <= len(data) && start.Offset <= end.Offset {
			node.Signature = clip(oneLine(string(data[start.Offset:min(fset.Position(head).Offset, end.Offset)])), 200)
			node.Hash = contentHash(data[start.Offset:end.Offset])
		}
		facts.nodes = append(facts.nodes, node)
		facts.facts = append(facts.facts, fact{"go:" + facts.path, id, int32(start.Line), Contains, High, "declaration"})
		all = append(all, declared{id, n})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			kind, name := Function, d.Name.Name
			if d.Recv != nil && len(d.Recv.List) > 0 {
				kind, name = Method, receiver(d.Recv.List[0].Type)+"."+name
			} else if isGoTest(facts.path, d) {
				kind = Test
			}
			add(name, kind, d, d.Type.End(), d.Doc)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					kind := Class
					if _, ok := spec.Type.(*ast.InterfaceType); ok {
						kind = Interface
					}
					add(spec.Name.Name, kind, spec, spec.Type.Pos(), either(spec.Doc, d.Doc))
					if it, ok := spec.Type.(*ast.InterfaceType); ok {
						for _, m := range it.Methods.List {
							for _, name := range m.Names {
								add(spec.Name.Name+"."+name.Name, Method, m, m.End(), m.Doc)
							}
						}
					}
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						add(name.Name, Variable, spec, min(spec.End(), spec.Pos()+200), either(spec.Doc, d.Doc))
					}
				}
			}
		}
	}
	return all
}

func either(a, b *ast.CommentGroup) *ast.CommentGroup {
	if a != nil {
		return a
	}
	return b
}

// isGoTest reports whether "go test" runs a function.
func isGoTest(file string, d *ast.FuncDecl) bool {
	if !strings.HasSuffix(file, "_test.go") || d.Recv != nil {
		return false
	}
	for _, prefix := range []string{"Test", "Benchmark", "Example", "Fuzz"} {
		if rest, ok := strings.CutPrefix(d.Name.Name, prefix); ok && d.Name.Name != "TestMain" && (rest == "" || rest[0] < 'a' || rest[0] > 'z') {
			return true
		}
	}
	return false
}

// receiver returns the name of a receiver's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.ParenExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// firstSentence returns the first sentence of a comment, at most 100 characters.
func firstSentence(text string) string {
	text = oneLine(text)
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i+1]
	}
	return clip(text, 100)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// clip cuts a text to n bytes, at a rune.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

// goModule is a Go module of the workspace.
type goModule struct{ dir, path string }

// goModules returns the modules, the innermost first, always in the same order: in
// another one all would be analysed again.
func goModules(files map[string][]byte) []goModule {
	var all []goModule
	for name, data := range files {
		if path.Base(name) != "go.mod" {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
				rest, _, _ = strings.Cut(rest, "//")
				all = append(all, goModule{path.Dir(name), strings.Trim(strings.TrimSpace(rest), "\"`")})
				break
			}
		}
	}
	length := func(m goModule) int { return len(strings.TrimPrefix(m.dir, ".")) }
	slices.SortFunc(all, func(a, b goModule) int {
		return cmp.Or(cmp.Compare(length(b), length(a)), cmp.Compare(a.dir, b.dir))
	})
	return all
}

// importPath returns the path by which a directory is imported.
func importPath(modules []goModule, dir string) string {
	for _, m := range modules {
		if m.dir == "." || dir == m.dir || strings.HasPrefix(dir, m.dir+"/") {
			rel := strings.TrimPrefix(strings.TrimPrefix(dir, m.dir), "/")
			if dir == m.dir || rel == "." {
				return m.path
			}
			return m.path + "/" + rel
		}
	}
	return fmt.Sprintf("_/%s", dir)
}
