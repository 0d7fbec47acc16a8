package graph

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// target is what a name stands for: a definition of a file, or with def -1 the
// file as a module.
type target struct {
	file *fileFacts
	def  int
}

func (t target) definition() *definition {
	if t.file == nil || t.def < 0 {
		return nil
	}
	return &t.file.outline.Defs[t.def]
}

func (t target) id() string {
	if d := t.definition(); d != nil {
		return t.file.language + ":" + t.file.path + "#" + d.Name
	}
	return t.file.language + ":" + t.file.path
}

// names are the names of one file.
type names struct {
	defs    map[string]int // by dotted name
	imports map[string]imported
	stars   []string
	vars    map[int]map[string]string // types by scope and name
}

// resolver links the names in files of one language.
type resolver struct {
	language string
	files    map[string]*fileFacts
	names    map[string]*names
	modules  map[string]string   // path by module name; "" if there are several
	methods  map[string][]target // by their last name
	globals  map[string][]target // what is visible without an import
	config   map[string][]byte   // package.json …
	headers  map[string][]string // paths by base name, made on first use
	packages map[string]string   // directories of npm packages by name, made on first use
}

// resolve renews the facts of the files in languages without types whose own text
// changed, and of all of them if names that others can see changed.
func resolve(all, changed map[string]*fileFacts, config map[string][]byte) {
	for _, language := range []string{"python", "javascript", "java", "rust", "c"} {
		dirty := map[string]*fileFacts{}
		files := map[string]*fileFacts{}
		visible := false
		for name, f := range all {
			if f.language != language || f.outline == nil {
				continue
			}
			files[name] = f
			if changed[name] != nil && !f.resolved {
				dirty[name] = f
				visible = visible || f.before == nil || f.before.visible() != f.outline.visible()
				f.before = nil
			}
		}
		for name, f := range changed {
			visible = visible || f == nil && languages[strings.ToLower(path.Ext(name))] == language
		}
		if visible {
			for name, f := range files {
				if dirty[name] == nil {
					fresh := *f
					dirty[name], all[name], files[name], changed[name] = &fresh, &fresh, &fresh, &fresh
				}
			}
		}
		if len(dirty) == 0 {
			continue
		}
		r := newResolver(language, files, config)
		for _, f := range dirty {
			r.file(f)
		}
	}
}

// visible returns what other files can depend on in resolving their names.
func (o *outline) visible() string {
	var b strings.Builder
	b.WriteString(o.Module)
	for _, d := range o.Defs {
		b.WriteString("\n" + d.Name + " " + string(d.Kind) + " " + d.Result + " " + strings.Join(d.Bases, ","))
	}
	for _, i := range o.Imports {
		b.WriteString("\n" + i.Module + " " + i.Name + " " + i.As)
	}
	for _, v := range o.Vars {
		if v.Scope < 0 || o.Defs[v.Scope].Kind == Class {
			b.WriteString("\n" + v.Name + " " + v.Type)
		}
	}
	return contentHash([]byte(b.String()))
}

func newResolver(language string, files map[string]*fileFacts, config map[string][]byte) *resolver {
	r := &resolver{
		language: language, files: files, config: config, names: map[string]*names{},
		modules: map[string]string{}, methods: map[string][]target{}, globals: map[string][]target{},
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		n := &names{defs: map[string]int{}, imports: map[string]imported{}, vars: map[int]map[string]string{}}
		for i, d := range f.outline.Defs {
			n.defs[d.Name] = i
			if dot := strings.LastIndexByte(d.Name, '.'); dot >= 0 && !d.Local && (d.Kind == Method || d.Kind == Test) {
				r.methods[d.Name[dot+1:]] = append(r.methods[d.Name[dot+1:]], target{f, i})
			}
			r.global(f, i)
		}
		for _, im := range f.outline.Imports {
			if im.Name == "*" && im.As == "" {
				n.stars = append(n.stars, im.Module)
			} else if im.As != "" {
				n.imports[im.As] = im
			}
		}
		for _, v := range f.outline.Vars {
			if n.vars[v.Scope] == nil {
				n.vars[v.Scope] = map[string]string{}
			}
			if old, twice := n.vars[v.Scope][v.Name]; twice && old != v.Type {
				v.Type = "" // it may be either
			}
			n.vars[v.Scope][v.Name] = v.Type
		}
		r.names[name] = n
		r.addModule(f)
	}
	return r
}

