package adapt

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// typeNames maps what servers write to the types of JSON Schema.
var typeNames = map[string]string{
	"string": "string", "str": "string", "text": "string", "date": "string", "datetime": "string", "file": "string", "uuid": "string", "char": "string",
	"number": "number", "float": "number", "double": "number", "decimal": "number",
	"integer": "integer", "int": "integer", "long": "integer", "int32": "integer", "int64": "integer",
	"boolean": "boolean", "bool": "boolean",
	"object": "object", "dict": "object", "map": "object",
	"array": "array", "list": "array",
	"null": "null", "none": "null",
}

// repair makes a schema valid by draft 2020-12, whatever draft or habit it was
// written in.
func repair(a *adapter, root *object) {
	repairSchema(a, root, "")
	if s := root.text("$schema"); s != "" && !strings.Contains(s, "/draft-07/") && !strings.Contains(s, "/draft/2020-12/") {
		root.drop("$schema")
	}
}

func repairSchema(a *adapter, o *object, at string) {
	fixes := []struct {
		fix    func(*object) bool
		reason string
	}{
		{repairMembers, "invalid keywords repaired"},
		{repairBounds, "exclusive bounds of draft-04 replaced"},
		{repairTypes, "types repaired"},
		{repairTuples, "tuples of draft-07 replaced"},
		{repairDependencies, "dependencies of draft-07 replaced"},
		{repairRecursion, "$recursiveRef of draft 2019-09 replaced"},
		{repairNullable, "nullable replaced"},
		{repairRequired, "required repaired"},
	}
	for _, f := range fixes {
		if f.fix(o) {
			a.note(f.reason, at)
		}
	}
	if repairChildren(o) {
		a.note("invalid schemas replaced", at)
	}
	for _, name := range o.names {
		switch value := o.get(name).(type) {
		case *object:
			if slices.Contains(oneSchema, name) {
				repairSchema(a, value, at+mark(name))
			} else if slices.Contains(schemaMaps, name) {
				for _, key := range value.names {
					if s := value.object(key); s != nil {
						repairSchema(a, s, place(at, name, key))
					}
				}
			}
		case []any:
			if slices.Contains(schemaLists, name) {
				for _, v := range value {
					repairSchema(a, v.(*object), at)
				}
			}
		}
	}
}

// asSchema returns the schema that a value stands for.
func asSchema(v any) *object {
	s := newObject()
	switch v := v.(type) {
	case *object:
		return v
	case bool:
		if !v {
			s.set("not", newObject())
		}
	case string: // {"name": "string"}
		if t := typeNames[strings.ToLower(v)]; t != "" {
			s.set("type", t)
		}
	}
	return s
}

// repairChildren replaces whatever stands for a schema by a schema. Only
// keywords about additional members keep booleans.
func repairChildren(o *object) (changed bool) {
	for _, name := range slices.Clone(o.names) {
		value := o.get(name)
		switch {
		case slices.Contains(schemaMaps, name):
			m, ok := value.(*object)
			if !ok { // [] is PHP's empty object
				m, changed = newObject(), true
				o.set(name, m)
			}
			for _, key := range slices.Clone(m.names) {
				switch v := m.get(key).(type) {
				case *object:
				case bool:
					changed = true
					if !v && name == "properties" {
						m.drop(key)
						continue
					}
					m.set(key, asSchema(v))
				default:
					m.set(key, asSchema(v))
					changed = true
				}
			}
		case slices.Contains(schemaLists, name):
			list, _ := value.([]any)
			if len(list) == 0 {
				o.drop(name)
				changed = true
			}
			for i, v := range list {
				if _, ok := v.(*object); !ok {
					list[i], changed = asSchema(v), true
				}
			}
		case slices.Contains(oneSchema, name):
			changed = repairOne(o, name) || changed
		}
	}
	return changed
}

func repairOne(o *object, name string) bool {
	switch v := o.get(name).(type) {
	case *object:
		return false
	case bool:
		if strings.HasPrefix(name, "additional") || strings.HasPrefix(name, "unevaluated") || name == "items" && !v && o.has("prefixItems") {
			return false
		}
		o.set(name, asSchema(v))
	case string:
		if strings.HasPrefix(name, "additional") && (v == "false" || v == "true") {
			o.set(name, v == "true")
			return true
		}
		o.set(name, asSchema(v))
	default:
		o.drop(name)
	}
	return true
}

// repairMembers drops keywords whose values have the wrong type.
func repairMembers(o *object) (changed bool) {
	for _, name := range slices.Clone(o.names) {
		if !validMember(name, o.get(name)) {
			o.drop(name)
			changed = true
		}
	}
	if list := o.list("enum"); list != nil {
		var distinct []any
		seen := make(map[string]bool, len(list))
		for _, v := range list {
			if key := string(encode(v)); !seen[key] {
				seen[key] = true
				distinct = append(distinct, v)
			}
		}
		if len(distinct) < len(list) {
			o.set("enum", distinct)
			changed = true
		}
	}
	return changed
}

func validMember(name string, value any) bool {
	isText := func() bool { _, ok := value.(string); return ok }
	switch name {
	case "description", "title", "format", "pattern", "$ref", "$schema", "$anchor", "$comment", "contentEncoding", "contentMediaType", "$dynamicRef", "$dynamicAnchor":
		return isText()
	case "$id":
		return false // nothing refers to the schema of a tool
	case "id":
		return !isText() // of draft-04
	case "enum", "examples":
		list, ok := value.([]any)
		return ok && (len(list) > 0 || name == "examples")
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		n, ok := number(value)
		return ok && n.IsInt() && n.Sign() >= 0
	case "minimum", "maximum":
		_, ok := number(value)
		return ok
	case "multipleOf":
		n, ok := number(value)
		return ok && n.Sign() > 0
	case "exclusiveMinimum", "exclusiveMaximum":
		_, isBool := value.(bool) // of draft-04
		_, ok := number(value)
		return ok || isBool
	case "uniqueItems", "readOnly", "writeOnly", "deprecated", "nullable":
		_, ok := value.(bool)
		return ok
	case "dependentRequired":
		_, ok := value.(*object)
		return ok
	}
	return true
}

