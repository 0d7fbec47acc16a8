package adapt

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func corpus(t testing.TB) map[string]json.RawMessage {
	t.Helper()
	data, err := os.ReadFile("testdata/corpus.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCorpus: every form becomes a schema of an object in every dialect, the
// reasons are given but for leaving out that there are no other arguments, and adapting twice changes nothing more. What services accept
// is checked by their fakes, in core/model/modeltest.
func TestCorpus(t *testing.T) {
	all := corpus(t)
	if len(all) < 50 {
		t.Errorf("%d schemas", len(all))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, d := range slices.Sorted(maps.Keys(tables)) {
			out, changes := Adapt(d, all[name])
			again, more := Adapt(d, out)
			switch {
			case len(changes) == 0 && !reflect.DeepEqual(open(t, out), open(t, all[name])), len(changes) > 0 && string(out) == string(all[name]):
				t.Errorf("%s, %s: changes %q: %s", name, d, changes, out)
			case string(again) != string(out):
				t.Errorf("%s, %s: not stable: %q\n%s\n%s", name, d, more, out, again)
			}
			var root struct{ Type any }
			if err := json.Unmarshal(out, &root); err != nil || root.Type != "object" && d != Validator {
				t.Errorf("%s, %s: %v: %s", name, d, err, out)
			}
		}
	}
}

// open returns a schema that does not say that there are no other arguments.
func open(t *testing.T, schema json.RawMessage) any {
	t.Helper()
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	if o, ok := root.(map[string]any); ok && o["additionalProperties"] == false {
		delete(o, "additionalProperties")
	}
	return root
}

func TestAdapt(t *testing.T) {
	for _, tt := range []struct {
		name    string
		dialect Dialect
		in, out string
		changes string
	}{
		{"nothing to do", OpenAI, `{"type": "object", "properties": {"b": {"type":"string"}, "a": {"type":"integer","minimum":1.50}}}`, "", ""},
		{"no other members", OpenAI, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string"}}}}}}`, ""},
		{"no schema", Gemini, ``, `{"type":"object","properties":{}}`, ""},
		{
			"alternatives", Anthropic, `{"anyOf":[{"type":"object","properties":{"op":{"const":"add"},"n":{"type":"integer"}},"required":["op","n"]},{"properties":{"op":{"const":"list"}},"required":["op"]}]}`,
			`{"description":"at least one of: op=add, n | op=list","properties":{"op":{"enum":["add","list"]},"n":{"type":"integer"}},"required":["op"],"type":"object"}`,
			"anyOf of the root flattened|the root is an object",
		},
		{
			"pattern", OpenAI, `{"type":"object","properties":{"to":{"type":"string","description":"Address","pattern":"^(?!x).*$"}}}`,
			`{"type":"object","properties":{"to":{"type":"string","description":"Address (pattern ^(?!x).*$)"}}}`, "pattern not supported (to)",
		},
		{
			"names", Anthropic, `{"type":"object","properties":{"filter[id]":{"type":"string"},"$top":{"type":"integer"},"_top":{"type":"integer"}},"required":["$top"]}`,
			`{"type":"object","properties":{"filter_id_":{"type":"string","description":"named filter[id]"},"_top_81bf98e4":{"type":"integer","description":"named $top"},"_top":{"type":"integer"}},"required":["_top_81bf98e4"]}`,
			"property renamed (filter[id], $top)",
		},
		{
			"recursion", Gemini, `{"type":"object","properties":{"t":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":"object","properties":{"c":{"$ref":"#/$defs/T"}}}}}`,
			`{"type":"object","properties":{"t":{"type":"object","properties":{"c":{"type":"object","properties":{"c":{"type":"object","description":"further levels as above"}}}}}}}`,
			"$ref resolved (t, t.c, t.c.c)|recursion cut off (t.c.c)",
		},
		{
			"draft-04", Validator, `{"type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`,
			`{"type":"object","properties":{"n":{"type":"number","exclusiveMinimum":0}}}`, "exclusive bounds of draft-04 replaced (n)",
		},
		{
			"unicode", Validator, `{"type":"object","properties":{"n":{"type":"string","pattern":"^[\\u4e00-\\u9fa5]$"}}}`,
			`{"type":"object","properties":{"n":{"type":"string","pattern":"^[\\x{4e00}-\\x{9fa5}]$"}}}`, "escapes of a pattern translated (n)",
		},
		{"not JSON", Chat, `[1`, `{"type":"object","properties":{}}`, "not a JSON Schema object: any arguments|properties of the root added"},
	} {
		out, changes := Adapt(tt.dialect, json.RawMessage(tt.in))
		if tt.out == "" {
			tt.out = tt.in
		}
		if string(out) != tt.out || strings.Join(changes, "|") != tt.changes {
			t.Errorf("%s:\n%s %q, want\n%s %q", tt.name, out, changes, tt.out, tt.changes)
		}
	}
}

func TestLargeSchemas(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 500) + `{"type":"string"}` + strings.Repeat(`}}`, 500)
	values := make([]string, 5000)
	for i := range values {
		values[i] = fmt.Sprintf("value-%d", i)
	}
	list, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	enum := `{"type":"object","properties":{"v":{"type":"string","enum":` + string(list) + `}}}`
	// each definition refers twice to the next: 2^40 schemas if all were expanded
	var bomb strings.Builder
	bomb.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&bomb, `"d%d":{"type":"object","properties":{"l":{"$ref":"#/$defs/d%d"},"r":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	bomb.WriteString(`"d40":{"type":"string"}}}`)
	for name, in := range map[string]string{"deep": deep, "enum": enum, "bomb": bomb.String()} {
		for d := range tables {
			out, changes := Adapt(d, json.RawMessage(in))
			if d != Validator && len(changes) == 0 && name != "bomb" || len(out) > 1<<20 || !json.Valid(out) {
				t.Errorf("%s, %s: %d bytes, %q", name, d, len(out), changes)
			}
		}
	}
}

func TestRulesHaveSources(t *testing.T) {
	for d, rules := range tables {
		for i, r := range rules {
			if r.source == "" {
				t.Errorf("%s: rule %d has no source", d, i+1)
			}
		}
	}
}

func TestAdapterRemembers(t *testing.T) {
	a := New(Gemini)
	in := json.RawMessage(`{"type":"object","properties":{"a":{"const":"x"}}}`)
	first, second := a.Schema(in), a.Schema(slices.Clone(in))
	if &first[0] != &second[0] || !strings.Contains(string(first), `"enum":["x"]`) {
		t.Errorf("%s, %s", first, second)
	}
}

// FuzzAdapt: any bytes become a schema that stays as it is.
func FuzzAdapt(f *testing.F) {
	for _, raw := range corpus(f) {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for d := range tables {
			out, _ := Adapt(d, raw)
			if !json.Valid(out) {
				t.Fatalf("%s: %s", d, out)
			}
		}
	})
}

func BenchmarkCached(b *testing.B) {
	a := New(Gemini)
	all := corpus(b)
	for b.Loop() {
		for _, raw := range all {
			a.Schema(raw)
		}
	}
}
