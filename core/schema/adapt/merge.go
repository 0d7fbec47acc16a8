package adapt

import (
	"slices"
	"strings"
)

// flattenRoot makes the root an object without combinators: the union of the
// arguments that its alternatives have. Which go together is said in the
// description; the server judges that.
func flattenRoot(a *adapter, root *object) {
	r := newRefs(a, root)
	for _, name := range []string{"allOf", "anyOf", "oneOf", "not", "enum", "const"} {
		if root.has(name) {
			a.note(name+" of the root flattened", "")
		}
	}
	flatten(r, root, 0)
	switch t := root.get("type").(type) {
	case string:
		if t != "object" && !root.has("properties") {
			a.note("the root is not an object: any arguments", "")
			describe(root, "type "+t)
			for _, name := range slices.Clone(root.names) {
				if name != "description" && name != "title" {
					root.drop(name)
				}
			}
		}
	case []any:
		a.note("the root is only an object", "")
	case nil:
		a.note("the root is an object", "")
	}
	root.set("type", "object")
}

// flatten removes the combinators of a schema of an object.
func flatten(r *refs, o *object, depth int) {
	const most = 20
	if depth > most {
		o.drop("allOf", "anyOf", "oneOf")
	}
	mergeAll(r, o, depth)
	for _, name := range []string{"anyOf", "oneOf"} {
		list := o.list(name)
		o.drop(name)
		branches := make([]*object, 0, len(list))
		for _, v := range list {
			b := r.plain(v)
			flatten(r, b, depth+1)
			if t := b.text("type"); t == "" || t == "object" {
				branches = append(branches, b)
			}
		}
		if text := alternatives(branches); text != "" {
			describe(o, map[string]string{"anyOf": "at least one of: ", "oneOf": "exactly one of: "}[name]+text)
		}
		mergeAny(o, branches)
	}
	for _, name := range []string{"not", "enum", "const"} {
		if o.has(name) {
			describe(o, name+" "+string(encode(o.get(name))))
			o.drop(name)
		}
	}
}

// plain returns a copy of a schema, its own references resolved.
func (r *refs) plain(v any) *object {
	o := clone(asSchema(v)).(*object)
	for range 10 {
		ref := refOf(o)
		if ref == "" {
			break
		}
		o.drop("$ref", "$dynamicRef", "$recursiveRef")
		if target := r.find(ref); target != nil && target != r.root {
			overlay(o, target)
		}
	}
	o.drop("$defs", "definitions", "$schema")
	return o
}

// mergeAll replaces allOf by its schemas, merged.
func mergeAll(r *refs, o *object, depth int) {
	const most = 20
	list := o.list("allOf")
	o.drop("allOf")
	for _, v := range list {
		b := r.plain(v)
		if depth < most {
			mergeAll(r, b, depth+1)
		}
		merge(o, b)
	}
}

// merge adds to a schema what another demands, too.
func merge(o, b *object) {
	for _, name := range b.names {
		value := b.get(name)
		switch old := o.get(name); {
		case name == "properties" && o.object(name) != nil:
			into, from := o.object(name), b.object(name)
			for _, key := range from.names {
				if into.object(key) != nil && from.object(key) != nil {
					merge(into.object(key), from.object(key))
				} else if !into.has(key) {
					into.set(key, from.get(key))
				}
			}
		case name == "required":
			for _, v := range b.list(name) {
				if !slices.Contains(o.list(name), v) {
					o.set(name, append(slices.Clone(o.list(name)), v))
				}
			}
		case name == "additionalProperties":
			// Each closed schema would forbid what the others have.
			if o.has("properties") && b.has("properties") {
				o.drop(name)
			} else if !o.has(name) {
				o.set(name, value)
			}
		case !o.has(name):
			o.set(name, value)
		case name == "description" && old != value:
			describe(o, b.text(name))
		case name == "enum":
			both := slices.DeleteFunc(slices.Clone(o.list(name)), func(v any) bool { return !contains(b.list(name), v) })
			if len(both) > 0 {
				o.set(name, both)
			}
		case name == "anyOf" || name == "oneOf" || name == "not" || name == "pattern" || name == "format":
			if !equal(old, value) {
				describe(o, name+" "+show(value))
			}
		}
	}
}

func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(o any) bool { return equal(o, v) })
}

// mergeAny adds the arguments of alternatives to a schema of an object. Required
// is what all of them require.
func mergeAny(o *object, branches []*object) {
	if len(branches) == 0 {
		return
	}
	closed := true
	required := branches[0].texts("required")
	for _, b := range branches {
		closed = closed && b.get("additionalProperties") == false
		required = slices.DeleteFunc(slices.Clone(required), func(name string) bool { return !slices.Contains(b.texts("required"), name) })
		addProperties(o, b.object("properties"))
	}
	if o.get("additionalProperties") == false && !closed || closed && !o.has("additionalProperties") {
		o.drop("additionalProperties")
		if closed {
			o.set("additionalProperties", false)
		}
	}
	for _, name := range required {
		if !contains(o.list("required"), name) {
			o.set("required", append(slices.Clone(o.list("required")), name))
		}
	}
}

// addProperties adds properties to a schema, as alternatives to those of the same
// name.
func addProperties(o, from *object) {
	if from == nil || len(from.names) == 0 {
		return
	}
	into := o.object("properties")
	if into == nil {
		into = newObject()
		o.set("properties", into)
	}
	for _, key := range from.names {
		if into.object(key) == nil || from.object(key) == nil {
			into.set(key, from.get(key))
			continue
		}
		into.set(key, either(into.object(key), from.object(key)))
	}
}

// either returns a schema of values that match one of two.
func either(p, q *object) *object {
	if equal(p, q) {
		return p
	}
	a, b := valuesOf(p), valuesOf(q)
	if a != nil && b != nil && equal(p.get("type"), q.get("type")) {
		for _, v := range b {
			if !contains(a, v) {
				a = append(slices.Clone(a), v)
			}
		}
		p = clone(p).(*object)
		p.drop("const")
		p.set("enum", a)
		return p
	}
	var list []any
	if len(p.names) == 1 && p.has("anyOf") {
		list = slices.Clone(p.list("anyOf"))
	} else {
		list = []any{p}
	}
	if !contains(list, q) {
		list = append(list, q)
	}
	union := newObject()
	union.set("anyOf", list)
	return union
}

// valuesOf returns the only values of a schema, nil if it is not limited to some.
func valuesOf(o *object) []any {
	if o.has("const") {
		return []any{o.get("const")}
	}
	return o.list("enum")
}

// alternatives describes what distinguishes alternatives: their names, constants
// and required arguments.
func alternatives(branches []*object) string {
	var texts []string
	for _, b := range branches {
		var words []string
		p := b.object("properties")
		names := b.texts("required")
		if len(names) == 0 && p != nil {
			names = p.names
		}
		for _, name := range names {
			if p != nil && p.object(name) != nil {
				if values := valuesOf(p.object(name)); len(values) == 1 {
					name += "=" + show(values[0])
				}
			}
			words = append(words, name)
		}
		if len(words) > 0 {
			texts = append(texts, strings.Join(words, ", "))
		}
	}
	if len(texts) < 2 {
		return ""
	}
	return strings.Join(texts, " | ")
}

// show returns a value for a description.
func show(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(encode(v))
}
