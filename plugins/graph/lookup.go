package graph

import (
	"slices"
	"strings"
)

// outer returns the scope that a definition is in.
func (r *resolver) outer(f *fileFacts, def int) int {
	name := f.outline.Defs[def].Name
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		if i, ok := r.names[f.path].defs[name[:dot]]; ok {
			return i
		}
	}
	return -1
}

// maxHops limits how far imports, bases and types are followed.
const maxHops = 8

// resolve returns what a dotted name stands for in a scope of a file, with the
// confidence and the rule by which it was found.
func (r *resolver) resolve(f *fileFacts, scope int, name string) (target, Confidence, string) {
	if strings.HasPrefix(name, ".") {
		return r.onlyMethod(name)
	}
	if r.language == "rust" && strings.Contains(name, "().") {
		return r.rustChain(f, scope, name)
	}
	head, rest, _ := strings.Cut(name, ".")
	if head == "super" && r.language != "rust" {
		return r.inherited(r.class(f, scope), rest)
	}
	if typ, bound := r.local(f, scope, head); bound {
		return r.ofLocal(f, scope, name, typ)
	}
	if isSelf(r.language, head) {
		class := r.class(f, scope)
		if r.language == "rust" {
			if t := r.rustField(f, scope, class, rest); t.file != nil {
				return t, Medium, "type of a field"
			}
		}
		return r.own(class, rest)
	}
	if t, rule := r.visible(f, scope, head); t.file != nil {
		return r.ofVisible(t, name, rule)
	}
	if r.language == "rust" {
		if t, c, rule := r.rustName(f, scope, name); t.file != nil {
			return t, c, rule
		}
	}
	if _, foreign := r.names[f.path].imports[head]; foreign || rest == "" || head[0] >= 'A' && head[0] <= 'Z' {
		return target{}, "", "" // of another package or class, or built in
	}
	return r.onlyMethod("." + name)
}

// own returns a member of the class that code is in; without a name it is the class.
func (r *resolver) own(class target, name string) (target, Confidence, string) {
	switch {
	case class.file == nil:
		return target{}, "", ""
	case name == "":
		return class, High, "own class"
	}
	if t := r.path(class, name); t.file != nil {
		if strings.Contains(name, ".") {
			return t, Medium, "type of a field"
		}
		return t, High, "own method"
	}
	return r.onlyMethod("." + name)
}

// ofLocal returns what a name stands for whose head is a local name of a type.
func (r *resolver) ofLocal(f *fileFacts, scope int, name, typ string) (target, Confidence, string) {
	head, rest, _ := strings.Cut(name, ".")
	if def, ok := strings.CutPrefix(typ, "def "); ok {
		if t := r.path(target{f, r.names[f.path].defs[def]}, rest); t.file != nil {
			return t, High, "inner function"
		}
	}
	if class := r.typed(f, scope, typ, 0); class.file != nil && rest != "" {
		if t := r.path(class, rest); t.file != nil {
			return t, Medium, "type of a variable"
		}
	}
	if t, rule := r.visible(f, scope, head); rest == "" && r.language == "java" && t.file != nil && t.def >= 0 && t.definition().Kind == Method {
		return t, High, rule // a field or variable can have the same name
	} else if d := t.definition(); rest == "" && r.language == "rust" && d != nil && d.Kind == Function {
		return t, Medium, "also a variable" // let name = name(…)
	}
	if typ != "" && (r.language == "java" || r.language == "c" || r.language == "rust") {
		return target{}, "", "" // of a type from elsewhere
	}
	return r.onlyMethod("." + name)
}

// ofVisible returns what a name stands for whose head is t, found by a rule.
func (r *resolver) ofVisible(t target, name, rule string) (target, Confidence, string) {
	_, rest, _ := strings.Cut(name, ".")
	if rest == "" {
		return r.whole(t), High, rule
	}
	if d := t.definition(); d != nil && d.Kind == Variable {
		if class := r.typed(t.file, -1, r.names[t.file.path].vars[-1][d.Name], 0); class.file != nil {
			if t := r.path(class, rest); t.file != nil {
				return t, Medium, "type of a variable"
			}
		}
		return r.onlyMethod("." + name)
	}
	if m := r.path(t, rest); m.file != nil {
		return m, High, rule
	}
	return target{}, "", ""
}

// whole returns what a module is when it is used as a value: in JavaScript what
// module.exports was set to.
func (r *resolver) whole(t target) target {
	if r.language == "javascript" && t.file != nil && t.def < 0 {
		if value := r.inFile(t.file, "default", 0); value.file != nil {
			return value
		}
	}
	return t
}

// inherited returns a member of the bases of a class; without a name it is the
// constructor.
func (r *resolver) inherited(class target, name string) (target, Confidence, string) {
	d := class.definition()
	if d == nil {
		return target{}, "", ""
	}
	for _, base := range d.Bases {
		b, _ := r.visible(class.file, r.outer(class.file, class.def), headOf(base))
		if _, rest, ok := strings.Cut(base, "."); ok {
			b = r.path(b, rest)
		}
		want := name
		if want == "" && b.file != nil && b.def >= 0 {
			if want = constructors[r.language]; want == "" {
				want = headOf(b.definition().Name)
			}
		}
		if m := r.path(b, want); m.file != nil && want != "" {
			return m, High, "base class"
		}
	}
	return target{}, "", ""
}

