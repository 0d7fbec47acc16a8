package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/schema/adapt"
)

// Schema validates the arguments of a tool. It is safe for concurrent use.
type Schema struct{ resolved *jsonschema.Resolved }

// Parse parses a JSON Schema. An empty one accepts any object.
func Parse(raw json.RawMessage) (*Schema, error) {
	if len(raw) == 0 {
		raw = json.RawMessage(`{"type":"object"}`)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("the tool's schema is not valid: %w", err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the tool's schema cannot be resolved: %w", err)
	}
	return &Schema{r}, nil
}

// Compile is Parse for the schema of a tool that others wrote: what cannot be
// parsed is repaired or left out, so that it validates as much as possible.
func Compile(raw json.RawMessage) *Schema {
	adapted, _ := adapt.Adapt(adapt.Validator, raw)
	for _, form := range []json.RawMessage{adapted, raw} {
		if s, err := Parse(form); err == nil {
			return s
		}
	}
	s, err := Parse(nil)
	if err != nil {
		panic(err) // it is constant
	}
	return s
}

// Validate checks that args are one JSON object that matches the schema. The
// error names the invalid argument and what was expected.
func (s *Schema) Validate(args json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(args))
	var value any
	err := dec.Decode(&value)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("unexpected data after the first JSON value")
		}
	}
	if err != nil {
		return fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return fmt.Errorf("the arguments must be a JSON object, not %s", jsonKind(value))
	}
	if err := s.resolved.Validate(value); err != nil {
		return s.explain(err)
	}
	return nil
}

// ValidateText checks that a text is one JSON value that matches the schema.
func (s *Schema) ValidateText(text string) error {
	dec := json.NewDecoder(strings.NewReader(text))
	var value any
	if err := dec.Decode(&value); err != nil {
		return fmt.Errorf("it is not valid JSON: %w", err)
	}
	if _, more := dec.Token(); !errors.Is(more, io.EOF) {
		return errors.New("it has text after the JSON value")
	}
	return s.resolved.Validate(value)
}

// CheckText validates a text against a schema, given as JSON.
func CheckText(raw json.RawMessage, text string) error {
	s, err := Parse(raw)
	if err != nil {
		return err
	}
	return s.ValidateText(text)
}

// Decode decodes arguments into a Go value. Its error names no Go types.
func Decode[T any](args json.RawMessage) (T, error) {
	var in T
	err := json.Unmarshal(args, &in)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return in, fmt.Errorf("%s: %s is out of range or of the wrong type", wrong.Field, wrong.Value)
	}
	return in, err
}

func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

// explain turns the validator's error, which has a path in the schema
// ("validating /properties/a: type: …"), into one with the path in the arguments
// ("/a: …").
func (s *Schema) explain(err error) error {
	msg, pointer := err.Error(), ""
	for {
		rest, ok := strings.CutPrefix(msg, "validating ")
		if !ok {
			break
		}
		place, after, ok := strings.Cut(rest, ": ")
		if !ok {
			break
		}
		msg = after
		if place != "root" {
			pointer = place
		}
	}
	var path strings.Builder
	segs := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := 0; i < len(segs); i++ {
		switch {
		case segs[i] == "properties" && i+1 < len(segs):
			i++
			path.WriteString("/" + segs[i])
		case segs[i] == "items":
			path.WriteString("/*")
		}
	}
	msg = readable(msg)
	if path.Len() == 0 {
		return fmt.Errorf("%s; the arguments are %s", msg, s.arguments())
	}
	return fmt.Errorf("at %s: %s", path.String(), msg)
}

// wrongType is the validator's error for a value of the wrong type.
var wrongType = lazy.Regexp(`^type: (?s:.*) has type "(\w+)", want (one of )?("[^"]*"(?:, "[^"]*")*)$`)

// readable replaces what the validator prints of Go's values.
func readable(msg string) string {
	if m := wrongType().FindStringSubmatch(msg); m != nil {
		return fmt.Sprintf("expected %s%s, got %s", m[2], m[3], article(m[1]))
	}
	return strings.ReplaceAll(msg, "<invalid reflect.Value>", "null")
}

// arguments lists the schema's properties.
func (s *Schema) arguments() string {
	root := s.resolved.Schema()
	names := slices.Sorted(maps.Keys(root.Properties))
	for i, n := range names {
		if slices.Contains(root.Required, n) {
			names[i] = n + " (required)"
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// For infers the JSON Schema of a struct type: `json` tags name the fields,
// those without omitempty are required, `jsonschema` tags describe them.
func For[In any]() (json.RawMessage, error) {
	if t := reflect.TypeFor[In](); t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("arguments must be a struct, not %s", t)
	}
	s, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, err
	}
	dropNull(s)
	return json.Marshal(s)
}

// dropNull removes "null" from the inferred types of slices, maps and pointers,
// since models would use it.
func dropNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		dropNull(p)
	}
	dropNull(s.Items)
	dropNull(s.AdditionalProperties)
}
