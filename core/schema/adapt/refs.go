package adapt

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The limits of schemas that refer to themselves, where references are replaced
// by what they refer to.
const (
	maxUnrolled = 2    // levels of a schema in itself
	maxExpanded = 3000 // schemas in total
)

// refs resolves references within one schema.
type refs struct {
	a     *adapter
	root  *object // never changed; nil if nothing refers
	left  int     // schemas that may still be expanded
	named map[string]string
}

// keepRefs makes every reference one to a definition, and drops those to nothing.
func keepRefs(a *adapter, root *object) {
	r := newRefs(a, root)
	r.inlineRoot(root)
	todo := []*object{root}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		each(next, "", func(o *object, at string) {
			if target := r.keep(root, o, at); target != nil {
				todo = append(todo, target)
			}
		})
	}
	r.dropNames(root)
}

// inlineRefs replaces references by what they refer to. A schema that refers to
// itself is cut off at a depth.
func inlineRefs(a *adapter, root *object) {
	r := newRefs(a, root)
	r.inlineRoot(root)
	r.dropNames(root)
	root.drop("$defs", "definitions")
	r.expand(root, map[string]int{}, "")
}

func newRefs(a *adapter, root *object) *refs {
	r := &refs{a: a, left: maxExpanded, named: map[string]string{}}
	if refers(root) {
		r.root = clone(root).(*object)
	}
	return r
}

// refers reports whether there is a reference anywhere in a value.
func refers(v any) bool {
	switch v := v.(type) {
	case *object:
		if refOf(v) != "" {
			return true
		}
		return slices.ContainsFunc(v.names, func(name string) bool { return refers(v.values[name]) })
	case []any:
		return slices.ContainsFunc(v, refers)
	}
	return false
}

// dropNames drops the names to which nothing refers any more.
func (r *refs) dropNames(root *object) {
	each(root, "", func(o *object, at string) {
		if o.has("$id") || o.has("$anchor") || o.has("$dynamicAnchor") {
			o.drop("$id", "$anchor", "$dynamicAnchor")
			r.a.note("names of schemas left out", at)
		}
	})
}

// inlineRoot replaces a reference that the root is.
func (r *refs) inlineRoot(root *object) {
	for range 10 {
		ref := refOf(root)
		if ref == "" {
			return
		}
		target := r.find(ref)
		root.drop("$ref", "$dynamicRef", "$recursiveRef")
		if target == nil || target == r.root {
			r.a.note("unresolved $ref left out", "")
			return
		}
		r.a.note("$ref of the root resolved", "")
		overlay(root, target)
	}
	root.drop("$ref")
}

// overlay adds the members of a schema that another lacks.
func overlay(o, target *object) {
	for _, name := range target.names {
		if !o.has(name) {
			o.set(name, clone(target.get(name)))
		}
	}
}

// refOf returns the reference that a schema is, "" if none.
func refOf(o *object) string {
	for _, name := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if s := o.text(name); s != "" {
			return s
		}
	}
	return ""
}

// keep makes the reference of o one to a definition. It returns a definition that
// it added.
func (r *refs) keep(root, o *object, at string) (added *object) {
	ref := refOf(o)
	if ref == "" {
		return nil
	}
	if o.has("$ref") && (ref == "#" || r.isDefinition(root, ref)) {
		return nil
	}
	target := r.find(ref)
	o.drop("$ref", "$dynamicRef", "$recursiveRef")
	if target == nil {
		r.unresolved(o, ref, at)
		return nil
	}
	r.a.note("$ref rewritten", at)
	if target == r.root {
		o.set("$ref", "#")
		return nil
	}
	name, known := r.named[ref]
	defs := root.object("$defs")
	if !known {
		if defs == nil {
			defs = newObject()
			root.set("$defs", defs)
		}
		name = "ref" + strconv.Itoa(len(r.named)+1)
		for defs.has(name) {
			name += "_"
		}
		r.named[ref] = name
		added = clone(target).(*object)
		defs.set(name, added)
	}
	o.set("$ref", "#/$defs/"+name)
	return added
}

