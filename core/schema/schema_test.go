package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/schema"
	"github.com/seed-009c0928/agent/core/schema/adapt"
)

type nested struct {
	Depth int `json:"depth"`
}

type args struct {
	Path  string   `json:"path" jsonschema:"where to look"`
	Limit int      `json:"limit,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	In    *nested  `json:"in,omitempty"`
}

func TestForInfersWhatAModelNeeds(t *testing.T) {
	raw, err := schema.For[args]()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"required":["path"]`, `"where to look"`, `"tags":{"type":"array"`, `"additionalProperties":false`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("schema %s lacks %s", raw, want)
		}
	}
	if strings.Contains(string(raw), "null") {
		t.Errorf("schema offers null: %s", raw)
	}
	if _, err := schema.For[string](); err == nil {
		t.Error("a type that is not a struct was accepted")
	}
}

func TestValidateNamesThePlace(t *testing.T) {
	raw, err := schema.For[args]()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ in, want string }{
		{`{"path":"a"}`, ""},
		{`{"path":"a","limit":12345678901234567890}`, ""},
		{`{"path":`, "not valid JSON"},
		{`{"path":"a"} {}`, "unexpected data after the first JSON value"},
		{`["a"]`, "must be a JSON object, not an array"},
		{`null`, "must be a JSON object, not null"},
		{`{}`, `"path"`},
		{`{"path":3}`, "at /path:"},
		{`{"path":"a","in":{"depth":"x"}}`, "at /in/depth:"},
		{`{"path":"a","tags":["x",3]}`, "at /tags/*:"},
		{`{"path":"a","pth":1}`, "pth"},
	}
	for _, tt := range tests {
		err := s.Validate(json.RawMessage(tt.in))
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.in, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: error %v, want one with %q", tt.in, err, tt.want)
		}
	}
}

