package adapt

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// constAsEnum replaces const by an enum.
func constAsEnum(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		if o.has("const") {
			a.note("const replaced by enum", at)
			value := o.get("const")
			o.rename("const", "enum")
			o.set("enum", []any{value})
		}
	})
}

// plainEnums limits enums to strings or numbers, without null. What is left out
// goes to the description.
func plainEnums(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		all := o.list("enum")
		if all == nil {
			return
		}
		kinds := map[string]bool{}
		var kept []any
		for _, v := range all {
			if v == nil {
				continue
			}
			if v != "" {
				kept = append(kept, v)
			}
			kinds[kindOf(v)] = true
		}
		if len(kept) > 0 && len(kinds) == 1 && (kinds["string"] || kinds["number"] || kinds["integer"]) {
			for kind := range kinds {
				if !o.has("type") {
					o.set("type", kind)
					a.note("type added", at)
				}
			}
			if len(kept) == len(all) {
				return
			}
			o.set("enum", kept)
		} else {
			o.drop("enum")
			describe(o, "one of "+string(encode(all)))
			for kind := range kinds {
				if len(kinds) == 1 && !o.has("type") {
					o.set("type", kind)
				}
			}
			if len(kinds) == 0 && !o.has("type") {
				o.set("type", "null")
			}
		}
		a.note("enum limited to strings or numbers", at)
	})
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if n, ok := number(v); ok && n.IsInt() {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// enumsUpTo drops enums with more values or characters, and those that would
// exceed the total.
func enumsUpTo(values, characters, total int) step {
	return func(a *adapter, root *object) {
		sum := 0
		each(root, "", func(o *object, at string) {
			list := o.list("enum")
			if len(list) <= values && sum+len(list) <= total || len(encode(list)) <= characters && sum+len(list) <= total {
				sum += len(list)
				return
			}
			o.drop("enum")
			if !o.has("type") {
				o.set("type", kindOf(list[0]))
			}
			a.note("long enum described instead", at)
			describe(o, strconv.Itoa(len(list))+" values: "+string(encode(list[:min(len(list), 20)])))
		})
	}
}

// typeLists replaces lists of types by anyOf, without null: what is optional can be
// left out.
func typeLists(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		list, ok := o.get("type").([]any)
		if !ok {
			return
		}
		a.note("list of types replaced", at)
		rest := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v == "null" })
		if len(rest) == 1 || o.has("anyOf") {
			o.set("type", rest[0])
			if len(rest) > 1 {
				o.drop("type")
			}
			return
		}
		union := make([]any, len(rest))
		for i, t := range rest {
			s := asSchema(t)
			for _, name := range map[any][]string{"array": {"items", "minItems", "maxItems"}, "object": {"properties", "required", "additionalProperties"}}[t] {
				if o.has(name) {
					s.set(name, o.get(name))
				}
			}
			union[i] = s
		}
		o.drop("items", "minItems", "maxItems", "properties", "required", "additionalProperties")
		o.rename("type", "anyOf")
		o.set("anyOf", union)
	})
}

// mergeNested replaces allOf and oneOf in the whole schema.
func mergeNested(a *adapter, root *object) {
	r := newRefs(a, root)
	each(root, "", func(o *object, at string) {
		if o.has("allOf") {
			mergeAll(r, o, 0)
			a.note("allOf merged", at)
		}
		if list := o.list("oneOf"); list != nil {
			if o.has("anyOf") {
				describe(o, "oneOf "+show(list))
				o.drop("oneOf")
			}
			o.rename("oneOf", "anyOf")
			a.note("oneOf replaced by anyOf", at)
		}
	})
}

// conditionals replaces if and dependentSchemas by the arguments that they may
// add.
func conditionals(a *adapter, root *object) {
	r := newRefs(a, root)
	each(root, "", func(o *object, at string) {
		var branches []*object
		text := ""
		for _, name := range []string{"if", "then", "else"} {
			if s := o.object(name); s != nil {
				text += name + " " + show(s) + " "
				if name != "if" {
					branches = append(branches, r.plain(s))
				}
			}
		}
		if d := o.object("dependentSchemas"); d != nil {
			text += "dependentSchemas " + show(d)
			for _, name := range d.names {
				branches = append(branches, r.plain(d.get(name)))
			}
		}
		if text == "" {
			return
		}
		o.drop("if", "then", "else", "dependentSchemas")
		describe(o, strings.TrimSpace(text))
		a.note("conditions described instead", at)
		for _, b := range branches {
			addProperties(o, b.object("properties"))
		}
	})
}

// singleUnions drops null from anyOf and merges a single schema that is left: what
// is optional can be left out.
func singleUnions(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		list := o.list("anyOf")
		rest := slices.DeleteFunc(slices.Clone(list), func(v any) bool { return v.(*object).get("type") == "null" })
		switch {
		case len(list) == 0 || len(rest) == len(list) && len(rest) > 1:
			return
		case len(rest) == 0:
			o.drop("anyOf")
			o.set("type", "null")
		case len(rest) == 1:
			o.drop("anyOf")
			merge(o, rest[0].(*object))
		default:
			o.set("anyOf", rest)
		}
		a.note("union simplified", at)
	})
}

// lonelyUnions makes anyOf the only keyword of its schema: the others go to each
// of its schemas.
func lonelyUnions(a *adapter, root *object) {
	r := newRefs(a, root)
	each(root, "", func(o *object, at string) {
		list := o.list("anyOf")
		if list == nil || len(o.names) == 1 {
			return
		}
		a.note("anyOf without other keywords", at)
		if o.has("properties") {
			flatten(r, o, 0)
			o.set("type", "object")
			return
		}
		for _, v := range list {
			b := v.(*object)
			for _, name := range o.names {
				if name != "anyOf" && name != "title" && !b.has(name) && (name != "type" || !b.has("anyOf")) {
					b.set(name, clone(o.get(name)))
				}
			}
		}
		o.drop(slices.DeleteFunc(slices.Clone(o.names), func(name string) bool { return name == "anyOf" })...)
	})
}

// numericEnums replaces enums of numbers by descriptions.
func numericEnums(a *adapter, root *object) {
	each(root, "", func(o *object, at string) {
		if list := o.list("enum"); list != nil && o.get("type") != "string" {
			o.drop("enum")
			describe(o, "one of "+show(list))
			a.note("enum of numbers described instead", at)
		}
	})
}
