package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns the JSON Schema (draft 2020-12) of a settings file, indented.
func Schema() ([]byte, error) {
	s := groupSchema(reflect.TypeFor[Settings](), "")
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "Settings of agent"
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("schema of the settings: %w", err)
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(json.RawMessage(data)); err != nil {
		return nil, fmt.Errorf("schema of the settings: %w", err)
	}
	return []byte(out.String()), nil
}

// groupSchema is the schema of an object of settings.
func groupSchema(t reflect.Type, prefix string) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("json") == "-" {
			if f.Type.Kind() == reflect.Map { // the named providers
				s.AdditionalProperties = groupSchema(f.Type.Elem().Elem(), prefix+"NAME.")
			}
			continue // others are not settings
		}
		name := jsonName(f)
		var child *jsonschema.Schema
		if f.Type.Kind() == reflect.Struct && f.Type != secretType {
			child = groupSchema(f.Type, prefix+name+".")
		} else {
			child = field{key: prefix + name, typ: f.Type, tag: f.Tag}.schema()
		}
		child.Description = f.Tag.Get("doc")
		s.Properties[name] = child
		s.PropertyOrder = append(s.PropertyOrder, name)
	}
	return s
}

func (f field) schema() *jsonschema.Schema {
	s := &jsonschema.Schema{}
	kind := f.typ.Kind()
	if kind == reflect.Pointer {
		kind = f.typ.Elem().Kind()
	}
	switch kind {
	case reflect.Int:
		s.Type = "integer"
	case reflect.Float64:
		s.Type = "number"
	case reflect.Bool:
		s.Type = "boolean"
	case reflect.Slice:
		s.Type = "array"
		s.Items = &jsonschema.Schema{Type: "string", MinLength: jsonschema.Ptr(1)}
		if f.typ.Elem().Kind() == reflect.Struct {
			s.Items = groupSchema(f.typ.Elem(), f.key+".")
		}
	case reflect.Map:
		s.Type = "object"
		s.AdditionalProperties = &jsonschema.Schema{} // checked elsewhere
		if f.typ.Elem().Kind() == reflect.Struct {
			s.AdditionalProperties = groupSchema(f.typ.Elem(), f.key+".")
		}
	default:
		s.Type = "string"
	}
	if f.typ.Kind() == reflect.Pointer {
		s.Type, s.Types = "", []string{s.Type, "null"}
	}
	if text := f.tag.Get("default"); text != "" {
		s.Default = json.RawMessage(text)
	}
	for _, v := range f.enum() {
		s.Enum = append(s.Enum, v)
	}
	if len(s.Enum) > 0 && s.Default == nil {
		s.Enum = append(s.Enum, "")
	}
	if n, ok := f.bound("min"); ok {
		s.Minimum = &n
	}
	if n, ok := f.bound("max"); ok {
		s.Maximum = &n
	}
	if f.tag.Get("format") == "url" {
		s.Format = "uri"
	}
	return s
}
