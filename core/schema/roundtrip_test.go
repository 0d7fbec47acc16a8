package schema_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/schema"
	"github.com/seed-009c0928/agent/core/schema/adapt"
)

// wild is a schema of a kind found in the wild, and arguments that it accepts.
type wild struct {
	Name   string
	Schema json.RawMessage
	Good   []json.RawMessage
}

func wildSchemas(t *testing.T) (all []wild) {
	t.Helper()
	data, err := os.ReadFile("testdata/roundtrip.json")
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil || len(all) < 100 {
		t.Fatalf("%d schemas, %v", len(all), err)
	}
	return all
}

// TestRoundTrip: correct arguments are accepted and not changed, also if properties
// have the names under which a service got them.
func TestRoundTrip(t *testing.T) {
	for _, w := range wildSchemas(t) {
		s := schema.Compile(w.Schema)
		for _, good := range w.Good {
			sent := renamed(decoded(t, good))
			text, err := json.Marshal(sent)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := s.Coerce(text)
			if err := s.Validate(got); err != nil {
				t.Errorf("%s: %s is refused: %v", w.Name, text, err)
			}
			if !strings.Contains(w.Name, "colliding") && !reflect.DeepEqual(decoded(t, got), decoded(t, good)) {
				t.Errorf("%s: %s became %s, want %s", w.Name, text, got, good)
			}
		}
	}
}

func decoded(t *testing.T, raw json.RawMessage) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// renamed replaces property names as adapted schemas do.
func renamed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			if others := adapt.PropertyNames(name); len(others) > 0 {
				name = others[len(others)-1]
			}
			out[name] = renamed(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = renamed(v[i])
		}
		return out
	}
	return v
}

// TestLeftOutNull: a required property that may be null can be left out, as services
// that know no null are told.
func TestLeftOutNull(t *testing.T) {
	for _, p := range []string{`{"type":["string","null"]}`, `{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `{"type":"string","nullable":true}`, `{"enum":["a",null]}`} {
		raw := json.RawMessage(`{"type":"object","properties":{"a":` + p + `},"required":["a"]}`)
		adapted, _ := adapt.Adapt(adapt.Gemini, raw)
		s := schema.Compile(raw)
		got, notes := s.Coerce(json.RawMessage(`{}`))
		if strings.Contains(string(adapted), "required") || string(got) != `{"a":null}` || len(notes) > 0 || s.Validate(got) != nil {
			t.Errorf("%s: %s; %s %q", p, adapted, got, notes)
		}
	}
}

// TestEveryNodeHasAType: services that want a type for every schema get one.
func TestEveryNodeHasAType(t *testing.T) {
	var check func(v any) bool
	check = func(v any) bool {
		s, _ := v.(map[string]any)
		ok := s["type"] != nil || s["anyOf"] != nil
		if p, is := s["properties"].(map[string]any); is {
			for _, one := range p {
				ok = ok && check(one)
			}
		}
		if items, is := s["items"]; is {
			ok = ok && check(items)
		}
		if list, is := s["anyOf"].([]any); is {
			for _, one := range list {
				ok = ok && check(one)
			}
		}
		return ok
	}
	for _, w := range wildSchemas(t) {
		for _, d := range []adapt.Dialect{adapt.Gemini, adapt.Chat} {
			if adapted, _ := adapt.Adapt(d, w.Schema); !check(decoded(t, adapted)) {
				t.Errorf("%s, %s: a schema without a type: %s", w.Name, d, adapted)
			}
		}
	}
}