func (r *refs) isDefinition(root *object, ref string) bool {
	for _, keyword := range []string{"$defs", "definitions"} {
		name, ok := strings.CutPrefix(ref, "#/"+keyword+"/")
		if ok && !strings.ContainsAny(name, "/~%") && root.object(keyword) != nil && root.object(keyword).object(name) != nil {
			return true
		}
	}
	return false
}

func (r *refs) unresolved(o *object, ref, at string) {
	r.a.note("unresolved $ref left out", at)
	describe(o, "see "+ref)
}

// expand replaces the references in o. within counts how often each is being
// replaced around it.
func (r *refs) expand(o *object, within map[string]int, at string) {
	for range 10 {
		ref := refOf(o)
		if ref == "" {
			break
		}
		target := r.find(ref)
		o.drop("$ref", "$dynamicRef", "$recursiveRef")
		if target == nil {
			r.unresolved(o, ref, at)
			break
		}
		r.a.note("$ref resolved", at)
		if r.left--; r.left < 0 || within[ref] >= maxUnrolled {
			if t := target.get("type"); t != nil && !o.has("type") {
				o.set("type", clone(t))
			}
			r.a.note("recursion cut off", at)
			describe(o, "further levels as above")
			return
		}
		within[ref]++
		defer func() { within[ref]-- }()
		overlay(o, target)
		o.drop("$defs", "definitions", "$schema", "$id", "$anchor", "$dynamicAnchor")
	}
	for _, name := range o.names {
		switch value := o.get(name).(type) {
		case *object:
			if slices.Contains(oneSchema, name) {
				r.expand(value, within, at+mark(name))
			} else if slices.Contains(schemaMaps, name) {
				for _, key := range value.names {
					if s := value.object(key); s != nil {
						r.expand(s, within, place(at, name, key))
					}
				}
			}
		case []any:
			if slices.Contains(schemaLists, name) {
				for _, v := range value {
					if s, ok := v.(*object); ok {
						r.expand(s, within, at)
					}
				}
			}
		}
	}
}

// find returns the schema of the original that a reference means, nil if there is
// none.
func (r *refs) find(ref string) *object {
	base, fragment, _ := strings.Cut(ref, "#")
	in := r.root
	if base != "" {
		if in = r.byID(base); in == nil && fragment != "" {
			in = r.root // which has the name base, somewhere
		}
		if in == nil {
			in = r.byName(base)
		}
	}
	switch {
	case in == nil || fragment == "":
		return in
	case strings.HasPrefix(fragment, "/"):
		if s := pointer(in, fragment); s != nil {
			return s
		}
		return pointer(r.root, fragment)
	}
	var found *object
	each(r.root, "", func(o *object, _ string) {
		if found == nil && (o.text("$anchor") == fragment || o.text("$dynamicAnchor") == fragment || o.text("$id") == "#"+fragment) {
			found = o
		}
	})
	if found == nil {
		found = r.byName(fragment)
	}
	return found
}

// byID returns the schema with an ID, absolute or relative.
func (r *refs) byID(base string) (found *object) {
	each(r.root, "", func(o *object, _ string) {
		id := strings.TrimSuffix(o.text("$id"), "#")
		if found == nil && id != "" && (id == base || strings.HasSuffix(id, "/"+strings.TrimPrefix(base, "/"))) {
			found = o
		}
	})
	return found
}

// byName returns a definition by its name alone, as in "Pet" or "pet.json".
func (r *refs) byName(name string) *object {
	name = strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], ".json")
	for _, keyword := range []string{"$defs", "definitions"} {
		if defs := r.root.object(keyword); defs != nil && defs.object(name) != nil {
			return defs.object(name)
		}
	}
	return nil
}

// pointer follows a JSON pointer to a schema.
func pointer(in *object, path string) *object {
	var at any = in
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch v := at.(type) {
		case *object:
			at = v.get(part)
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	s, _ := at.(*object)
	return s
}
