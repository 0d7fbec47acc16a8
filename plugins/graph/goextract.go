package graph

import (
	"cmp"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
)

// extractor states the facts of a unit's checked files.
type extractor struct {
	g     *golang
	u     *goUnit
	fresh map[string]*fileFacts
	decls map[string][]declared
}

// files states the facts of some files of one package.
func (x *extractor) files(names []string, pkg *types.Package, info *types.Info) {
	if info == nil {
		return
	}
	for i, name := range names {
		f := x.fresh[name]
		if x.u.clean(x.u.files[name]) {
			continue
		}
		if i == 0 && !f.golang.isTest(name) {
			f.nodes = append(f.nodes, Node{ID: "go:" + x.u.dir, Kind: Package, File: x.u.dir, Signature: "package " + f.golang.Package})
		}
		for _, d := range x.decls[name] {
			x.declaration(f, d, info)
		}
		if pkg != nil {
			x.methods(f, pkg)
		}
	}
}

// declaration states what one declaration depends on.
func (x *extractor) declaration(f *fileFacts, d declared, info *types.Info) {
	w := walk{x: x, f: f, info: info, from: d.id, callees: map[*ast.Ident]string{}}
	switch n := d.node.(type) {
	case *ast.FuncDecl:
		ast.Inspect(n, w.visit)
		switch {
		case n.Recv == nil && n.Name.Name == "init":
			f.facts = append(f.facts, fact{"go:" + x.u.dir, d.id, w.line(n), Inits, High, "init function"})
		case isGoTest(f.path, n):
			x.test(f, d.id, w.line(n))
		}
	case *ast.TypeSpec:
		x.embedded(&w, n)
		ast.Inspect(n, w.visit)
	case *ast.ValueSpec:
		// Each name depends on its own value, or all on the one of a call.
		for i, name := range n.Names {
			if d.id != "go:"+f.path+"#"+name.Name && !strings.HasPrefix(d.id, "go:"+f.path+"#"+name.Name+"~") {
				continue
			}
			if n.Type != nil {
				ast.Inspect(n.Type, w.visit)
			}
			for j, value := range n.Values {
				if len(n.Values) == len(n.Names) && i != j {
					continue
				}
				ast.Inspect(value, w.visit)
				if runs(value) {
					f.facts = append(f.facts, fact{"go:" + x.u.dir, d.id, w.line(n), Inits, High, "initial value"})
				}
			}
			break
		}
	}
}

// runs reports whether an initial value calls something.
func runs(value ast.Expr) (found bool) {
	ast.Inspect(value, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			found = true
		}
		return !found
	})
	return found
}

// test states what runs before a test: the initial values and functions of the packages
// that its file imports, and TestMain.
func (x *extractor) test(f *fileFacts, id string, line int32) {
	f.facts = append(f.facts, fact{id, "go:" + x.u.dir, line, Inits, High, "package"})
	for _, p := range f.golang.Imports {
		if dep := x.g.paths[p]; dep != nil {
			f.facts = append(f.facts, fact{id, "go:" + dep.dir, line, Inits, High, "import"})
		}
	}
	for name := range x.fresh {
		if x.fresh[name].golang.isTest(name) {
			f.facts = append(f.facts, fact{id, "go:" + name + "#TestMain", line, Inits, High, "TestMain"})
		}
	}
}

// embedded states what a type embeds.
func (x *extractor) embedded(w *walk, spec *ast.TypeSpec) {
	var fields *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return
	}
	for _, field := range fields.List {
		if len(field.Names) > 0 {
			continue
		}
		t := field.Type
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		if ident := calleeIdent(t); ident != nil {
			if id := x.id(w.info.Uses[ident]); id != "" {
				w.add(id, field, Inherits, High, "embedded")
			}
		}
	}
}

// wellKnown are methods that other modules call through their interfaces.
var wellKnown = words(`Len Less Swap Push Pop ServeHTTP String Error Unwrap Is As Read Write Close Seek ReadFrom WriteTo
	ReadAt WriteAt ReadByte WriteByte ReadRune UnreadByte UnreadRune WriteString Flush Hijack Header WriteHeader MarshalJSON UnmarshalJSON
	MarshalText UnmarshalText MarshalBinary UnmarshalBinary MarshalYAML UnmarshalYAML GobEncode GobDecode Set Get Type Format GoString Scan
	Value RoundTrip Done Err Deadline Lock Unlock Open Stat Name Size Mode ModTime IsDir Sys ReadDir ReadFile Accept Addr Dial Handle Enabled
	WithAttrs WithGroup LogValue Visit Import`)

