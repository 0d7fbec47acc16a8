package event

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/model"
)

// schemaFile is the published JSON Schema of an event, made from the Go types.
var schemaFile = filepath.Join("..", "..", "docs", "events.schema.json")

// eventSchema returns the schema of every event. A strict one refuses unknown
// members; the published one allows what later versions add.
func eventSchema(t *testing.T, strict bool) *jsonschema.Schema {
	t.Helper()
	part := &jsonschema.Schema{
		Type: "object", Required: []string{"type"},
		Properties: map[string]*jsonschema.Schema{"type": {Type: "string"}},
	}
	opts := &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[model.Parts]():     {Type: "array", Items: part},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[Body]():            {},
	}}
	of := func(typ reflect.Type) *jsonschema.Schema {
		s, err := jsonschema.ForType(typ, opts)
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		loosen(s, strict)
		return s
	}
	s := of(reflect.TypeFor[Event]())
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "An event of a session, version 1"
	s.Description = "One line of agent exec --output-format stream-json, and of a session's record. Types and members that are not named here may come with later versions."
	s.Required = append(s.Required, "type")
	s.AdditionalProperties = nil
	for _, b := range zeroBodies(t) {
		body := of(reflect.TypeOf(b))
		body.Title = b.Type()
		if strict { // then the envelope's members must be listed here, too
			maps.Copy(body.Properties, of(reflect.TypeFor[Event]()).Properties)
		}
		body.Properties["type"] = &jsonschema.Schema{Const: jsonschema.Ptr[any](b.Type())}
		body.PropertyOrder = nil
		s.OneOf = append(s.OneOf, body)
	}
	return s
}

// loosen removes "null" from the types, which encoding never writes there, and
// opens the objects unless strict.
func loosen(s *jsonschema.Schema, strict bool) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	if !strict && s.Type == "object" && len(s.Properties) > 0 {
		s.AdditionalProperties = nil
	}
	for _, p := range s.Properties {
		loosen(p, strict)
	}
	loosen(s.Items, strict)
}

// TestSchemaIsCurrent compares the published schema with the Go types.
func TestSchemaIsCurrent(t *testing.T) {
	schema, err := json.MarshalIndent(eventSchema(t, false), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	goldentest.Check(t, schemaFile, append(schema, '\n'))
}

// TestSchemaHolds: what is written matches the schema, and what is not an event
// does not.
func TestSchemaHolds(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, strict := range []bool{true, false} {
		schema, err := eventSchema(t, strict).Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		check := func(line string) error {
			var v any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			return schema.Validate(v)
		}
		lines := strings.Split(strings.TrimSpace(string(golden)), "\n")
		for _, line := range lines {
			if err := check(line); err != nil {
				t.Errorf("strict %t: %v\n%s", strict, err, line)
			}
			if err := check(strings.Replace(line, `"type":"`, `"type":"x_`, 1)); err == nil {
				t.Errorf("an unknown type matches the schema: %s", line)
			}
			if err := check(strings.Replace(line, `"seq":`, `"sqe":`, 1)); err == nil {
				t.Errorf("an event without a number matches the schema: %s", line)
			}
			if added := strings.Replace(line, `"v":1`, `"v":1,"later":true`, 1); (check(added) != nil) != strict {
				t.Errorf("strict %t: a member that a later version added: %v", strict, check(added))
			}
		}
	}
}
