package sdk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// schemaOf returns the resolved schema of a tool's arguments. If the tool has no
// schema, it infers one and stores it.
func schemaOf[In any](t *toolproto.Tool) (*jsonschema.Resolved, error) {
	s := &jsonschema.Schema{}
	if len(t.InputSchema) > 0 {
		if err := json.Unmarshal(t.InputSchema, s); err != nil {
			return nil, fmt.Errorf("invalid schema: %w", err)
		}
	} else {
		inferred, err := infer(reflect.TypeFor[In]())
		if err != nil {
			return nil, err
		}
		s = inferred
		if t.InputSchema, err = json.Marshal(s); err != nil {
			return nil, err
		}
	}
	if s.Type != "object" {
		return nil, fmt.Errorf(`the schema must have "type": "object" at its root; the arguments must be a struct`)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, fmt.Errorf("invalid schema: %w", err)
	}
	return resolved, nil
}

// infer returns the schema of a type. It adapts the library's result to models:
// optional fields are not nullable, raw JSON is any value, and enum and default
// tags are used.
func infer(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("arguments of type %s: use a struct", t)
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{
		TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {Description: "any JSON value"}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot infer a schema from %s: %w", t, err)
	}
	return s, mend(s, t)
}

func mend(s *jsonschema.Schema, t reflect.Type) error {
	if s == nil {
		return nil
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return mend(s.Items, t.Elem())
	case reflect.Map:
		return mend(s.AdditionalProperties, t.Elem())
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			p := s.Properties[name]
			if p == nil || !f.IsExported() {
				continue
			}
			if err := mend(p, f.Type); err != nil {
				return err
			}
			if err := mendField(s, p, name, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// mendField applies the tags enum and default.
func mendField(parent, p *jsonschema.Schema, name string, f reflect.StructField) error {
	if tag, ok := f.Tag.Lookup("enum"); ok {
		for v := range strings.SplitSeq(tag, ",") {
			value, err := tagValue(p, v)
			if err != nil {
				return fmt.Errorf("field %s: enum %q: %w", f.Name, v, err)
			}
			var decoded any
			if err := json.Unmarshal(value, &decoded); err != nil {
				return fmt.Errorf("field %s: enum %q: %w", f.Name, v, err)
			}
			p.Enum = append(p.Enum, decoded)
		}
	}
	if tag, ok := f.Tag.Lookup("default"); ok {
		value, err := tagValue(p, tag)
		if err != nil {
			return fmt.Errorf("field %s: default %q: %w", f.Name, tag, err)
		}
		p.Default = value
		parent.Required = slices.DeleteFunc(parent.Required, func(r string) bool { return r == name })
	}
	return nil
}

// tagValue returns the JSON of a value in a tag; for a string field the tag is the
// string itself.
func tagValue(p *jsonschema.Schema, text string) (json.RawMessage, error) {
	if p.Type == "string" {
		return json.Marshal(text)
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("not JSON")
	}
	return json.RawMessage(text), nil
}
