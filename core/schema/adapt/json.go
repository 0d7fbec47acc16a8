package adapt

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// object is a JSON object that keeps the order of its members, which matters to
// models and their caches. Other JSON values are nil, bool, json.Number, string
// and []any.
type object struct {
	names  []string
	values map[string]any
}

func newObject() *object { return &object{values: map[string]any{}} }

func (o *object) get(name string) any { return o.values[name] }

func (o *object) has(name string) bool { _, ok := o.values[name]; return ok }

func (o *object) set(name string, value any) {
	if !o.has(name) {
		o.names = append(o.names, name)
	}
	o.values[name] = value
}

func (o *object) drop(names ...string) {
	for _, name := range names {
		if o.has(name) {
			delete(o.values, name)
			o.names = slices.DeleteFunc(o.names, func(n string) bool { return n == name })
		}
	}
}

// rename changes the name of a member in its place.
func (o *object) rename(from, to string) {
	if i := slices.Index(o.names, from); i >= 0 && !o.has(to) {
		o.names[i], o.values[to] = to, o.values[from]
		delete(o.values, from)
	}
}

// text returns a member that is a string, else "".
func (o *object) text(name string) string {
	s, _ := o.get(name).(string)
	return s
}

// object returns a member that is an object, else nil.
func (o *object) object(name string) *object {
	v, _ := o.get(name).(*object)
	return v
}

// list returns a member that is an array, else nil.
func (o *object) list(name string) []any {
	v, _ := o.get(name).([]any)
	return v
}

// texts returns the strings of a member that is an array.
func (o *object) texts(name string) []string {
	var all []string
	for _, v := range o.list(name) {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// encode returns decoded JSON as text.
func encode(v any) []byte { return appendJSON(nil, v) }

func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		b = append(b, '{')
		for i, name := range v.names {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, name), ':')
			b = appendJSON(b, v.values[name])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case json.Number:
		return append(b, v...)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a string, a boolean or null
	return append(b, bytes.TrimSpace(text.Bytes())...)
}

func equal(a, b any) bool { return bytes.Equal(encode(a), encode(b)) }

// clone returns a deep copy.
func clone(v any) any {
	switch v := v.(type) {
	case *object:
		c := newObject()
		for _, name := range v.names {
			c.set(name, clone(v.values[name]))
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = clone(v[i])
		}
		return c
	}
	return v
}

// decode decodes one JSON value. Of members with the same name the last counts.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := decodeValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the JSON value")
	}
	return v, nil
}

func decodeValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := newObject()
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			o.set(name.(string), value)
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	}
	return t, nil
}
