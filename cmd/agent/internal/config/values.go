package config

import (
	"reflect"
	"slices"
)

// Value is a key with its effective value.
type Value struct {
	Key    string // dotted
	Value  any    // of the key's type; nil if it is not set and has no default. Secrets are redacted, also those of MCP servers
	Source Source
}

// Keys returns all dotted keys in the order of the documentation.
func Keys() []string {
	var keys []string
	for _, f := range fields() {
		keys = append(keys, f.key)
	}
	return keys
}

// Values returns all keys, including those at their default, in the order of
// the documentation.
func (l *Loaded) Values() []Value {
	var list []Value
	for _, f := range fields() {
		list = append(list, l.value(f))
	}
	for _, f := range fieldsIn(&l.Settings)[len(list):] { // of named providers, what is set
		if l.Source(f.key).Layer > LayerDefault {
			list = append(list, l.value(f))
		}
	}
	return list
}

// Lookup returns one key. The error, an [*Error], suggests the nearest key.
func (l *Loaded) Lookup(key string) (Value, error) {
	f, err := (&loader{fields: fields()}).field(key, "config get")
	if err != nil {
		return Value{}, commandLineError(err)
	}
	if f.named != "" && l.Settings.Providers.Named[f.named] == nil {
		return Value{}, commandLineError(&Error{Key: key, Err: unknownProvider(key, f.named, l.Settings.Providers.Names())})
	}
	return l.value(f), nil
}

// Variables returns the environment variables that set a key, by precedence.
func (l *Loaded) Variables(key string) []string {
	list := fieldsIn(&l.Settings)
	if i := slices.IndexFunc(list, func(f field) bool { return f.key == key }); i >= 0 {
		return list[i].env
	}
	return nil
}

func (l *Loaded) value(f field) Value {
	v := f.value(&l.Settings)
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		if v.IsNil() {
			return Value{f.key, nil, l.Source(f.key)}
		}
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
	}
	value := v.Interface()
	if h, ok := value.(headers); ok && len(h) == 0 {
		value = nil
	}
	if servers, ok := value.(serverTable); ok {
		shown := serverTable{}
		for name, s := range servers {
			shown[name] = s.Redacted()
		}
		value = shown
	}
	return Value{f.key, value, l.Source(f.key)}
}

// Choices returns the allowed values of a key, nil if there is no list.
func Choices(key string) []string {
	if f, ok := namedField(key); ok {
		return f.enum()
	}
	for _, f := range fields() {
		if f.key == key {
			return f.enum()
		}
	}
	return nil
}