// number returns the value of a number that is not absurdly long.
func number(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 40 {
		return nil, false
	}
	if _, exponent, found := strings.Cut(strings.ToLower(string(n)), "e"); found && len(exponent) > 4 {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

func repairBounds(o *object) (changed bool) {
	for exclusive, inclusive := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		on, isBool := o.get(exclusive).(bool)
		if !isBool {
			continue
		}
		changed = true
		bound := o.get(inclusive)
		o.drop(exclusive)
		if on && bound != nil {
			o.rename(inclusive, exclusive)
		}
	}
	return changed
}

func repairTypes(o *object) bool {
	before := encode(o.get("type"))
	switch t := o.get("type").(type) {
	case string:
		if name := typeNames[strings.ToLower(t)]; name != "" {
			o.set("type", name)
		} else {
			o.drop("type")
		}
	case []any:
		var names, schemas []any
		for _, v := range t {
			if s, ok := v.(*object); ok {
				schemas = append(schemas, s)
			}
			text, _ := v.(string)
			if name := typeNames[strings.ToLower(text)]; name != "" && !slices.Contains(names, any(name)) {
				names = append(names, name)
			}
		}
		switch {
		case len(schemas) > 0 && !o.has("anyOf"): // of draft-03
			for _, n := range names {
				schemas = append(schemas, asSchema(n))
			}
			o.rename("type", "anyOf")
			o.set("anyOf", schemas)
			return true
		case len(names) == 0:
			o.drop("type")
		case len(names) == 1:
			o.set("type", names[0])
		default:
			o.set("type", names)
		}
	default:
		o.drop("type")
	}
	return o.has("type") && string(before) != string(encode(o.get("type"))) || !o.has("type") && string(before) != "null"
}

func repairTuples(o *object) bool {
	list, ok := o.get("items").([]any)
	if !ok {
		return false
	}
	o.drop("items")
	if len(list) > 0 && !o.has("prefixItems") {
		o.set("prefixItems", list)
	}
	if rest := o.get("additionalItems"); rest != nil {
		o.drop("additionalItems")
		o.set("items", rest)
	}
	return true
}

func repairDependencies(o *object) bool {
	d := o.object("dependencies")
	if !o.has("dependencies") {
		return false
	}
	o.drop("dependencies")
	if d == nil {
		return true
	}
	required, schemas := newObject(), newObject()
	for _, name := range d.names {
		switch v := d.get(name).(type) {
		case []any:
			required.set(name, v)
		case *object:
			schemas.set(name, v)
		}
	}
	if len(required.names) > 0 {
		o.set("dependentRequired", required)
	}
	if len(schemas.names) > 0 {
		o.set("dependentSchemas", schemas)
	}
	return true
}

// repairRecursion replaces the references of draft 2019-09 to the root.
func repairRecursion(o *object) bool {
	if !o.has("$recursiveRef") && !o.has("$recursiveAnchor") {
		return false
	}
	o.drop("$recursiveAnchor")
	if o.has("$ref") {
		o.drop("$recursiveRef")
	}
	o.rename("$recursiveRef", "$ref")
	return true
}

// repairNullable replaces nullable of OpenAPI.
func repairNullable(o *object) bool {
	if !o.has("nullable") {
		return false
	}
	on := o.get("nullable") == true
	o.drop("nullable")
	if on {
		addNull(o)
	}
	return true
}

// addNull makes a schema accept null.
func addNull(o *object) {
	switch t := o.get("type").(type) {
	case string:
		if t != "null" {
			o.set("type", []any{t, "null"})
		}
	case []any:
		if !slices.Contains(t, any("null")) {
			o.set("type", append(slices.Clone(t), "null"))
		}
	default:
		for _, keyword := range []string{"anyOf", "oneOf"} {
			if list := o.list(keyword); list != nil {
				o.set(keyword, append(slices.Clone(list), asSchema("null")))
				return
			}
		}
		for _, keyword := range []string{"$ref", "allOf"} {
			if o.has(keyword) {
				one := newObject()
				one.set(keyword, o.get(keyword))
				o.drop(keyword)
				o.set("anyOf", []any{one, asSchema("null")})
				return
			}
		}
	}
	if list := o.list("enum"); list != nil && !slices.Contains(list, nil) {
		o.set("enum", append(slices.Clone(list), nil))
	}
}

// repairRequired drops what is not a list of distinct names, and lifts required
// of draft-03, which is a boolean of the property.
func repairRequired(o *object) (changed bool) {
	var names []any
	if o.has("required") {
		list, _ := o.get("required").([]any)
		for _, v := range list {
			if s, ok := v.(string); ok && !slices.Contains(names, any(s)) {
				names = append(names, s)
			}
		}
		_, isList := o.get("required").([]any)
		changed = !isList || len(names) < len(list)
	}
	if p := o.object("properties"); p != nil {
		for _, name := range p.names {
			s := p.object(name)
			if s == nil {
				continue
			}
			if on, ok := s.get("required").(bool); ok {
				s.drop("required")
				changed = true
				if on && !slices.Contains(names, any(name)) {
					names = append(names, name)
				}
			}
		}
	}
	switch {
	case !changed:
	case len(names) == 0:
		o.drop("required")
	default:
		o.set("required", names)
	}
	return changed
}
