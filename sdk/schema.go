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

// schemaOf returns the schema of a tool's arguments, ready to validate, and
// writes it into the tool if it has none of its own.
func schemaOf[In any](t *toolproto.Tool) (*jsonschema.Resolved, error) {
	s := &jsonschema.Schema{}
	if len(t.InputSchema) > 0 {
		if err := json.Unmarshal(t.InputSchema, s); err != nil {
			return nil, fmt.Errorf("its schema is not valid: %w", err)
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
		return nil, fmt.Errorf(`its schema must have "type": "object" at its root, and its arguments must be a struct`)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, fmt.Errorf("its schema cannot be used: %w", err)
	}
	return resolved, nil
}

// infer makes a schema of a type. Where the library's own is of little use to
// a model, it is mended: no null for what is only left out, raw JSON is
// anything, enum and default tags count.
func infer(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("its arguments are a %s: use a struct", t)
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{
		TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {Description: "any JSON value"}},
	})
	if err != nil {
		return nil, fmt.Errorf("a schema cannot be inferred of %s: %w", t, err)
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

// mendField heeds the tags enum and default.
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

// tagValue is the JSON of a value in a tag: of a text field the text itself.
func tagValue(p *jsonschema.Schema, text string) (json.RawMessage, error) {
	if p.Type == "string" {
		return json.Marshal(text)
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("it is not JSON")
	}
	return json.RawMessage(text), nil
}