// methods remembers the method sets of the types that a file declares.
func (x *extractor) methods(f *fileFacts, pkg *types.Package) {
	for _, d := range x.decls[f.path] {
		spec, ok := d.node.(*ast.TypeSpec)
		if !ok {
			continue
		}
		tn, ok := pkg.Scope().Lookup(spec.Name.Name).(*types.TypeName)
		if !ok || x.id(tn) != d.id || tn.IsAlias() || tn.Type() == nil {
			continue
		}
		named, ok := tn.Type().(*types.Named)
		if !ok {
			continue
		}
		line := int32(x.g.fset.Position(spec.Pos()).Line)
		for i := range named.NumMethods() {
			m := named.Method(i)
			id := x.id(m)
			f.facts = append(f.facts, fact{d.id, id, line, Contains, High, "method"})
			if wellKnown()[m.Name()] {
				f.facts = append(f.facts, fact{d.id, id, line, Refers, Low, "called by other modules"})
			}
		}
		if named.TypeParams().Len() > 0 {
			continue
		}
		t := goType{ID: d.id, Interface: types.IsInterface(named)}
		var recv types.Type = named
		if !t.Interface {
			recv = types.NewPointer(named)
		}
		set := types.NewMethodSet(recv)
		for i := range set.Len() {
			if m, ok := set.At(i).Obj().(*types.Func); ok {
				t.Methods = append(t.Methods, goMethod{methodKey(m), x.id(m)})
			}
		}
		if len(t.Methods) > 0 {
			slices.SortFunc(t.Methods, func(a, b goMethod) int { return cmp.Compare(a.Key, b.Key) })
			f.golang.Methods = append(f.golang.Methods, t)
		}
	}
}

// methodKey returns the name and signature of a method, equal for identical ones.
func methodKey(m *types.Func) string {
	sig, ok := m.Type().(*types.Signature)
	if !ok {
		return m.Id()
	}
	var b strings.Builder
	b.WriteString(m.Id())
	qualify := func(p *types.Package) string { return p.Path() }
	for _, list := range []*types.Tuple{sig.Params(), sig.Results()} {
		b.WriteByte('(')
		for i := range list.Len() {
			b.WriteString(types.TypeString(list.At(i).Type(), qualify))
			b.WriteByte(',')
		}
		b.WriteByte(')')
	}
	return b.String()
}

// id returns the ID of the node of an object of the workspace, or "".
func (x *extractor) id(obj types.Object) string {
	if obj == nil || obj.Pkg() == nil || !obj.Pos().IsValid() {
		return ""
	}
	name := obj.Name()
	switch o := obj.(type) {
	case *types.Func:
		o = o.Origin()
		obj = o
		if sig, ok := o.Type().(*types.Signature); ok && sig.Recv() != nil {
			recv := namedType(sig.Recv().Type())
			if recv == nil {
				return ""
			}
			name = recv.Obj().Name() + "." + name
		}
	case *types.TypeName:
		if o.Parent() != o.Pkg().Scope() {
			return ""
		}
	case *types.Var:
		if o.IsField() || o.Parent() != o.Pkg().Scope() {
			return ""
		}
	case *types.Const:
		if o.Parent() != o.Pkg().Scope() {
			return ""
		}
	default:
		return ""
	}
	file := x.g.fset.File(obj.Pos())
	if file == nil {
		return ""
	}
	return "go:" + file.Name() + "#" + name
}

// namedType returns the named type that a type is or points to.
func namedType(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

// walk visits the code of one declaration.
type walk struct {
	x       *extractor
	f       *fileFacts
	info    *types.Info
	from    string
	callees map[*ast.Ident]string // with the rule
}

func (w *walk) line(n ast.Node) int32 { return int32(w.x.g.fset.Position(n.Pos()).Line) }

func (w *walk) add(to string, n ast.Node, kind Relation, c Confidence, rule string) {
	w.f.facts = append(w.f.facts, fact{w.from, to, w.line(n), kind, c, rule})
}

func (w *walk) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		if ident := calleeIdent(n.Fun); ident != nil {
			w.callees[ident] = "static call"
		}
	case *ast.SelectorExpr:
		w.selector(n)
	case *ast.Ident:
		w.ident(n)
	}
	return true
}

// calleeIdent returns the identifier that names a function or type.
func calleeIdent(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.IndexExpr:
		return calleeIdent(e.X)
	case *ast.IndexListExpr:
		return calleeIdent(e.X)
	}
	return nil
}

