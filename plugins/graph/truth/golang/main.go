// Command golang prints what Go's own analysis knows of a module, as reference
// facts for "agent graph bench --truth": declarations, imports, the calls that
// go/types resolves, and those that variable type analysis (VTA) finds behind
// interfaces and function values.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/callgraph/vta"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: golang DIRECTORY")
	}
	root, err := filepath.EvalSymlinks(os.Args[1])
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		log.Fatal(err)
	}
	if err := run(root); err != nil {
		log.Fatal(err)
	}
}

// fact is a line of the output.
type fact struct {
	Kind   string `json:"kind"`
	File   string `json:"file,omitempty"`
	Name   string `json:"name,omitempty"`
	To     string `json:"to,omitempty"`
	ToName string `json:"toName,omitempty"`
	How    string `json:"how,omitempty"`
}

// reference collects facts.
type reference struct {
	root  string
	fset  *token.FileSet
	facts map[fact]bool
	decls map[string][]decl // of each file, in order
}

// decl is a declaration at the top of a file.
type decl struct {
	pos, end token.Pos
	name     string
}

func run(root string) error {
	config := &packages.Config{Mode: packages.LoadAllSyntax | packages.NeedModule, Dir: root, Tests: true, Fset: token.NewFileSet()}
	pkgs, err := packages.Load(config, "./...")
	if err != nil {
		return err
	}
	if n := packages.PrintErrors(pkgs); n > 0 {
		return fmt.Errorf("%d errors in the packages: expected a module that builds", n)
	}
	r := &reference{root: root, fset: config.Fset, facts: map[fact]bool{{Kind: "dispatch"}: true}, decls: map[string][]decl{}}
	dirs := map[string]string{}
	for _, p := range pkgs {
		if len(p.GoFiles) > 0 {
			if file := r.file(p.GoFiles[0]); file != "" && !strings.HasSuffix(p.ID, ".test") {
				dirs[p.PkgPath] = filepath.ToSlash(filepath.Dir(file))
			}
		}
	}
	for _, p := range pkgs {
		for _, f := range p.Syntax {
			r.declarations(f, dirs)
		}
	}
	for _, p := range pkgs {
		for _, f := range p.Syntax {
			r.static(f, p.TypesInfo)
		}
	}
	prog, _ := ssautil.AllPackages(pkgs, ssa.InstantiateGenerics)
	prog.Build()
	r.dispatch(prog)
	out := json.NewEncoder(os.Stdout)
	for f := range maps.Keys(r.facts) {
		if err := out.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// file returns the path of a file of the module, or "".
func (r *reference) file(name string) string {
	rel, err := filepath.Rel(r.root, name)
	if err != nil || strings.HasPrefix(rel, "..") || strings.Contains("/"+rel, "/testdata/") || strings.Contains("/"+rel, "/vendor/") {
		return ""
	}
	return filepath.ToSlash(rel)
}

func (r *reference) declarations(f *ast.File, dirs map[string]string) {
	name := r.file(r.fset.Position(f.Package).Filename)
	if name == "" || r.facts[fact{Kind: "file", File: name}] {
		return
	}
	r.facts[fact{Kind: "file", File: name}] = true
	r.facts[fact{Kind: "caller", File: name}] = true
	for _, spec := range f.Imports {
		if dir := dirs[strings.Trim(spec.Path.Value, "`\"")]; dir != "" {
			r.facts[fact{Kind: "import", File: name, To: dir}] = true
		}
	}
	define := func(n string) { r.facts[fact{Kind: "definition", File: name, Name: n}] = true }
	add := func(n string, at ast.Node) {
		r.decls[name] = append(r.decls[name], decl{at.Pos(), at.End(), n})
		r.facts[fact{Kind: "caller", File: name, Name: n}] = true
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			n := d.Name.Name
			if d.Recv != nil && len(d.Recv.List) == 1 {
				n = receiver(d.Recv.List[0].Type) + "." + n
			}
			add(n, d)
			define(n)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name.Name, spec)
					define(spec.Name.Name)
					if it, ok := spec.Type.(*ast.InterfaceType); ok {
						for _, m := range it.Methods.List {
							for _, n := range m.Names {
								define(spec.Name.Name + "." + n.Name)
							}
						}
					}
				case *ast.ValueSpec:
					for i, value := range spec.Values {
						add(spec.Names[min(i, len(spec.Names)-1)].Name, value)
					}
				}
			}
		}
	}
}

func receiver(t ast.Expr) string {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// at returns the declaration around a position.
func (r *reference) at(pos token.Pos) (file, name string, ok bool) {
	if !pos.IsValid() {
		return "", "", false
	}
	p := r.fset.Position(pos)
	if file = r.file(p.Filename); file == "" {
		return "", "", false
	}
	for _, d := range r.decls[file] {
		// The same file may be parsed several times, for a package and its tests.
		from, to := r.fset.Position(d.pos), r.fset.Position(d.end)
		if from.Offset <= p.Offset && p.Offset <= to.Offset {
			return file, d.name, true
		}
	}
	return "", "", false
}

// object returns the place of a function.
func (r *reference) object(o *types.Func) (file, name string) {
	if o == nil || !o.Pos().IsValid() {
		return "", ""
	}
	o = o.Origin()
	file, name = r.file(r.fset.Position(o.Pos()).Filename), o.Name()
	if recv := o.Signature().Recv(); recv != nil {
		t := types.Unalias(recv.Type())
		if p, ok := t.(*types.Pointer); ok {
			t = types.Unalias(p.Elem())
		}
		named, ok := t.(*types.Named)
		if !ok {
			return "", ""
		}
		name = named.Obj().Name() + "." + name
	}
	return file, name
}

func (r *reference) call(pos token.Pos, to *types.Func, how string) {
	file, name, ok := r.at(pos)
	toFile, toName := r.object(to)
	if ok && toFile != "" {
		r.facts[fact{"call", file, name, toFile, toName, how}] = true
	}
}

// static states the calls whose function or interface method the types tell.
func (r *reference) static(f *ast.File, info *types.Info) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun := ast.Unparen(call.Fun)
		switch x := fun.(type) {
		case *ast.IndexExpr:
			fun = x.X
		case *ast.IndexListExpr:
			fun = x.X
		}
		var id *ast.Ident
		switch x := fun.(type) {
		case *ast.Ident:
			id = x
		case *ast.SelectorExpr:
			id = x.Sel
		default:
			return true
		}
		if o, ok := info.Uses[id].(*types.Func); ok {
			r.call(call.Lparen, o, "static")
		}
		return true
	})
}

// dispatch states the calls behind interfaces and function values.
func (r *reference) dispatch(prog *ssa.Program) {
	graph := vta.CallGraph(ssautil.AllFunctions(prog), nil)
	nodes := slices.Collect(maps.Values(graph.Nodes))
	for _, n := range nodes {
		for _, e := range n.Out {
			if e.Site == nil || e.Site.Common().StaticCallee() != nil || e.Callee.Func == nil {
				continue
			}
			how := "dynamic"
			if e.Site.Common().IsInvoke() {
				how = "interface"
			}
			fn := e.Callee.Func
			if o := fn.Origin(); o != nil {
				fn = o
			}
			if o, ok := fn.Object().(*types.Func); ok {
				r.call(e.Site.Pos(), o, how)
			}
		}
	}
}