// global makes a definition visible to files that do not import it, where the
// language does: the functions of C that are not static, and by their package the
// classes of Java.
func (r *resolver) global(f *fileFacts, i int) {
	d := &f.outline.Defs[i]
	switch {
	case d.Local:
	case r.language == "c":
		// A name within namespaces is visible without them in many places.
		keep := 1
		if d.Kind == Method {
			keep = 2
		}
		parts := strings.Split(d.Name, ".")
		for n := min(keep, len(parts)); n <= len(parts); n++ {
			name := strings.Join(parts[len(parts)-n:], ".")
			r.globals[name] = append(r.globals[name], target{f, i})
		}
	case r.language == "java" && !strings.Contains(d.Name, "."):
		name := f.outline.Module + "." + d.Name
		r.globals[name] = append(r.globals[name], target{f, i})
	}
}

// addModule adds the names by which other files import a file.
func (r *resolver) addModule(f *fileFacts) {
	add := func(name string) {
		if old, taken := r.modules[name]; taken && old != f.path {
			r.modules[name] = ""
			return
		}
		r.modules[name] = f.path
	}
	if r.language != "python" {
		add(f.path)
		return
	}
	add(f.outline.Module)
	root := path.Dir(f.path)
	for root != "." && r.files[path.Join(root, "__init__.py")] != nil {
		root = path.Dir(root)
	}
	if short := pyModule(strings.TrimPrefix(f.path, root+"/")); root != "." && short != f.outline.Module {
		add(short)
	}
}

// file states what a file depends on.
func (r *resolver) file(f *fileFacts) {
	f.facts, f.resolved = nil, true
	f.warnings = slices.DeleteFunc(slices.Clone(f.warnings), func(w Warning) bool { return w.Code == "ambiguous" })
	own := target{f, -1}.id()
	for i, d := range f.outline.Defs {
		id := target{f, i}.id()
		f.facts = append(f.facts, fact{own, id, int32(d.Line), Contains, High, "definition"})
		if d.Kind == Test {
			f.facts = append(f.facts, fact{id, own, int32(d.Line), Inits, High, "file of the test"})
		}
		if dot := strings.LastIndexByte(d.Name, '.'); dot > 0 {
			if outer, ok := r.names[f.path].defs[d.Name[:dot]]; ok {
				f.facts = append(f.facts, fact{target{f, outer}.id(), id, int32(d.Line), Contains, High, "definition"})
				if d.Local {
					f.facts = append(f.facts, fact{target{f, outer}.id(), id, int32(d.Line), Refers, High, "inner function"})
				}
			}
		}
		for _, base := range d.Bases {
			if t, c, rule := r.resolve(f, r.outer(f, i), base); t.file != nil && t.def >= 0 {
				f.facts = append(f.facts, fact{id, t.id(), int32(d.Line), Inherits, c, rule})
				r.overrides(f, i, t, c)
			}
		}
	}
	for _, im := range f.outline.Imports {
		if name := r.module(f, im); name != "" && name != f.path {
			to := target{r.files[name], -1}.id()
			f.facts = append(f.facts, fact{own, to, int32(im.Line), Imports, High, "import"})
			if !im.Type && r.language != "java" && r.language != "c" && r.language != "rust" {
				f.facts = append(f.facts, fact{own, to, int32(im.Line), Inits, High, "import"})
			}
		}
	}
	r.calls(f)
}

