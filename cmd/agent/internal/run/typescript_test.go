package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-009c0928/agent/core/goldentest"
)

// TestTypeScript compares docs/clients/protocol.ts with the schemas.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "..", "..", "docs")
	read := func(name string) *jsonschema.Schema {
		data, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatal(err)
		}
		return &s
	}
	protocol, events := read("host-protocol.schema.json"), read("events.schema.json")
	var b strings.Builder
	fmt.Fprintf(&b, "// %s: what agent reads and writes.\n// Generated from host-protocol.schema.json and events.schema.json; do not edit.\n\n", protocol.Title)
	fmt.Fprintf(&b, "/** A line for agent. */\nexport type Command = %s;\n\n", typeScript(protocol.Defs["command"], ""))
	fmt.Fprintf(&b, "/** The answer to a line. */\nexport type Reply = %s;\n\n", typeScript(protocol.Defs["reply"], ""))
	fmt.Fprintf(&b, "/** What happens in the session. Later versions may add types and members. */\nexport type Event = %s & (\n", typeScript(&jsonschema.Schema{
		Type: "object", Properties: events.Properties, Required: slices.DeleteFunc(slices.Clone(events.Required), func(name string) bool { return name == "type" }),
	}, ""))
	for _, one := range events.OneOf {
		fmt.Fprintf(&b, "  | %s\n", typeScript(one, "  "))
	}
	b.WriteString(");\n\n/** A line of agent. */\nexport type Line = Event | Reply;\n")
	goldentest.Check(t, filepath.Join(docs, "clients", "protocol.ts"), []byte(b.String()))
}

// typeScript returns a schema as a type. What it cannot express is unknown.
func typeScript(s *jsonschema.Schema, indent string) string {
	switch {
	case s.Const != nil:
		return literal(*s.Const)
	case len(s.Enum) > 0:
		var list []string
		for _, v := range s.Enum {
			list = append(list, literal(v))
		}
		return strings.Join(list, " | ")
	}
	switch s.Type {
	case "string", "boolean":
		return s.Type
	case "integer", "number":
		return "number"
	case "array":
		return "Array<" + typeScript(s.Items, indent) + ">"
	case "object":
		return objectType(s, indent)
	}
	return "unknown"
}

func objectType(s *jsonschema.Schema, indent string) string {
	if len(s.Properties) == 0 {
		if s.AdditionalProperties != nil {
			return "Record<string, " + typeScript(s.AdditionalProperties, indent) + ">"
		}
		return "Record<string, unknown>"
	}
	var b strings.Builder
	b.WriteString("{\n")
	names := slices.Sorted(maps.Keys(s.Properties))
	if at := slices.Index(names, "type"); at > 0 { // what tells the types apart comes first
		names = slices.Concat([]string{"type"}, slices.Delete(names, at, at+1))
	}
	for _, name := range names {
		p := s.Properties[name]
		if p.Description != "" {
			fmt.Fprintf(&b, "%s  /** %s. */\n", indent, p.Description)
		}
		optional := "?"
		if p.Const != nil || slices.Contains(s.Required, name) {
			optional = ""
		}
		fmt.Fprintf(&b, "%s  %s%s: %s;\n", indent, name, optional, typeScript(p, indent+"  "))
	}
	return b.String() + indent + "}"
}

func literal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
