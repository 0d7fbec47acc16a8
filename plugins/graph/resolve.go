package graph

import (
	"maps"
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
	twice   map[string][]imported // of Rust: what else the name of an import is bound to
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
	impls    map[string][]target // of Rust: methods apart from their type, by its id and their name
	active   map[lookup]bool     // what is being looked for
	depth    int                 // how many results of calls are being looked for
}

// resolve renews the facts of the files in languages without types whose own text
// changed, and of all of them if names that others can see changed, or modules.
func resolve(all, changed map[string]*fileFacts, w *walker) {
	for _, language := range []string{"python", "javascript", "java", "rust", "c"} {
		dirty := map[string]*fileFacts{}
		files := map[string]*fileFacts{}
		visible := false
		for name, f := range all {
			if f.language != language || f.outline == nil {
				continue
			}
			files[name] = f
			if f.resolved == "" {
				dirty[name], changed[name] = f, f
				visible = visible || f.before == nil || f.before.visible() != f.outline.visible()
				f.before = nil
			}
			visible = visible || f.resolved != "" && f.resolved != w.version
		}
		for name, f := range changed {
			visible = visible || f == nil && languageOf(name) == language
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
		r := newResolver(language, files, w.modules)
		for _, f := range dirty {
			r.file(f)
			f.resolved = w.version
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
		active: map[lookup]bool{},
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		n := &names{defs: map[string]int{}, imports: map[string]imported{}, twice: map[string][]imported{}, vars: map[int]map[string]string{}}
		for i, d := range f.outline.Defs {
			n.defs[d.Name] = i
			if dot := strings.LastIndexByte(d.Name, '.'); dot >= 0 && !d.Local && (d.Kind == Method || d.Kind == Test) {
				r.methods[d.Name[dot+1:]] = append(r.methods[d.Name[dot+1:]], target{f, i})
			}
			r.global(f, i)
		}
		for _, im := range f.outline.Imports {
			if im.Name == "*" && im.As == "" {
				if im.Module != "self" && !slices.Contains(n.stars, im.Module) { // self of Rust is this file
					n.stars = append(n.stars, im.Module)
				}
			} else if im.As != "" {
				if old, bound := n.imports[im.As]; bound && language == "rust" {
					n.twice[im.As] = append(n.twice[im.As], old)
				}
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
	if language == "rust" {
		r.rustImpls()
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

// file states what a file depends on.
func (r *resolver) file(f *fileFacts) {
	f.facts = nil
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
		names := []string{r.module(f, im)}
		if r.language == "python" && im.Name != "" { // it may be a submodule
			if t := r.imported(f, im, 0); t.file != nil && t.def < 0 {
				names = append(names, t.file.path)
			}
		}
		for _, name := range names {
			r.imports(f, im, name)
		}
	}
	r.calls(f)
}

// imports states that a file loads another.
func (r *resolver) imports(f *fileFacts, im imported, name string) {
	if name == "" || name == f.path {
		return
	}
	own, to := target{f, -1}.id(), target{r.files[name], -1}.id()
	f.facts = append(f.facts, fact{own, to, int32(im.Line), Imports, High, "import"})
	if !im.Type && (r.language == "python" || r.language == "javascript") {
		f.facts = append(f.facts, fact{own, to, int32(im.Line), Inits, High, "import"})
	}
}

// calls states what the calls and values in a file name.
func (r *resolver) calls(f *fileFacts) {
	ambiguous := 0
	for _, c := range f.outline.Calls {
		t, confidence, rule := r.resolve(f, c.Scope, c.Name)
		if rule == "ambiguous" {
			ambiguous++
		}
		from := target{f, c.Scope}
		if t.file == nil && !c.Value && r.maybe(f, c) {
			f.facts = append(f.facts, fact{from.id(), unresolved(r.language, lastPart(c.Name)), int32(c.Line), Calls, Low, "name only"})
		}
		if t.file == nil || t.def < 0 {
			continue
		}
		kind := Calls
		if c.Value {
			if kind = Refers; confidence != High || r.language == "java" && t.definition().Kind == Method {
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

// maybe reports whether a call that cannot be resolved may be one of a method here: some
// have its name, and it is not of a package from elsewhere.
func (r *resolver) maybe(f *fileFacts, c call) bool {
	head, _, dotted := strings.Cut(c.Name, ".")
	if !dotted && r.language != "java" && r.language != "c" {
		return false
	}
	_, foreign := r.names[f.path].imports[head]
	if _, bound := r.local(f, c.Scope, head); foreign && !bound {
		return false
	}
	return len(r.methods[lastPart(c.Name)]) > 0
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