func isSelf(language, name string) bool {
	switch language {
	case "python":
		return name == "self" || name == "cls"
	case "rust":
		return name == "self" || name == "Self"
	}
	return name == "this"
}

// onlyMethod returns the method with the last part of a name if there is only one.
func (r *resolver) onlyMethod(name string) (target, Confidence, string) {
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch list := r.methods[last]; {
	case len(list) == 1 && !common()[last]:
		return list[0], Low, "only method of this name"
	case len(list) > 1:
		return target{}, "", "ambiguous"
	}
	return target{}, "", ""
}

// common are methods that the standard types of most languages have.
var common = words(`append add get set put pop push items keys values update copy join split strip format read write close open
	map filter reduce forEach find some every slice splice concat indexOf includes then catch toString equals hashCode size length next
	clone iter into from unwrap expect len insert remove contains clear sort count index start end replace match search test exec group
	encode decode apply call bind on emit once run stop send name value type is_empty to_string as_str collect push_str
	has delete add_all addAll removeAll retainAll containsKey containsValue entrySet keySet putAll isEmpty toArray setdefault extend
	popitem getClass getName getKey getValue charAt substring trim valueOf parseInt isAssignableFrom compareTo compare intValue longValue
	doubleValue setLength deleteCharAt hasNext getMessage getCause isInstance isFinite test accept`)

// class returns the class that a scope is in.
func (r *resolver) class(f *fileFacts, scope int) target {
	for scope >= 0 {
		if k := f.outline.Defs[scope].Kind; k == Class || k == Interface {
			return target{f, scope}
		}
		next := r.outer(f, scope)
		if next >= 0 && r.language == "javascript" && !f.outline.Defs[scope].Local && (f.outline.Defs[next].Kind == Function || f.outline.Defs[next].Kind == Variable) {
			return target{f, next} // object.method = function, Function.prototype.method = function
		}
		if name := f.outline.Defs[scope].Name; next < 0 && strings.Contains(name, ".") { // defined apart from its class
			outer := name[:strings.LastIndexByte(name, '.')]
			if r.language == "rust" {
				return r.rustApart(f, outer)
			}
			t, _ := r.visible(f, -1, outer)
			return t
		}
		scope = next
	}
	return target{}
}

// local returns the type of a local name of a scope or of one around it; a class
// is no scope for its methods.
func (r *resolver) local(f *fileFacts, scope int, name string) (typ string, bound bool) {
	n := r.names[f.path]
	for scope >= 0 {
		k := f.outline.Defs[scope].Kind
		if k != Class && k != Interface || r.language == "java" || r.language == "c" {
			if typ, ok := n.vars[scope][name]; ok {
				return typ, true
			}
		}
		scope = r.outer(f, scope)
	}
	return "", false
}

// visible returns what a name stands for outside of functions.
func (r *resolver) visible(f *fileFacts, scope int, name string) (target, string) {
	return r.visibleFrom(f, scope, name, 0)
}

// visibleFrom is visible after a number of hops: bases can be imported in a circle.
func (r *resolver) visibleFrom(f *fileFacts, scope int, name string, hops int) (target, string) {
	if r.language == "java" || r.language == "c" {
		for s := scope; s >= 0; s = r.outer(f, s) {
			if t := r.member(target{f, s}, name, hops); t.file != nil {
				return t, "own class"
			}
		}
		if class := r.class(f, scope); class.file != nil {
			if t := r.member(class, name, hops); t.file != nil {
				return t, "own class"
			}
		}
	}
	if r.language == "rust" {
		for s := scope; s >= 0; s = r.outer(f, s) {
			if t := r.member(target{f, s}, name, hops); t.file != nil && f.outline.Defs[s].Kind == Package {
				return t, "same module"
			}
		}
	}
	if t := r.inFile(f, name, hops); t.file != nil {
		if t.file == f {
			return t, "same file"
		}
		return t, "import"
	}
	switch r.language {
	case "c":
		return only(r.globals[name]), "only definition"
	case "java":
		return only(r.globals[f.outline.Module+"."+name]), "same package"
	}
	return target{}, ""
}

func only(list []target) target {
	if len(list) == 1 {
		return list[0]
	}
	return target{}
}

// lookup is a name that is looked for in a file.
type lookup struct {
	file *fileFacts
	name string
}

