package graph

import (
	"maps"
	"slices"
	"strings"
)

// rustImpls finds the methods that are defined in another file than their type.
func (r *resolver) rustImpls() {
	impls := map[string][]target{}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		f := r.files[name]
		for i, d := range f.outline.Defs {
			if d.Kind != Method || r.outer(f, i) >= 0 {
				continue
			}
			if class := r.class(f, i); class.definition() != nil {
				id := class.id() + d.Name[strings.LastIndexByte(d.Name, '.'):]
				impls[id] = append(impls[id], target{f, i})
			}
		}
	}
	r.impls = impls
}

// rustApart returns the type of an impl that is in another file, by the name in the impl.
func (r *resolver) rustApart(f *fileFacts, name string) target {
	for { // the modules within the file around the impl
		head, rest, more := strings.Cut(name, ".")
		i, ok := r.names[f.path].defs[head]
		if !more || !ok || f.outline.Defs[i].Kind != Package {
			break
		}
		name = rest
	}
	head, rest, _ := strings.Cut(name, ".")
	t, _ := r.visible(f, -1, head)
	return r.path(t, rest)
}

// rustName returns what a name of Rust stands for where nothing in the file is called
// like its head: a path from a module, or a chain of calls.
func (r *resolver) rustName(f *fileFacts, scope int, name string) (target, Confidence, string) {
	head, rest, _ := strings.Cut(name, ".")
	if rest == "" {
		return target{}, "", ""
	}
	if head != "super" {
		return r.rustPath(f, "", name, 0), High, "path"
	}
	var inner []string
	for s := scope; s >= 0; s = r.outer(f, s) {
		if f.outline.Defs[s].Kind == Package {
			inner = strings.Split(f.outline.Defs[s].Name, ".")
			break
		}
	}
	for name = "super." + rest; len(inner) > 0 && headOf(name) == "super"; inner = inner[:len(inner)-1] {
		name = strings.TrimPrefix(name, "super.")
	}
	if headOf(name) == "super" {
		return r.rustPath(f, "", name, 0), High, "path"
	}
	return r.path(target{f, -1}, join(strings.Join(inner, "."), name)), High, "path"
}

// rustChain returns the method at the end of a chain of calls: f().a.run.
func (r *resolver) rustChain(f *fileFacts, scope int, name string) (target, Confidence, string) {
	end := strings.LastIndex(name, "().")
	if class := r.rustResult(f, scope, name[:end+2], 0); class.file != nil {
		if t := r.path(class, name[end+3:]); t.file != nil {
			return t, Medium, "type of a result"
		}
	}
	return r.onlyMethod("." + name)
}

// rustResult returns the type of what a chain of calls ends with.
func (r *resolver) rustResult(f *fileFacts, scope int, chain string, hops int) target {
	if r.depth > maxHops || hops > maxHops { // let x = x()
		return target{}
	}
	r.depth++
	defer func() { r.depth-- }()
	callee, ok := strings.CutSuffix(chain, "()")
	if !ok { // fields at the end
		end := strings.LastIndex(chain, "().")
		return r.path(r.rustResult(f, scope, chain[:end+2], hops+1), chain[end+3:])
	}
	var t target
	if end := strings.LastIndex(callee, "()."); end >= 0 {
		t = r.path(r.rustResult(f, scope, callee[:end+2], hops+1), callee[end+3:])
	} else if found, confidence, _ := r.resolve(f, scope, callee); confidence != Low {
		t = found
	}
	d := t.definition()
	switch {
	case d == nil:
		return target{}
	case d.Kind == Class:
		return t
	}
	return r.typed(t.file, t.def, d.Result, hops+1)
}

// rustField returns a method of a field whose type is a type parameter: its trait's.
func (r *resolver) rustField(f *fileFacts, scope int, class target, name string) target {
	field, method, _ := strings.Cut(name, ".")
	if class.definition() == nil || method == "" {
		return target{}
	}
	typ := r.names[class.file.path].vars[class.def][field]
	if bound, ok := r.local(f, scope, typ); typ == "" || !ok || bound == "" {
		return target{}
	}
	return r.path(r.typed(f, scope, typ, 0), method)
}
