package adapt

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// silent keywords are dropped without a word in the description.
var silent = []string{
	"$schema", "$comment", "$id", "$anchor", "$vocabulary", "$dynamicAnchor", "$defs", "definitions", "title", "readOnly", "writeOnly",
	"deprecated", "unevaluatedProperties", "unevaluatedItems", "additionalItems", "propertyOrdering", "contentSchema",
}

// keywords drops all keywords but those listed. What they demand is described.
func keywords(allowed string) step {
	keep := strings.Fields(allowed)
	return func(a *adapter, root *object) {
		each(root, "", func(o *object, at string) {
			for _, name := range slices.Clone(o.names) {
				if slices.Contains(keep, name) {
					continue
				}
				value := o.get(name)
				if name == "patternProperties" && o.get("additionalProperties") == false {
					o.drop("additionalProperties")
				}
				o.drop(name)
				a.note(name+" not supported", at)
				if !slices.Contains(silent, name) && !strings.HasPrefix(name, "x-") {
					describe(o, name+" "+show(value))
				}
			}
		})
	}
}

// formats drops all formats but those listed.
func formats(allowed string) step {
	keep := strings.Fields(allowed)
	return func(a *adapter, root *object) {
		each(root, "", func(o *object, at string) {
			if f := o.text("format"); f != "" && !slices.Contains(keep, f) {
				o.drop("format")
				a.note("format "+f+" not supported", at)
				describe(o, "format "+f)
			}
		})
	}
}

// patterns drops regular expressions that not every engine understands.
func patterns(a *adapter, root *object) { dropPatterns(a, root, portable) }

// goPatterns translates regular expressions to those of Go, or drops them.
func goPatterns(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		if p := o.text("pattern"); p != "" && !compiles(p) && unicodeEscape().MatchString(p) {
			o.set("pattern", unicodeEscape().ReplaceAllString(p, `\x{$1$2}`))
			a.note("escapes of a pattern translated", at)
		}
	})
	dropPatterns(a, root, compiles)
}

var unicodeEscape = lazy.Regexp(`\\u(?:([0-9A-Fa-f]{4})|\{([0-9A-Fa-f]{1,6})\})`)

func compiles(p string) bool {
	_, err := regexp.Compile(p)
	return err == nil
}

// unportable is what Go accepts and other engines do not, or differently: flags,
// Go's names, classes and anchors, Unicode classes.
var unportable = lazy.Regexp(`\(\?[^:]|\\[AzZQEpPCx]|\[\[:|\[:\^?[a-z]+:\]`)

func portable(p string) bool { return compiles(p) && !unportable().MatchString(p) }

func dropPatterns(a *adapter, root *object, good func(string) bool) {
	each(root, "", func(o *object, at string) {
		if p := o.text("pattern"); p != "" && !good(p) {
			o.drop("pattern")
			a.note("pattern not supported", at)
			describe(o, "pattern "+p)
		}
		by := o.object("patternProperties")
		if by == nil {
			return
		}
		for _, p := range slices.Clone(by.names) {
			if good(p) {
				continue
			}
			by.drop(p)
			a.note("pattern not supported", at)
			describe(o, "names by the pattern "+p)
			if o.get("additionalProperties") == false {
				o.drop("additionalProperties")
			}
		}
		if len(by.names) == 0 {
			o.drop("patternProperties")
		}
	})
}

// openObjects leaves out that there are no other members. It is no change worth
// reporting: the service would accept it, and calls are validated here.
func openObjects(_ *adapter, root *object) {
	each(root, "", func(o *object, _ string) {
		if o.get("additionalProperties") == false {
			o.drop("additionalProperties")
		}
	})
}

// itemsOfArrays gives every array the schema of its items.
func itemsOfArrays(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		t := o.get("type")
		list, _ := t.([]any)
		if (t == "array" || slices.Contains(list, any("array"))) && o.object("items") == nil {
			o.set("items", newObject())
			a.note("items of the array added", at)
		}
	})
}

// tuplesAsLists replaces prefixItems by items of any of their schemas.
func tuplesAsLists(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		list := o.list("prefixItems")
		if list == nil {
			return
		}
		var distinct []any
		for _, v := range list {
			if !contains(distinct, v) {
				distinct = append(distinct, v)
			}
		}
		rest, closed := o.get("items"), false
		switch rest := rest.(type) {
		case *object:
			if !contains(distinct, rest) {
				distinct = append(distinct, rest)
			}
		case bool:
			closed = !rest
		}
		union := newObject()
		union.set("anyOf", distinct)
		if len(distinct) == 1 {
			union = distinct[0].(*object)
		}
		describe(o, "in this order: "+string(encode(list)))
		o.drop("prefixItems", "items", "additionalItems")
		o.set("items", union)
		if closed && !o.has("maxItems") {
			o.set("maxItems", json.Number(strconv.Itoa(len(list))))
		}
		a.note("tuple replaced by an array", at)
	})
}

// types adds the type that other keywords imply.
func types(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		if o.has("type") || o.has("anyOf") || o.has("$ref") {
			return
		}
		for _, implied := range [][2]string{
			{"properties", "object"},
			{"required", "object"},
			{"items", "array"},
			{"prefixItems", "array"},
			{"pattern", "string"},
			{"minLength", "string"},
			{"maxLength", "string"},
			{"format", "string"},
			{"minimum", "number"},
			{"maximum", "number"},
		} {
			if o.has(implied[0]) && !o.has("type") {
				o.set("type", implied[1])
				a.note("type added", at)
			}
		}
	})
}

