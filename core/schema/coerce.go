package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-009c0928/agent/core/schema/adapt"
)

// Coerce corrects common mistakes of models whose meaning is clear: null for an
// optional argument, "5" for a number, a single value for an array, an unknown
// argument. It returns the arguments, unchanged if nothing is to correct, and a
// note for each correction. The caller validates them.
func (s *Schema) Coerce(args json.RawMessage) (json.RawMessage, []string) {
	value, ok := decode(args)
	if !ok {
		return args, nil
	}
	c := coercer{}
	if text, isText := value.(string); isText { // an object that was encoded twice
		if inner, ok := decode([]byte(text)); ok {
			if _, isObject := inner.(map[string]any); isObject {
				value = inner
				c.note("", "decoded the arguments, which were a string")
			}
		}
	}
	value = c.value(s.resolved.Schema(), value, "")
	if len(c.notes) == 0 && !c.changed {
		return args, nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(value) != nil {
		return args, nil
	}
	return bytes.TrimSpace(out.Bytes()), c.notes
}

// decode decodes one JSON value, and keeps numbers as they are written.
func decode(raw []byte) (any, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil || dec.More() {
		return nil, false
	}
	return value, true
}

// coercer collects the notes.
type coercer struct {
	notes   []string
	changed bool // without a note: the model used the name that it was sent
}

func (c *coercer) note(at, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if at != "" {
		text = strings.TrimPrefix(at, "/") + ": " + text
	}
	c.notes = append(c.notes, text)
}

// value corrects a value for its schema.
func (c *coercer) value(s *jsonschema.Schema, v any, at string) any {
	if s == nil {
		return v
	}
	if s.Type == "" {
		return c.union(s, v, at)
	}
	if converted, ok := convert(s.Type, v); ok {
		c.note(at, "used as %s", article(s.Type))
		v = converted
	}
	switch v := v.(type) {
	case map[string]any:
		c.object(s, v, at)
	case []any:
		for i := range v {
			v[i] = c.value(s.Items, v[i], fmt.Sprintf("%s/%d", at, i))
		}
	}
	return v
}

// union corrects an object or an array for the alternative that fits, if the names
// that it was sent are all that is wrong with it.
func (c *coercer) union(s *jsonschema.Schema, v any, at string) any {
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		if one == nil || one.Type != "object" {
			continue
		}
		given, ok := v.(map[string]any)
		if !ok {
			break
		}
		try, tried := coercer{}, maps.Clone(given)
		try.object(one, tried, at)
		missing := slices.ContainsFunc(one.Required, func(name string) bool { _, ok := tried[name]; return !ok })
		if try.changed && len(try.notes) == 0 && !missing {
			c.changed = true
			return tried
		}
	}
	return v
}

// object corrects the properties of an object in place.
func (c *coercer) object(s *jsonschema.Schema, v map[string]any, at string) {
	// The only argument of a tool may have the name that it has in other programs.
	only := len(s.Properties) == 1 && len(s.Required) == 1 && len(v) == 1
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p, known := s.Properties[name]
		if !known {
			name, p, known = c.unknown(s, v, name, at, only)
		}
		switch {
		case !known && s.AdditionalProperties != nil && s.PatternProperties == nil && v[name] != nil:
			v[name] = c.value(s.AdditionalProperties, v[name], at+"/"+name)
		case !known:
		case v[name] == nil && !slices.Contains(s.Required, name) && !allowsNull(p):
			delete(v, name)
			c.note(at+"/"+name, "left out, since it is null")
		default:
			v[name] = c.value(p, v[name], at+"/"+name)
		}
	}
	for _, name := range s.Required {
		if _, given := v[name]; !given && s.Properties[name] != nil && saysNull(s.Properties[name]) {
			v[name] = nil // services that know no null leave it out
			c.changed = true
		}
	}
}