// calls states what the calls and values in a file name.
func (r *resolver) calls(f *fileFacts) {
	ambiguous := 0
	for _, c := range f.outline.Calls {
		t, confidence, rule := r.resolve(f, c.Scope, c.Name)
		if rule == "ambiguous" {
			ambiguous++
		}
		if t.file == nil || t.def < 0 {
			continue
		}
		from := target{f, c.Scope}
		kind := Calls
		if c.Value {
			if kind = Refers; confidence != High {
				continue
			}
		}
		if d := t.definition(); d.Kind == Class || d.Kind == Interface || d.Kind == Variable {
			kind = Refers
			if !c.Value {
				r.constructor(f, c, t, confidence)
			}
		}
		f.facts = append(f.facts, fact{from.id(), t.id(), int32(c.Line), kind, confidence, rule})
	}
	if ambiguous > 0 {
		f.warn("ambiguous", 0, "%d calls by names that several definitions have", ambiguous)
	}
}

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

// overrides states which methods of a class stand in for those of its base.
func (r *resolver) overrides(f *fileFacts, class int, base target, c Confidence) {
	prefix := f.outline.Defs[class].Name + "."
	for i, d := range f.outline.Defs {
		name, ok := strings.CutPrefix(d.Name, prefix)
		if !ok || strings.Contains(name, ".") {
			continue
		}
		if m := r.member(base, name, 0); m.file != nil {
			f.facts = append(f.facts, fact{m.id(), target{f, i}.id(), int32(d.Line), Implement, Low, "override"})
		}
	}
}

// constructors are the methods that creating an object calls.
var constructors = map[string]string{"python": "__init__", "javascript": "constructor"}

func (r *resolver) constructor(f *fileFacts, c call, class target, confidence Confidence) {
	name := constructors[r.language]
	if r.language == "java" || r.language == "c" {
		full := class.definition().Name
		name = full[strings.LastIndexByte(full, '.')+1:]
	}
	if m := r.member(class, name, 0); name != "" && m.file != nil {
		f.facts = append(f.facts, fact{target{f, c.Scope}.id(), m.id(), int32(c.Line), Calls, confidence, "constructor"})
	}
}

// maxHops limits how far imports, bases and types are followed.
const maxHops = 8

