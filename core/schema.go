package core

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

type resolvedSchema = jsonschema.Resolved

// resolveSchema makes a tool's schema ready for validation. No schema means
// an object of anything.
func resolveSchema(raw json.RawMessage) (*resolvedSchema, error) {
	if len(raw) == 0 {
		raw = json.RawMessage(`{"type":"object"}`)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("the tool's own schema is not valid: %w", err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the tool's own schema cannot be resolved: %w", err)
	}
	return r, nil
}

// validateArgs checks that args are one JSON object that meets the schema.
func validateArgs(schema *resolvedSchema, args json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(args))
	var value any
	err := dec.Decode(&value)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the first JSON value")
		}
	}
	if err != nil {
		return fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return fmt.Errorf("the arguments must be a JSON object, not %s", jsonKind(value))
	}
	if err := schema.Validate(value); err != nil {
		return schemaError(err)
	}
	return nil
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

// schemaError turns the validator's error, which names a place in the schema
// ("validating /properties/a: type: …"), into one that names the place in the
// arguments ("/a: …").
func schemaError(err error) error {
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
	if path.Len() == 0 {
		return errors.New("at the top level of the arguments: " + msg)
	}
	return fmt.Errorf("at %s: %s", path.String(), msg)
}

// NewTool makes a tool from a Go function. The schema of the arguments is
// inferred from In, a struct: `json` tags name the fields, those without
// omitempty are required, `jsonschema` tags describe them. Arguments that do
// not fit never reach run. It panics if no schema can be inferred, which is a
// mistake in the program.
//
// The access function may be nil for a tool that touches nothing outside the
// program; then every call is allowed.
func NewTool[In any](
	def ToolDefinition,
	access func(ctx context.Context, call *Call, in In) ([]Access, error),
	run func(ctx context.Context, call *Call, in In) (Result, error),
) Tool {
	if len(def.Schema) == 0 {
		schema, err := SchemaFor[In]()
		if err != nil {
			panic(fmt.Sprintf("core.NewTool %q: %v", def.Name, err))
		}
		def.Schema = schema
	}
	return &funcTool[In]{def, access, run}
}

// SchemaFor infers the JSON Schema of a struct type.
func SchemaFor[In any]() (json.RawMessage, error) {
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

// dropNull removes "null" from the types that inference gives to slices, maps
// and pointers: a model would take it for an invitation.
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

type funcTool[In any] struct {
	def    ToolDefinition
	access func(context.Context, *Call, In) ([]Access, error)
	run    func(context.Context, *Call, In) (Result, error)
}

func (t *funcTool[In]) Definition() ToolDefinition { return t.def }

func (t *funcTool[In]) Access(ctx context.Context, call *Call) ([]Access, error) {
	if t.access == nil {
		return nil, nil
	}
	in, err := t.decode(call)
	if err != nil {
		return nil, err
	}
	return t.access(ctx, call, in)
}

func (t *funcTool[In]) Run(ctx context.Context, call *Call) (Result, error) {
	in, err := t.decode(call)
	if err != nil {
		return Failf(CodeValidation, "%v", err), nil
	}
	return t.run(ctx, call, in)
}

func (t *funcTool[In]) decode(call *Call) (In, error) {
	var in In
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return in, fmt.Errorf("arguments of %s: %w", t.def.Name, err)
	}
	return in, nil
}