func TestCoerce(t *testing.T) {
	raw, err := schema.For[args]()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ in, want, notes string }{
		{`{"path": "a", "limit":12345678901234567890}`, `{"path": "a", "limit":12345678901234567890}`, ""},
		{`{"path":"a","limit":null,"tags":null,"in":null}`, `{"path":"a"}`, "in: left out, since it is null|limit: left out, since it is null|tags: left out, since it is null"},
		{`{"path":"<a>","limit":"5"}`, `{"limit":5,"path":"<a>"}`, "limit: used as an integer"},
		{`{"path":"a","limit":5.0}`, `{"limit":5,"path":"a"}`, "limit: used as an integer"},
		{`{"path":5}`, `{"path":"5"}`, "path: used as a string"},
		{`{"path":"a","tags":"x"}`, `{"path":"a","tags":["x"]}`, "tags: used as an array"},
		{`{"path":"a","tags":"[\"x\",2]"}`, `{"path":"a","tags":["x","2"]}`, "tags: used as an array|tags/1: used as a string"},
		{`{"path":"a","in":"{\"depth\":\"2\"}"}`, `{"in":{"depth":2},"path":"a"}`, "in: used as an object|in/depth: used as an integer"},
		{`{"path":"a","extra":1}`, `{"path":"a"}`, "extra: ignored, since there is no such argument"},
		{`{"Path":"a"}`, `{"path":"a"}`, "Path: used as path"},
		{`"{\"path\":\"a\"}"`, `{"path":"a"}`, "decoded the arguments, which were a string"},
		{`{"path":"a","limit":"five"}`, `{"path":"a","limit":"five"}`, ""},
		{`{"path":"a","limit":1e400}`, `{"path":"a","limit":1e400}`, ""},
		{`{"path":null}`, `{"path":null}`, ""},
		{`{"path":`, `{"path":`, ""},
	} {
		got, notes := s.Coerce(json.RawMessage(tt.in))
		if string(got) != tt.want || strings.Join(notes, "|") != tt.notes {
			t.Errorf("%s: %s %q, want %s %q", tt.in, got, notes, tt.want, tt.notes)
		}
	}
	for _, in := range []string{`{"path":null}`, `{"path":{"a":1}}`, `{"path":["a"]}`, `{"path":"a","limit":"five"}`, `{}`} {
		if err := s.Validate(json.RawMessage(in)); err == nil || strings.Contains(err.Error(), "reflect") || strings.Contains(err.Error(), "map[") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// TestCompile: schemas that others wrote validate what can be understood of them.
func TestCompile(t *testing.T) {
	for _, tt := range []struct{ schema, good, bad string }{
		{`{"type":"object","properties":{"to":{"type":"string","pattern":"^(?!x).*$"}}}`, `{"to":"x"}`, `{"to":1}`},
		{`{"type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`, `{"n":1}`, `{"n":0}`},
		{`{"type":"object","properties":{"s":{"type":"string","pattern":"^[\\u4e00-\\u9fa5]$"}}}`, `{"s":"中"}`, `{"s":"a"}`},
		{`{"type":"object","properties":{"b":{"$ref":"#/none"},"n":{"type":"integer"}}}`, `{"b":[1],"n":1}`, `{"n":"x"}`},
		{`{"$id":"tool.json","type":"object","properties":{"i":{"$ref":"tool.json#/$defs/i"}},"$defs":{"i":{"type":"integer"}}}`, `{"i":1}`, `{"i":"x"}`},
		{`{"type":"object","properties":[],"required":["a"]}`, `{"a":1}`, `{}`},
		{`nonsense`, `{"a":1}`, `[]`},
	} {
		s := schema.Compile(json.RawMessage(tt.schema))
		if err := s.Validate(json.RawMessage(tt.good)); err != nil {
			t.Errorf("%s: %s: %v", tt.schema, tt.good, err)
		}
		if err := s.Validate(json.RawMessage(tt.bad)); err == nil {
			t.Errorf("%s: %s was accepted", tt.schema, tt.bad)
		}
	}
}

// TestCoerceRestoresNames: arguments have the names that were sent to a service
// which rejects the tool's own.
// TestCoerceTheOnlyArgument: Codex calls the patch "input".
func TestCoerceTheOnlyArgument(t *testing.T) {
	s := schema.Compile(json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"],"additionalProperties":false}`))
	for in, want := range map[string]string{
		`{"input":"x"}`:             `{"patch":"x"}`,
		`{"input":"x","other":"y"}`: `{}`,
		`{"patch":"x","input":"y"}`: `{"patch":"x"}`,
	} {
		if got, notes := s.Coerce(json.RawMessage(in)); string(got) != want || len(notes) == 0 {
			t.Errorf("%s: %s %q, want %s", in, got, notes, want)
		}
	}
}

func TestCoerceRestoresNames(t *testing.T) {
	s := schema.Compile(json.RawMessage(`{"type":"object","properties":{"filter[id]":{"type":"string"},"日期":{"type":"string"}},"additionalProperties":false}`))
	adapted, _ := adapt.Adapt(adapt.Anthropic, json.RawMessage(`{"type":"object","properties":{"日期":{"type":"string"}}}`))
	name := adapt.PropertyNames("日期")[0]
	if !strings.Contains(string(adapted), `"`+name+`"`) {
		t.Errorf("%s lacks %s", adapted, name)
	}
	got, notes := s.Coerce(json.RawMessage(`{"filter_id_":"7","` + name + `":"x"}`))
	if string(got) != `{"filter[id]":"7","日期":"x"}` || len(notes) > 0 {
		t.Errorf("%s %q", got, notes)
	}
}

func TestParseRefusesABrokenSchema(t *testing.T) {
	for _, raw := range []string{`{"type":3}`, `{"$ref":"#/nowhere"}`, `nonsense`} {
		if _, err := schema.Parse(json.RawMessage(raw)); err == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
	s, err := schema.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(json.RawMessage(`{"anything":[1]}`)); err != nil {
		t.Errorf("an empty schema must accept any object: %v", err)
	}
}

// FuzzValidate: any arguments are valid or an error.
func FuzzValidate(f *testing.F) {
	raw, err := schema.For[args]()
	if err != nil {
		f.Fatal(err)
	}
	s, err := schema.Parse(raw)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{"path":"a"}`, `{"path":"a","tags":["x"]}`, `[[[[`, `{"in":{"depth":1e400}}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if coerced, notes := s.Coerce(data); s.Validate(data) == nil && len(notes) > 0 && s.Validate(coerced) != nil {
			t.Fatalf("%q is valid, but not as %q", data, coerced)
		}
		if err := s.Validate(data); err == nil {
			var got args
			if err := json.Unmarshal(data, &got); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
				t.Fatalf("%q is valid by the schema, but does not decode: %v", data, err)
			}
		}
	})
}

func ExampleSchema_Validate() {
	raw, _ := schema.For[struct {
		City string `json:"city"`
	}]()
	s, _ := schema.Parse(raw)
	fmt.Println(s.Validate(json.RawMessage(`{"city": 7}`)))
	// Output: at /city: expected "string", got an integer
}
