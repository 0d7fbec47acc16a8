package jsonpos_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

func parseJSONC(t *testing.T, text string) *jsonpos.Document {
	t.Helper()
	d, err := jsonpos.ParseJSONC("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestJSONC(t *testing.T) {
	const text = "// head\n{ /* ä */ \"on\": true, // yes\n\"name\": \"// no comment\", \"tags\": [\"a\", /* b */ \"c\",],\n\"raw\": {\"k\": 1,}, /**/\n} // end"
	var v settings
	d := parseJSONC(t, text)
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if !v.On || v.Name != "// no comment" || len(v.Tags) != 2 || v.Tags[1] != "c" || !json.Valid(v.Raw) {
		t.Errorf("got %+v", v)
	}
	if line, col := d.Position("/on"); line != 2 || col != 17 {
		t.Errorf("/on is at %d:%d", line, col)
	}
	if _, err := jsonpos.Parse("f", []byte(text)); err == nil {
		t.Error("JSON with comments was accepted")
	}
}

func TestJSONCErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{} /* x":              `f:1:4: found "/*", expected nothing after the end of the document; close the comment with */`,
		"{\n# x\n}":            `f:2:1: found "#", expected a key in double quotes; a comment begins with //`,
		"{,}":                  `f:1:2: found ",", expected a key in double quotes`,
		`["a",,]`:              `f:1:6: found ",", expected a value`,
		"// only a comment":    "f:1:18: the document is empty; expected a JSON value, such as {}",
		"/* ä */ {\"on\" true": `f:1:15: found "true", expected ":" after the key`,
	} {
		if _, err := jsonpos.ParseJSONC("f", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestSet(t *testing.T) {
	tests := []struct{ name, text, path, want string }{
		{"comment at the end of the line", "{\n  \"x\": 1 // one\n}", "a", "{\n  \"x\": 1, // one\n  \"a\": 42\n}"},
		{"trailing comma", "{\n  \"x\": 1, // one\n}", "a", "{\n  \"x\": 1, // one\n  \"a\": 42,\n}"},
		{"trailing comma on one line", `{"x": 1,}`, "a", `{"x": 1, "a": 42,}`},
		{"only a comment", "{\n  // nothing yet\n}", "a", "{\n  // nothing yet\n  \"a\": 42\n}"},
		{"only a comment, one line", "{\"x\": {}, \"a\": { // none\n}}", "a/b", "{\"x\": {}, \"a\": { // none\n  \"b\": 42\n}}"},
		{"comments around a value", `{"a": /* old */ 1 /* one */}`, "a", `{"a": /* old */ 42 /* one */}`},
		{"comment before the bracket", "{\n  \"x\": 1\n  // \"y\": 2\n}", "a", "{\n  \"x\": 1,\n  \"a\": 42\n  // \"y\": 2\n}"},
		{"comment over two lines", "{\n  \"x\": 1 /* one\n  two */\n}", "a", "{\n  \"x\": 1,\n  \"a\": 42 /* one\n  two */\n}"},
		{"comma below", "{\n  \"x\": 1 // one\n  ,\n}", "a", "{\n  \"x\": 1 // one\n  ,\n  \"a\": 42,\n}"},
		{"no object on the way", `{"a": [1]}`, "a/b", `{"a": {"b": 42}}`},
		{"a key to be quoted", `{"x": 1}`, `a"<`, `{"x": 1, "a\"<": 42}`},
		{"root", "// head\n1", "a", "// head\n{\n  \"a\": 42\n}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(parseJSONC(t, tt.text).Set(strings.Split(tt.path, "/"), "42")); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	tests := []struct{ name, text, path, want string }{
		{"its comment goes", "{\n  \"x\": 1, // one\n  \"a\": 2, // two\n  \"y\": 3\n}", "a", "{\n  \"x\": 1, // one\n  \"y\": 3\n}"},
		{"the last", "{\n  \"x\": 1, // one\n  \"a\": 2 // two\n}", "a", "{\n  \"x\": 1 // one\n}"},
		{"the last with a trailing comma", "{\n  \"x\": 1,\n  \"a\": 2, // two\n}", "a", "{\n  \"x\": 1,\n}"},
		{"the last behind a line comment", "[\n  1, // one\n  2]", "1", "[\n  1 // one\n  ]"},
		{"comments above stay", "{\n  \"x\": 1,\n\n  // why\n  \"a\": 2\n}", "a", "{\n  \"x\": 1\n\n  // why\n}"},
		{"the comment of the next one stays", `{"a": 2, /* x */ "x": 1}`, "a", `{/* x */ "x": 1}`},
		{"an element", `{"a": ["x", "y"]}`, "a/0", `{"a": ["y"]}`},
		{"the only element", `{"x": 1, "a": ["y"]}`, "a/0", `{"x": 1}`},
		{"what is empty then", `{"a": {"b": {"c": 1}}}`, "a/b/c", `{}`},
		{"what has a comment", `{"a": {"b": {"c": 1} /* none */}}`, "a/b/c", `{"a": { /* none */}}`},
		{"the first of two lines", "{\"a\": 1,\n \"x\": 2}", "a", `{"x": 2}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseJSONC(t, tt.text).Remove(strings.Split(tt.path, "/")...)
			if !ok || string(got) != tt.want {
				t.Errorf("%t, got\n%s\nwant\n%s", ok, got, tt.want)
			}
		})
	}
	for _, path := range [][]string{nil, {"b"}, {"a", "b"}} {
		if got, ok := parseJSONC(t, `{"a": 1}`).Remove(path...); ok || string(got) != `{"a": 1}` {
			t.Errorf("%q: %t, %s", path, ok, got)
		}
	}
}

// FuzzEdit checks that an edit gives a valid document with the value at its
// place, and everything else as it was.
func FuzzEdit(f *testing.F) {
	for _, doc := range []string{
		`{}`, ` { } `, `{"agent":{"maxRounds":3}}`, "{\n \"x\": [1, {\"a\": \"}\"}],\n \"agent\": {\n  \"y\": null }\n}", `{"agent": {"a\\\"": [[]], "maxRounds": {"deep": -1.5e3}}}`,
		"{ // a\n\"agent\": /* b */ { // c\n\"x\": 1 // d\n} // e\n, \"y\": 2, /* f */ } // g", "{\"agent\": {\r\n// h\r\n},}",
	} {
		f.Add(doc)
	}
	decode := func(t *testing.T, text []byte) (*jsonpos.Document, map[string]any) {
		var v map[string]any
		d, err := jsonpos.ParseJSONC("", text)
		if err == nil {
			err = d.Decode(&v)
		}
		if err != nil {
			t.Skip()
		}
		return d, v
	}
	f.Fuzz(func(t *testing.T, doc string) {
		d, before := decode(t, []byte(doc))
		if group, ok := before["agent"]; ok || before == nil {
			if _, ok := group.(map[string]any); !ok {
				return
			}
		}
		path := []string{"agent", "maxRounds"}
		text := d.Set(path, "42")
		set, err := jsonpos.ParseJSONC("", text)
		var after map[string]any
		if err != nil || set.Decode(&after) != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if group, _ := after["agent"].(map[string]any); group["maxRounds"] != 42.0 {
			t.Fatalf("got %s", text)
		}
		removed, ok := set.Remove(path...)
		left := map[string]any{}
		if err := parseJSONC(t, string(removed)).Decode(&left); err != nil || !ok {
			t.Fatalf("%v, %t\n%s", err, ok, removed)
		}
		for _, v := range []map[string]any{before, left} { // an empty group may go or stay
			group, _ := v["agent"].(map[string]any)
			delete(group, "maxRounds")
			if len(group) == 0 {
				delete(v, "agent")
			}
		}
		if !reflect.DeepEqual(left, before) {
			t.Fatalf("%s\nis after setting and removing\n%s", doc, removed)
		}
	})
}