// inFile returns what a name stands for at the top of a file.
func (r *resolver) inFile(f *fileFacts, name string, hops int) target {
	n := r.names[f.path]
	if i, ok := n.defs[name]; ok {
		return target{f, i}
	}
	if hops > maxHops {
		return target{}
	}
	key := lookup{f, name}
	if r.active[key] { // imports in a circle
		return target{}
	}
	r.active[key] = true
	defer delete(r.active, key)
	if im, ok := n.imports[name]; ok {
		t := r.imported(f, im, hops+1)
		for _, other := range n.twice[name] { // under another cfg
			if r.imported(f, other, hops+1) != t {
				return target{}
			}
		}
		return t
	}
	var found []target
	for _, star := range n.stars {
		if t := r.imported(f, imported{Module: star, Name: name}, hops+1); t.file != nil && !slices.Contains(found, t) {
			found = append(found, t)
		}
	}
	return only(found)
}

// imported returns what an import binds.
func (r *resolver) imported(f *fileFacts, im imported, hops int) target {
	switch r.language {
	case "java":
		return r.javaClass(im)
	case "rust":
		return r.rustPath(f, im.Module, im.Name, hops)
	}
	if r.language == "python" && im.Name != "" { // a submodule, or a name in the module
		sub := imported{Module: strings.TrimSuffix(im.Module, ".") + "." + im.Name}
		if strings.Trim(im.Module, ".") == "" {
			sub.Module = im.Module + im.Name
		}
		if name := r.module(f, imported{Module: im.Module}); name != "" {
			if t := r.inFile(r.files[name], im.Name, hops); t.file != nil {
				return t
			}
		}
		if name := r.module(f, sub); name != "" {
			return target{r.files[name], -1}
		}
		return target{}
	}
	name := r.module(f, im)
	if name == "" {
		return target{}
	}
	if im.Name == "" || im.Name == "*" {
		return target{r.files[name], -1}
	}
	return r.inFile(r.files[name], im.Name, hops)
}

// path follows the parts of a dotted name from a target.
func (r *resolver) path(t target, rest string) target {
	for rest != "" && t.file != nil {
		var head string
		head, rest, _ = strings.Cut(rest, ".")
		t = r.member(t, head, 0)
		if d := t.definition(); rest != "" && d != nil && d.Kind == Variable {
			return target{}
		}
	}
	return t
}

// member returns a name of a module, or a member of a class or its bases; for a
// field with a known type it is the class of that type.
func (r *resolver) member(t target, name string, hops int) target {
	if t.file == nil || hops > maxHops {
		return target{}
	}
	d := t.definition()
	if d == nil {
		if m := r.inFile(t.file, name, hops); m.file != nil {
			return m
		}
		if value := r.whole(t); value.def >= 0 {
			return r.member(value, name, hops+1)
		}
		if r.language == "python" {
			if sub := r.modules[t.file.outline.Module+"."+name]; sub != "" {
				return target{r.files[sub], -1}
			}
		}
		return target{}
	}
	n := r.names[t.file.path]
	if i, ok := n.defs[d.Name+"."+name]; ok {
		return target{t.file, i}
	}
	switch r.language { // methods may be defined elsewhere
	case "c":
		if found := only(r.globals[d.Name+"."+name]); found.file != nil {
			return found
		}
	case "rust":
		if found := only(r.impls[t.id()+"."+name]); found.file != nil {
			return found
		}
	}
	if typ := n.vars[t.def][name]; typ != "" {
		if class := r.typed(t.file, -1, typ, hops+1); class.file != nil {
			return class
		}
	}
	for _, base := range d.Bases {
		if b, _ := r.visibleFrom(t.file, r.outer(t.file, t.def), headOf(base), hops+1); b.file != nil && b != t {
			if _, rest, ok := strings.Cut(base, "."); ok {
				b = r.path(b, rest)
			}
			if m := r.member(b, name, hops+1); m.file != nil {
				return m
			}
		}
	}
	return target{}
}

func headOf(name string) string {
	head, _, _ := strings.Cut(name, ".")
	return head
}

// typed returns the class that a type names; "f()" is what calling f returns.
func (r *resolver) typed(f *fileFacts, scope int, typ string, hops int) target {
	if typ == "" || hops > maxHops {
		return target{}
	}
	if r.language == "rust" && strings.Contains(typ, "()") {
		return r.rustResult(f, scope, typ, hops)
	}
	name, called := strings.CutSuffix(typ, "()")
	head, rest, _ := strings.Cut(name, ".")
	var t target
	if isSelf(r.language, head) {
		t = r.class(f, scope)
	} else if bound, ok := r.local(f, scope, head); !ok {
		t, _ = r.visible(f, scope, head)
	} else if def, inner := strings.CutPrefix(bound, "def "); inner && r.language == "rust" {
		t = target{f, r.names[f.path].defs[def]}
	} else if bound != head && r.language == "rust" { // a type parameter
		t = r.typed(f, scope, bound, hops+1)
	}
	if d := t.definition(); d == nil && r.language == "rust" && rest != "" {
		if t, _, _ = r.rustName(f, scope, name); t.file != nil {
			rest = ""
		}
	}
	if rest != "" {
		t = r.path(t, rest)
	}
	d := t.definition()
	switch {
	case d == nil:
		return target{}
	case d.Kind == Class || d.Kind == Interface:
		return t
	case called && d.Result != "":
		return r.typed(t.file, t.def, d.Result, hops+1)
	}
	return target{}
}