// anyTypes lists all types for a schema that has none.
func anyTypes(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		if o.has("type") || o.has("anyOf") || o == root {
			return
		}
		var union []any
		for _, name := range []string{"string", "number", "boolean", "object", "array"} {
			s := asSchema(name)
			if name == "array" {
				s.set("items", asSchema("string"))
			}
			union = append(union, s)
		}
		o.set("anyOf", union)
		a.note("types of any value listed", at)
	})
}

// optionalNulls lets required properties that may be null be left out instead: null
// cannot be said.
func optionalNulls(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		p := o.object("properties")
		names := o.list("required")
		if p == nil || names == nil {
			return
		}
		kept := slices.DeleteFunc(slices.Clone(names), func(v any) bool {
			s := p.object(v.(string))
			return s != nil && takesNull(s, 0)
		})
		if len(kept) == len(names) {
			return
		}
		for _, v := range names {
			if !contains(kept, v) {
				describe(p.object(v.(string)), "null if left out")
			}
		}
		if o.set("required", kept); len(kept) == 0 {
			o.drop("required")
		}
		a.note("required null made optional", at)
	})
}

// takesNull reports whether a schema has null among others.
func takesNull(s *object, depth int) bool {
	if types, ok := s.get("type").([]any); ok {
		return slices.Contains(types, any("null"))
	}
	if list := s.list("enum"); list != nil && !s.has("type") {
		return slices.Contains(list, nil)
	}
	return depth < 3 && slices.ContainsFunc(s.list("anyOf"), func(v any) bool {
		one, ok := v.(*object)
		return ok && (one.get("type") == "null" || takesNull(one, depth+1))
	})
}

// rootProperties adds the properties of a root that has none.
func rootProperties(a *adapter, root *object) {
	if root.object("properties") == nil {
		root.set("properties", newObject())
		a.note("properties of the root added", "")
	}
}

// knownRequired drops required properties that are not defined.
func knownRequired(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		names := o.list("required")
		if names == nil {
			return
		}
		p := o.object("properties")
		known := slices.DeleteFunc(slices.Clone(names), func(v any) bool { return p == nil || !p.has(v.(string)) })
		if len(known) == len(names) {
			return
		}
		a.note("undefined required properties left out", at)
		describe(o, "required "+show(names))
		o.set("required", known)
		if len(known) == 0 {
			o.drop("required")
		}
	})
}

// boundsUpTo drops repetitions that are too long for a grammar.
func boundsUpTo(n int64) step {
	return func(a *adapter, root *object) {
		each(root, "", func(o *object, at string) {
			for _, name := range []string{"minLength", "maxLength", "minItems", "maxItems"} {
				if v, ok := number(o.get(name)); ok && v.Num().IsInt64() && v.Num().Int64() <= n || !o.has(name) {
					continue
				}
				describe(o, name+" "+show(o.get(name)))
				o.drop(name)
				a.note("large "+name+" described instead", at)
			}
		})
	}
}

// depthUpTo cuts off schemas at a depth.
func depthUpTo(n int) step {
	return func(a *adapter, root *object) { cut(a, root, "", n) }
}

func cut(a *adapter, o *object, at string, left int) {
	for _, name := range slices.Clone(o.names) {
		switch value := o.get(name).(type) {
		case *object:
			if slices.Contains(oneSchema, name) {
				if left == 0 {
					o.set(name, stub(a, value, at))
				} else {
					cut(a, value, at+mark(name), left-1)
				}
			} else if slices.Contains(schemaMaps, name) {
				for _, key := range value.names {
					s := value.object(key)
					switch {
					case s == nil:
					case left == 0:
						value.set(key, stub(a, s, at))
					default:
						cut(a, s, place(at, name, key), left-1)
					}
				}
			}
		case []any:
			if slices.Contains(schemaLists, name) {
				for i, v := range value {
					if s, ok := v.(*object); ok && left == 0 {
						value[i] = stub(a, s, at)
					} else if ok {
						cut(a, s, at, left-1)
					}
				}
			}
		}
	}
}

// stub returns what stands for a schema that is too deep.
func stub(a *adapter, o *object, at string) *object {
	s := newObject()
	for _, name := range []string{"type", "description"} {
		if o.has(name) {
			s.set(name, o.get(name))
		}
	}
	if len(s.names) < len(o.names) {
		a.note("deeper levels left out", at)
	}
	return s
}

// renameProperties renames properties whose names a service rejects; see
// [PropertyNames].
func renameProperties(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		p := o.object("properties")
		if p == nil {
			return
		}
		for _, name := range slices.Clone(p.names) {
			for _, other := range PropertyNames(name) {
				if other == name || p.has(other) {
					continue
				}
				p.rename(name, other)
				if required := o.list("required"); required != nil {
					required = slices.Clone(required)
					for i, v := range required {
						if v == name {
							required[i] = other
						}
					}
					o.set("required", required)
				}
				if s := p.object(other); s != nil {
					describe(s, "named "+name)
				}
				a.note("property renamed", place(at, "properties", name))
				break
			}
		}
	})
}