func (w *walk) selector(n *ast.SelectorExpr) {
	s := w.info.Selections[n]
	if s == nil {
		w.reflection(n)
		if _, called := w.callees[n.Sel]; called && w.info.Uses[n.Sel] == nil && !w.isPackage(n.X) {
			w.add(unresolved("go", n.Sel.Name), n.Sel, Calls, Low, "name only")
		}
		return
	}
	if _, called := w.callees[n.Sel]; called && s.Kind() == types.MethodVal {
		if w.callees[n.Sel] = "method call"; types.IsInterface(s.Recv()) {
			w.callees[n.Sel] = "interface call"
		}
	}
	if s.Kind() == types.FieldVal {
		if named := namedType(s.Recv()); named != nil {
			if id := w.x.id(named.Origin().Obj()); id != "" {
				w.add(id, n, Refers, High, "field")
			}
		}
	}
}

func (w *walk) isPackage(e ast.Expr) bool {
	ident, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	_, ok = w.info.Uses[ident].(*types.PkgName)
	return ok
}

// reflection warns of calls whose target only shows when the program runs.
func (w *walk) reflection(n *ast.SelectorExpr) {
	if pkg, ok := n.X.(*ast.Ident); ok {
		if p, ok := w.info.Uses[pkg].(*types.PkgName); ok && p.Imported().Path() == "plugin" && n.Sel.Name == "Open" {
			w.f.warn("unsafe", int(w.line(n)), "%s loads code with plugin.Open", nameOf(w.from))
			return
		}
	}
	if n.Sel.Name == "MethodByName" || n.Sel.Name == "CallSlice" {
		w.f.warn("unsafe", int(w.line(n)), "%s calls by reflection (%s)", nameOf(w.from), n.Sel.Name)
	}
}

func nameOf(id string) string {
	_, name, ok := strings.Cut(id, "#")
	if !ok {
		_, name, _ = strings.Cut(id, ":")
	}
	return path.Clean(name)
}

func (w *walk) ident(n *ast.Ident) {
	obj := w.info.Uses[n]
	if obj == nil {
		return
	}
	id := w.x.id(obj)
	if id == "" {
		return
	}
	if _, ok := obj.(*types.Func); ok {
		if rule, called := w.callees[n]; called {
			w.add(id, n, Calls, High, rule)
			return
		}
		w.add(id, n, Refers, High, "function value")
		return
	}
	w.add(id, n, Refers, High, "use")
}

// methodSet is the rule by which implementations are found.
const methodSet = "method set"

// implementations states which types implement which interfaces.
func implementations(files map[string]*fileFacts) []fact {
	var interfaces, classes []goType
	byKey := map[string][]int{} // indexes in classes
	for _, f := range files {
		if f.golang == nil {
			continue
		}
		for _, t := range f.golang.Methods {
			if t.Interface {
				interfaces = append(interfaces, t)
				continue
			}
			for _, m := range t.Methods {
				byKey[m.Key] = append(byKey[m.Key], len(classes))
			}
			classes = append(classes, t)
		}
	}
	var facts []fact
	for _, it := range interfaces {
		rarest := slices.MinFunc(it.Methods, func(a, b goMethod) int { return cmp.Compare(len(byKey[a.Key]), len(byKey[b.Key])) })
		var found []goType
		for _, i := range byKey[rarest.Key] {
			if covers(classes[i].Methods, it.Methods) {
				found = append(found, classes[i])
			}
		}
		confidence := Low
		if len(found) == 1 {
			confidence = Medium
		}
		for _, c := range found {
			facts = append(facts, fact{it.ID, c.ID, 0, Implement, High, methodSet})
			for _, m := range it.Methods {
				if !strings.HasPrefix(m.Target, it.ID+".") {
					continue // of an interface within, which has its own implementations
				}
				i, _ := slices.BinarySearchFunc(c.Methods, m.Key, func(m goMethod, key string) int { return cmp.Compare(m.Key, key) })
				facts = append(facts, fact{m.Target, c.Methods[i].Target, 0, Implement, confidence, methodSet})
			}
		}
	}
	return facts
}

// covers reports whether a method set contains another; both are sorted.
func covers(have, want []goMethod) bool {
	i := 0
	for _, m := range want {
		for i < len(have) && have[i].Key < m.Key {
			i++
		}
		if i == len(have) || have[i].Key != m.Key {
			return false
		}
	}
	return true
}
