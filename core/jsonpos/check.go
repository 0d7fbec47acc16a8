package jsonpos

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// checker compares a document with a Go type, so that decoding cannot fail.
type checker struct{ doc *Document }

func (c *checker) check(n *node, t reflect.Type, pointer string) error {
	if _, open := others(t); !open && (reflect.PointerTo(t).Implements(jsonUnmarshaler) || reflect.PointerTo(t).Implements(textUnmarshaler)) {
		return c.leaf(n, t, pointer)
	}
	if n.kind == null {
		switch t.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
			return nil
		}
		return c.mismatch(n, t, pointer)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return c.check(n, t.Elem(), pointer)
	case reflect.Struct:
		if n.kind != object {
			return c.mismatch(n, t, pointer)
		}
		return c.object(n, t, pointer)
	case reflect.Map:
		if n.kind != object {
			return c.mismatch(n, t, pointer)
		}
		for _, m := range n.members {
			if err := c.check(m.value, t.Elem(), pointer+"/"+escape(m.key)); err != nil {
				return err
			}
		}
		return c.leaf(n, t, pointer) // checks the type of the map's keys
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && n.kind == text {
			return c.leaf(n, t, pointer)
		}
		if n.kind != array {
			return c.mismatch(n, t, pointer)
		}
		for i, elem := range n.elems {
			if err := c.check(elem, t.Elem(), pointer+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
		return nil
	}
	return c.leaf(n, t, pointer)
}

func (c *checker) object(n *node, t reflect.Type, pointer string) error {
	fields := fieldsOf(t)
	for _, m := range n.members {
		f, ok := fields[m.key]
		if elem, open := others(t); !ok && open && m.value.kind == object {
			f, ok = field{typ: elem}, true
		}
		if !ok {
			return c.unknownKey(m, fields, pointer)
		}
		at := pointer + "/" + escape(m.key)
		check := c.check
		if f.asString {
			check = c.quoted
		}
		if err := check(m.value, f.typ, at); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) unknownKey(m member, fields map[string]field, pointer string) error {
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	where := "at the top level"
	if pointer != "" {
		where = "in " + pointer
	}
	hint := "no keys are valid here"
	if near := Nearest(m.key, keys); near != "" {
		hint = fmt.Sprintf("did you mean %s?", quote(near))
	} else if len(keys) > 0 {
		hint = "valid keys are " + strings.Join(keys, ", ")
	}
	return c.doc.errorAt(m.keyStart, pointer+"/"+escape(m.key),
		fmt.Sprintf("unknown key %s %s", excerptKey(m.key), where), hint)
}

// excerptKey quotes a key, shortened when it cannot be one.
func excerptKey(key string) string {
	if r := []rune(key); len(r) > 64 {
		return quote(string(r[:64]) + "…")
	}
	return quote(key)
}

// quoted checks a value inside a string.
func (c *checker) quoted(n *node, t reflect.Type, pointer string) error {
	var inner string
	if n.kind != text || json.Unmarshal(c.doc.plain[n.start:n.end], &inner) != nil ||
		json.Unmarshal([]byte(inner), reflect.New(t).Interface()) != nil {
		return c.doc.errorAt(n.start, pointer, place(pointer)+"expected "+expected(t)+" in double quotes", "")
	}
	return nil
}

// leaf decodes the value on its own.
func (c *checker) leaf(n *node, t reflect.Type, pointer string) error {
	err := json.Unmarshal(c.doc.plain[n.start:n.end], reflect.New(t).Interface())
	if err == nil {
		return nil
	}
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) && !reflect.PointerTo(t).Implements(jsonUnmarshaler) {
		return c.mismatch(n, t, pointer)
	}
	return c.doc.errorAt(n.start, pointer, place(pointer)+err.Error(), "")
}

func (c *checker) mismatch(n *node, t reflect.Type, pointer string) error {
	return c.doc.errorAt(n.start, pointer,
		fmt.Sprintf("%sexpected %s, found %s", place(pointer), expected(t), n.describe(c.doc.data)), "")
}

func place(pointer string) string {
	if pointer == "" {
		return ""
	}
	return pointer + ": "
}

// expected describes in JSON terms what a Go type accepts.
func expected(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return expected(t.Elem()) + " or null"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a non-negative whole number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	}
	return "a value of another type"
}

type field struct {
	typ      reflect.Type
	asString bool // tagged ",string"
}

// others returns the type of the values of the struct's field with the tag
// jsonpos:"others": a map of the objects that are no fields, which the struct's
// own UnmarshalJSON fills.
func others(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("jsonpos") == "others" {
			return f.Type.Elem(), true
		}
	}
	return nil, false
}

// fieldsOf lists the keys of a struct as encoding/json sees them.
func fieldsOf(t reflect.Type) map[string]field {
	fields := map[string]field{}
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			embedded = append(embedded, inner)
		case f.IsExported():
			if name == "" {
				name = f.Name
			}
			fields[name] = field{f.Type, slices.Contains(strings.Split(options, ","), "string")}
		}
	}
	for _, e := range embedded { // an outer key hides an embedded one
		for name, f := range fieldsOf(e) {
			if _, ok := fields[name]; !ok {
				fields[name] = f
			}
		}
	}
	return fields
}
