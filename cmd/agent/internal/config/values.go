package config

import "reflect"

// Value is a key with the value that is in force.
type Value struct {
	Key    string // dotted
	Value  any    // of the key's type; nil if it is not set and has no default. A [Secret] does not show itself, nor do the secrets of servers
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

// Values returns all keys, also those at their default, in the order of the
// documentation.
func (l *Loaded) Values() []Value {
	var list []Value
	for _, f := range fields() {
		list = append(list, l.value(f))
	}
	return list
}

// Lookup returns one key. The error, an [*Error], names the nearest one.
func (l *Loaded) Lookup(key string) (Value, error) {
	f, err := (&loader{fields: fields()}).field(key, "config get")
	if err != nil {
		return Value{}, byCommand(err)
	}
	return l.value(f), nil
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
	if servers, ok := value.(ServerTable); ok {
		shown := ServerTable{}
		for name, s := range servers {
			shown[name] = s.Redacted()
		}
		value = shown
	}
	return Value{f.key, value, l.Source(f.key)}
}

// Choices returns the values that a key may have, nil where they are not
// listed.
func Choices(key string) []string {
	for _, f := range fields() {
		if f.key == key {
			return f.enum()
		}
	}
	return nil
}
