package jsonpos_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

type server struct {
	BaseURL string  `json:"baseUrl"`
	Port    uint16  `json:"port"`
	Weight  float64 `json:"weight"`
}

type shared struct {
	Name string `json:"name"`
}

type settings struct {
	shared
	MaxTokens   int               `json:"maxTokens"`
	Temperature *float64          `json:"temperature"`
	On          bool              `json:"on"`
	Servers     map[string]server `json:"servers"`
	Tags        []string          `json:"tags"`
	Since       time.Time         `json:"since"`
	Quoted      int               `json:"quoted,string"`
	Blob        []byte            `json:"blob"`
	Any         any               `json:"any"`
	Raw         json.RawMessage   `json:"raw"`
	Named       shared            `json:"named"`
	Hidden      string            `json:"-"`
}

func TestDecodeErrors(t *testing.T) {
	deep := strings.Repeat("[", 1001)
	tests := []struct{ name, data, want string }{
		{"empty", "", "f:1:1: the document is empty; expected a JSON value, such as {}"},
		{"only space", " \n ", "f:2:2: the document is empty; expected a JSON value, such as {}"},
		{"unknown key", "{\n  \"maxToken\": 1\n}", `f:2:3: unknown key "maxToken" at the top level; did you mean "maxTokens"?`},
		{"swapped letters", `{"tgas": []}`, `f:1:2: unknown key "tgas" at the top level; did you mean "tags"?`},
		{"wrong case", `{"maxtokens": 1}`, `f:1:2: unknown key "maxtokens" at the top level; did you mean "maxTokens"?`},
		{"nothing near", `{"servers": {"a": {"zzzzzz": 1}}}`, `f:1:20: unknown key "zzzzzz" in /servers/a; valid keys are baseUrl, port, weight`},
		{"hidden field", `{"Hidden": "x"}`, `f:1:2: unknown key "Hidden" at the top level; valid keys are any, blob, maxTokens, name, named, on, quoted, raw, servers, since, tags, temperature`},
		{"field of a named struct", `{"named": {"nam": ""}}`, `f:1:12: unknown key "nam" in /named; did you mean "name"?`},
		{"repeated key", "{\"on\": true,\n \"on\": false}", `f:2:2: duplicate key "on"; remove one of them`},
		{"repeated after unescaping", `{"on": true, "\u006fn": false}`, `f:1:14: duplicate key "on"; remove one of them`},
		{"string for number", `{"maxTokens": "sk-secret"}`, `f:1:15: /maxTokens: expected a whole number, found a string`},
		{"fraction", `{"maxTokens": 1.5}`, `f:1:15: /maxTokens: expected a whole number, found the number "1.5"`},
		{"out of range", `{"servers": {"a/b": {"port": 70000}}}`, `f:1:30: /servers/a~1b/port: expected a non-negative whole number, found the number "70000"`},
		{"object for bool", `{"on": {}}`, `f:1:8: /on: expected true or false, found an object`},
		{"null for string", `{"name": null}`, `f:1:10: /name: expected a string, found null`},
		{"array element", `{"tags": ["a", 2]}`, `f:1:16: /tags/1: expected a string, found the number "2"`},
		{"array for object", `{"servers": []}`, `f:1:13: /servers: expected an object, found an array`},
		{"object for array", `{"tags": {}}`, `f:1:10: /tags: expected an array, found an object`},
		{"bool for pointer", `{"temperature": true}`, `f:1:17: /temperature: expected a number, found true`},
		{"text unmarshaler", `{"since": 3}`, `f:1:11: /since: Time.UnmarshalJSON: input is not a JSON string`},
		{"quoted", `{"quoted": 3}`, `f:1:12: /quoted: expected a whole number in double quotes`},
		{"base64", `{"blob": "?"}`, `f:1:10: /blob: illegal base64 data at input byte 0`},
		{"root", `[]`, `f:1:1: expected an object, found an array`},
		{"trailing data", "{} {}", `f:1:4: found "{", expected nothing after the end of the document`},
		{"bare word", `{"name": sk-1234567890}`, `f:1:10: found "sk-1234567…", expected a value`},
		{"comment", "{\n// why\n}", `f:2:1: found "//", expected a key in double quotes; JSON has no comments`},
		{"single quotes", `{'a': 1}`, `f:1:2: found "'", expected a key in double quotes; strings need double quotes`},
		{"trailing comma", "{\"on\": true,\n}", `f:1:12: trailing comma before the closing "}"; remove it`},
		{"trailing comma in array", `[1,]`, `f:1:3: trailing comma before the closing "]"; remove it`},
		{"missing comma", "{\"on\": true\n \"name\": \"\"}", `f:2:2: found "\"", expected "," or "}"`},
		{"missing colon", `{"on" true}`, `f:1:7: found "true", expected ":" after the key`},
		{"cut", `{"on": `, `f:1:8: the document ends here, expected a value`},
		{"cut in string", `{"name": "x`, `f:1:10: the string does not end; close it with "`},
		{"line break in string", "{\"name\": \"x\n\"}", `f:1:10: the string does not end on its line; close it with ", or write \n for a line break`},
		{"control character", "{\"name\": \"\x01\"}", `f:1:11: control character U+0001 in a string; write \u0001`},
		{"bad escape", `{"name": "C:\dir"}`, `f:1:13: invalid escape after a backslash; write \\ for a backslash itself`},
		{"short unicode escape", `{"name": "\u12"}`, `f:1:11: invalid escape after a backslash; write \\ for a backslash itself`},
		{"leading zero", `{"maxTokens": 007}`, `f:1:15: "007" is not a number; text needs double quotes`},
		{"invalid UTF-8", "{\"name\": \"\xff\"}", `f:1:11: byte 0xff is not valid UTF-8; save the file as UTF-8`},
		{"too deep", deep, `f:1:1001: nested more than 1000 levels deep`},
		{"columns are characters", `{"ä€😀": 1}`, `f:1:2: unknown key "ä€😀" at the top level; valid keys are any, blob, maxTokens, name, named, on, quoted, raw, servers, since, tags, temperature`},
		{"after wide characters", `{"name": "ä€😀", "x": 1}`, `f:1:17: unknown key "x" at the top level; valid keys are any, blob, maxTokens, name, named, on, quoted, raw, servers, since, tags, temperature`},
		{"byte order mark", "\ufeff{\"on\": 1}", `f:1:8: /on: expected true or false, found the number "1"`},
		{"CRLF", "{\r\n\"name\": \"\",\r\n\t\"on\": 1}", `f:3:8: /on: expected true or false, found the number "1"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := settings{MaxTokens: 7}
			err := jsonpos.Decode("f", []byte(tt.data), &v)
			var e *jsonpos.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a *jsonpos.Error", err)
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
			if got := fmt.Sprint(v); got != fmt.Sprint(settings{MaxTokens: 7}) {
				t.Errorf("the value was changed: %s", got)
			}
		})
	}
}

func TestDecodeLaysOver(t *testing.T) {
	v := settings{MaxTokens: 7, Tags: []string{"old"}}
	data := "\ufeff{\r\n\"name\": \"n\", \"quoted\": \"3\", \"temperature\": null, \"blob\": \"aGk=\"," +
		`"tags": ["a"], "since": "2026-01-02T03:04:05Z", "servers": {"x": {"port": 80}}, "any": {"free": [1]}, "raw": {"k": 1}}`
	if err := jsonpos.Decode("f", []byte(data), &v); err != nil {
		t.Fatal(err)
	}
	if v.MaxTokens != 7 || v.Name != "n" || v.Quoted != 3 || string(v.Blob) != "hi" || v.Servers["x"].Port != 80 ||
		v.Tags[0] != "a" || v.Since.Year() != 2026 || string(v.Raw) != `{"k": 1}` {
		t.Errorf("got %+v", v)
	}
}

func TestDecodeNeedsPointer(t *testing.T) {
	for _, v := range []any{nil, settings{}, (*settings)(nil)} {
		if err := jsonpos.Decode("f", []byte("{}"), v); err == nil {
			t.Errorf("no error for %T", v)
		}
	}
}

func TestPosition(t *testing.T) {
	data := []byte("{\n  \"a\": {\"b/c\": [1,\n    {\"~\": true}]}\n}")
	tests := []struct {
		pointer   string
		line, col int
	}{
		{"", 1, 1},
		{"/a", 2, 8},
		{"/a/b~1c", 2, 16},
		{"/a/b~1c/0", 2, 17},
		{"/a/b~1c/1/~0", 3, 11},
		{"/a/b~1c/2", 0, 0},
		{"/a/b~1c/00", 0, 0},
		{"/x", 0, 0},
		{"x", 0, 0},
		{"/a/b~1c/0/z", 0, 0},
	}
	d, err := jsonpos.Parse("f", data)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		if line, col := d.Position(tt.pointer); line != tt.line || col != tt.col {
			t.Errorf("Position(%q) = %d:%d, want %d:%d", tt.pointer, line, col, tt.line, tt.col)
		}
	}
}

func TestErrorf(t *testing.T) {
	d, err := jsonpos.Parse("f", []byte("{\n \"a\": {\"b\": 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Errorf("/a/b", "use 2", "%d is odd", 1).Error(); got != "f:2:13: 1 is odd; use 2" {
		t.Error(got)
	}
	e := d.Errorf("/a/missing/deep", "", "is not there")
	if e.Error() != "f:2:7: is not there" || e.Pointer != "/a/missing/deep" {
		t.Errorf("%v at %s", e, e.Pointer)
	}
}

func TestNearest(t *testing.T) {
	candidates := []string{"model", "mode", "baseUrl", "apiKey"}
	for word, want := range map[string]string{
		"modle": "model", "MODE": "mode", "base_url": "baseUrl", "apikey": "apiKey", "key": "",
		"": "", strings.Repeat("m", 100): "", "moddel": "model",
	} {
		if got := jsonpos.Nearest(word, candidates); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{}`, `{"name":"x","servers":{"a":{"port":1}}}`, "\ufeff[1,2]", `{"a":`, "\"\\u00", `{"tags":["a",null]}`, "{\r\n\"on\":1}", `-`, `{"since":"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := jsonpos.Parse("f", data)
		body := strings.TrimPrefix(string(data), "\ufeff")
		if err == nil && !json.Valid([]byte(body)) {
			t.Fatal("accepted what is not JSON")
		}
		if err != nil && json.Valid([]byte(body)) && utf8.ValidString(body) && strings.Count(body, "\"") < 3 && len(body) < 900 {
			t.Fatalf("refused JSON: %v", err)
		}
		var v settings
		err = jsonpos.Decode("f", data, &v)
		if err == nil {
			if line, col := d.Position(""); line < 1 || col < 1 {
				t.Fatal("the root has no position")
			}
			return
		}
		var e *jsonpos.Error
		if !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		lines := strings.Split(body, "\n")
		if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > utf8.RuneCountInString(lines[e.Line-1])+1 {
			t.Fatalf("%d:%d is outside the document", e.Line, e.Column)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	data := []byte(`{"name":"n","maxTokens":10,"servers":{"a":{"baseUrl":"http://localhost","port":80},"b":{"port":81}},"tags":["a","b","c"]}`)
	b.ReportAllocs()
	for b.Loop() {
		var v settings
		if err := jsonpos.Decode("f", data, &v); err != nil {
			b.Fatal(err)
		}
	}
}