// saysNull reports whether a schema lists null among its types or alternatives.
func saysNull(s *jsonschema.Schema) bool {
	return slices.Contains(s.Types, "null") || s.Type == "" && len(s.Types) == 0 && slices.Contains(s.Enum, nil) ||
		slices.ContainsFunc(slices.Concat(s.AnyOf, s.OneOf), func(one *jsonschema.Schema) bool { return one != nil && (one.Type == "null" || saysNull(one)) })
}

// unknown renames a property that is only spelt differently, or is the only one,
// and drops one that the schema does not allow.
func (c *coercer) unknown(s *jsonschema.Schema, v map[string]any, name, at string, only bool) (string, *jsonschema.Schema, bool) {
	for _, other := range slices.Sorted(maps.Keys(s.Properties)) {
		if _, given := v[other]; !given && slices.Contains(adapt.PropertyNames(other), name) { // as it was sent
			v[other] = v[name]
			delete(v, name)
			c.changed = true
			return other, s.Properties[other], true
		}
	}
	for _, other := range slices.Sorted(maps.Keys(s.Properties)) {
		if _, given := v[other]; !given && (only && closed(s) || plainName(other) == plainName(name)) {
			v[other] = v[name]
			delete(v, name)
			c.note(at+"/"+name, "used as %s", other)
			return other, s.Properties[other], true
		}
	}
	if closed(s) {
		delete(v, name)
		c.note(at+"/"+name, "ignored, since there is no such argument")
	}
	return name, nil, false
}

// plainName is a name without what distinguishes the styles of spelling.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// closed reports whether an object may have no other properties.
func closed(s *jsonschema.Schema) bool {
	raw, err := json.Marshal(s.AdditionalProperties)
	return err == nil && s.AdditionalProperties != nil && string(raw) == "false" && len(s.PatternProperties) == 0
}

func allowsNull(s *jsonschema.Schema) bool {
	return s.Type == "null" || s.Type == "" && (len(s.Types) == 0 || slices.Contains(s.Types, "null"))
}

// convert converts a value to the type that is wanted; ok is false if it has
// that type or its meaning is not clear.
func convert(want string, v any) (converted any, ok bool) {
	text, isText := v.(string)
	trimmed := strings.TrimSpace(text)
	switch want {
	case "integer":
		if isText {
			return integer(json.Number(trimmed))
		}
		if n, isNumber := v.(json.Number); isNumber && strings.ContainsAny(n.String(), ".eE") {
			return integer(n)
		}
	case "number":
		if n, valid := decode([]byte(trimmed)); isText && valid {
			n, isNumber := n.(json.Number)
			return n, isNumber
		}
	case "boolean":
		switch strings.ToLower(trimmed) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	case "string":
		switch v := v.(type) {
		case json.Number:
			return v.String(), true
		case bool:
			return fmt.Sprint(v), true
		}
	case "array":
		if inner, valid := decode([]byte(trimmed)); isText && valid {
			if list, isList := inner.([]any); isList {
				return list, true
			}
		}
		if _, isList := v.([]any); !isList && v != nil {
			return []any{v}, true
		}
	case "object":
		if inner, valid := decode([]byte(trimmed)); isText && valid {
			object, isObject := inner.(map[string]any)
			return object, isObject
		}
	}
	return nil, false
}

// integer returns a number that has an integral value as an integer.
func integer(n json.Number) (any, bool) {
	if len(n) == 0 || len(n) > 30 || strings.ContainsAny(string(n), "_xXbBoOpP/") {
		return nil, false
	}
	if _, exponent, found := strings.Cut(strings.ToLower(string(n)), "e"); found && len(exponent) > 2 {
		return nil, false
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() {
		return nil, false
	}
	return json.Number(r.Num().String()), true
}

func article(kind string) string {
	if kind == "null" {
		return kind
	}
	if strings.ContainsAny(kind[:1], "aeio") {
		return "an " + kind
	}
	return "a " + kind
}