// resolve returns what a dotted name stands for in a scope of a file, with the
// confidence and the rule by which it was found.
func (r *resolver) resolve(f *fileFacts, scope int, name string) (target, Confidence, string) {
	if strings.HasPrefix(name, ".") {
		return r.onlyMethod(name)
	}
	head, rest, _ := strings.Cut(name, ".")
	if head == "super" && r.language != "rust" {
		return r.inherited(r.class(f, scope), rest)
	}
	if isSelf(r.language, head) {
		class := r.class(f, scope)
		if class.file == nil {
			return target{}, "", ""
		}
		if rest == "" {
			return class, High, "own class"
		}
		if t := r.path(class, rest); t.file != nil {
			if strings.Contains(rest, ".") {
				return t, Medium, "type of a field"
			}
			return t, High, "own method"
		}
		return r.onlyMethod("." + name)
	}
	if typ, bound := r.local(f, scope, head); bound {
		if def, ok := strings.CutPrefix(typ, "def "); ok {
			return target{f, r.names[f.path].defs[def]}, High, "inner function"
		}
		if class := r.typed(f, scope, typ, 0); class.file != nil && rest != "" {
			if t := r.path(class, rest); t.file != nil {
				return t, Medium, "type of a variable"
			}
		}
		return r.onlyMethod("." + name)
	}
	if t, rule := r.visible(f, scope, head); t.file != nil {
		if rest == "" {
			return t, High, rule
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
	if _, foreign := r.names[f.path].imports[head]; foreign || rest == "" {
		return target{}, "", "" // of another package, or built in
	}
	return r.onlyMethod("." + name)
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
	encode decode apply call bind on emit once run stop send name value type is_empty to_string as_str collect push_str`)

// class returns the class that a scope is in.
func (r *resolver) class(f *fileFacts, scope int) target {
	for scope >= 0 {
		if k := f.outline.Defs[scope].Kind; k == Class || k == Interface {
			return target{f, scope}
		}
		next := r.outer(f, scope)
		if name := f.outline.Defs[scope].Name; next < 0 && strings.Contains(name, ".") { // defined apart from its class
			t, _ := r.visible(f, -1, name[:strings.LastIndexByte(name, '.')])
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
	if r.language == "java" || r.language == "c" {
		for s := scope; s >= 0; s = r.outer(f, s) {
			if t := r.member(target{f, s}, name, 0); t.file != nil {
				return t, "own class"
			}
		}
		if class := r.class(f, scope); class.file != nil {
			if t := r.member(class, name, 0); t.file != nil {
				return t, "own class"
			}
		}
	}
	if r.language == "rust" {
		for s := scope; s >= 0; s = r.outer(f, s) {
			if t := r.member(target{f, s}, name, 0); t.file != nil && f.outline.Defs[s].Kind == Package {
				return t, "same module"
			}
		}
	}
	if t := r.inFile(f, name, 0); t.file != nil {
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

// inFile returns what a name stands for at the top of a file.
func (r *resolver) inFile(f *fileFacts, name string, hops int) target {
	n := r.names[f.path]
	if i, ok := n.defs[name]; ok {
		return target{f, i}
	}
	if hops > maxHops { // imports in a circle
		return target{}
	}
	if im, ok := n.imports[name]; ok {
		return r.imported(f, im, hops+1)
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
	if r.language == "c" || r.language == "rust" { // methods may be defined elsewhere
		if found := only(r.globals[d.Name+"."+name]); found.file != nil {
			return found
		}
	}
	if typ := n.vars[t.def][name]; typ != "" {
		if class := r.typed(t.file, -1, typ, hops+1); class.file != nil {
			return class
		}
	}
	for _, base := range d.Bases {
		if b, _ := r.visible(t.file, r.outer(t.file, t.def), headOf(base)); b.file != nil && b != t {
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
	name, called := strings.CutSuffix(typ, "()")
	head, rest, _ := strings.Cut(name, ".")
	var t target
	if isSelf(r.language, head) {
		t = r.class(f, scope)
	} else if _, bound := r.local(f, scope, head); !bound {
		t, _ = r.visible(f, scope, head)
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

// module returns the path of the file that an import names, or "".
func (r *resolver) module(f *fileFacts, im imported) string {
	switch r.language {
	case "python":
		return r.pyImport(f, im)
	case "javascript":
		return r.jsImport(f, im.Module)
	case "c":
		return r.include(f, im.Module)
	default:
		if t := r.imported(f, im, 0); t.file != nil {
			return t.file.path
		}
		return ""
	}
}

// pyImport resolves the name of a Python module, relative if it begins with dots.
func (r *resolver) pyImport(f *fileFacts, im imported) string {
	name := strings.TrimLeft(im.Module, ".")
	if dots := len(im.Module) - len(name); dots > 0 {
		dir := path.Dir(f.path)
		for range dots - 1 {
			dir = path.Dir(dir)
		}
		base := path.Join(dir, strings.ReplaceAll(name, ".", "/"))
		for _, candidate := range []string{base + ".py", base + "/__init__.py", base + ".pyi"} {
			if r.files[candidate] != nil {
				return candidate
			}
		}
		return ""
	}
	return r.modules[name]
}

// include finds the file of an #include: beside the file, or the only one whose
// path ends so.
func (r *resolver) include(f *fileFacts, name string) string {
	if beside := path.Join(path.Dir(f.path), name); r.files[beside] != nil {
		return beside
	}
	if r.headers == nil {
		r.headers = map[string][]string{}
		for p := range r.files {
			r.headers[path.Base(p)] = append(r.headers[path.Base(p)], p)
		}
	}
	found := ""
	for _, p := range r.headers[path.Base(name)] {
		if p == name || strings.HasSuffix(p, "/"+name) {
			if found != "" {
				return ""
			}
			found = p
		}
	}
	return found
}
