package graph

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
)

// bodies checks those of some files that are out of date against what is known of
// their package, whose declarations did not change. That takes the time of these files,
// not of the package. If they were checked already it returns what is known.
func (g *golang) bodies(u *goUnit, info *types.Info, known *types.Package, names []string, own *types.Package) *types.Info {
	if names = u.dirty(names); info != nil || known == nil || len(names) == 0 {
		return info
	}
	pkg := types.NewPackage(known.Path(), known.Name())
	for _, name := range known.Scope().Names() {
		pkg.Scope().Insert(known.Scope().Lookup(name))
	}
	b := blanks{known: known, in: pkg}
	var files []*ast.File
	for _, tree := range g.trees(u, names) {
		files = append(files, b.file(tree))
	}
	_, info = g.checkIn(pkg, u, files, true, own)
	return info
}

// blanks turns declarations into such of nothing, so that they can be checked beside
// the real ones. What is within them stays the same.
type blanks struct{ known, in *types.Package }

func (b *blanks) file(f *ast.File) *ast.File {
	c := *f
	c.Decls = slices.Clone(f.Decls)
	for i, d := range c.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			c.Decls[i] = b.function(d)
		case *ast.GenDecl:
			group := *d
			group.Specs = slices.Clone(d.Specs)
			for j, spec := range group.Specs {
				group.Specs[j] = blankSpec(spec)
			}
			c.Decls[i] = &group
		}
	}
	return &c
}

func blankSpec(spec ast.Spec) ast.Spec {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		c := *s
		c.Name = blank(s.Name)
		return &c
	case *ast.ValueSpec:
		c := *s
		c.Names = make([]*ast.Ident, len(s.Names))
		for i, name := range s.Names {
			c.Names[i] = blank(name)
		}
		return &c
	}
	return spec
}

func blank(at ast.Node) *ast.Ident { return &ast.Ident{NamePos: at.Pos(), Name: "_"} }

// function makes the receiver of a method its first parameter.
func (b *blanks) function(d *ast.FuncDecl) *ast.FuncDecl {
	c := *d
	if c.Name = blank(d.Name); d.Recv == nil {
		return &c
	}
	t := *d.Type
	t.Params = &ast.FieldList{Opening: d.Type.Params.Opening, Closing: d.Type.Params.Closing}
	for _, field := range slices.Concat(d.Recv.List, d.Type.Params.List) {
		named := *field
		if len(field.Names) == 0 { // all must have names, or none
			named.Names = []*ast.Ident{blank(field)}
		}
		t.Params.List = append(t.Params.List, &named)
	}
	if len(d.Recv.List) > 0 {
		t.Params.List[0].Type, t.TypeParams = b.receiver(t.Params.List[0].Type)
	}
	c.Recv, c.Type = nil, &t
	return &c
}

// receiver returns the type of a receiver as that of a parameter, with the type
// parameters that it declares.
func (b *blanks) receiver(t ast.Expr) (ast.Expr, *ast.FieldList) {
	switch t := t.(type) {
	case *ast.ParenExpr:
		return b.receiver(t.X)
	case *ast.StarExpr:
		c := *t
		var params *ast.FieldList
		c.X, params = b.receiver(t.X)
		return &c, params
	case *ast.IndexExpr:
		c := *t
		indices, params := b.parameters(t.X, []ast.Expr{t.Index})
		c.Index = indices[0]
		return &c, params
	case *ast.IndexListExpr:
		c := *t
		var params *ast.FieldList
		c.Indices, params = b.parameters(t.X, t.Indices)
		return &c, params
	}
	return t, nil
}

// parameters declares the type parameters of a receiver with the constraints that
// they have in the declaration of its type.
func (b *blanks) parameters(base ast.Expr, names []ast.Expr) (indices []ast.Expr, params *ast.FieldList) {
	params = &ast.FieldList{Opening: base.Pos(), Closing: base.End()}
	for i, e := range names {
		name := fmt.Sprintf("parameter %d", i) // none that source text can have
		if ident, ok := e.(*ast.Ident); ok && ident.Name != "_" {
			name = ident.Name
		}
		constraint := "any"
		if id, ok := base.(*ast.Ident); ok {
			if named := namedObject(b.known.Scope().Lookup(id.Name)); named != nil && i < named.TypeParams().Len() {
				constraint = fmt.Sprintf("constraint %d of %s", i, id.Name)
				b.in.Scope().Insert(constraintOf(constraint, b.in, named.TypeParams().At(i)))
			}
		}
		indices = append(indices, &ast.Ident{NamePos: e.Pos(), Name: name})
		params.List = append(params.List, &ast.Field{
			Names: []*ast.Ident{{NamePos: e.Pos(), Name: name}}, Type: &ast.Ident{NamePos: e.Pos(), Name: constraint},
		})
	}
	return indices, params
}

func namedObject(obj types.Object) *types.Named {
	if obj == nil {
		return nil
	}
	return namedType(obj.Type())
}

// constraintOf names the constraint of a type parameter.
func constraintOf(name string, pkg *types.Package, p *types.TypeParam) *types.TypeName {
	obj := types.NewTypeName(0, pkg, name, nil)
	types.NewAlias(obj, p.Constraint())
	return obj
}
