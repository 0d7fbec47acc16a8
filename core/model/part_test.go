package model_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

// everyPart has one part of every kind, with the characters that encoders often
// change.
func everyPart() model.Parts {
	return model.Parts{
		model.Text{Text: "plain <b>&\"\\\u2028 \x00 text 🦊"},
		model.Image{MediaType: "image/png", Blob: "0a1b", Bytes: 3},
		model.ToolCall{ID: "c1", Name: "shell", Args: "{ \"b\": 1,\n\t\"a\": 12345678901234567890, \"c\": \"<&>\\u003c\" }"},
		model.ToolResult{CallID: "c1", Name: "shell", IsError: true, Content: model.Parts{
			model.Text{Text: "exit 1"}, model.Image{MediaType: "image/gif", Blob: "ff"},
		}},
		model.Reasoning{Text: "hm", Signature: "c2ln+/="},
		model.ToolReference{Name: "grep"},
		model.Opaque{Provider: "openai", Model: "m", Raw: json.RawMessage(`{"id":"r1","n":12345678901234567890}`)},
		model.Unknown{Kind: "hologram", Raw: json.RawMessage(`{"type":"hologram","b":1,"a":12345678901234567890}`)},
	}
}

func TestPartsRoundTrip(t *testing.T) {
	want := everyPart()
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got model.Parts
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("parts changed on the way:\n got %#v\nwant %#v", got, want)
	}
	again, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(data) {
		t.Errorf("second encoding differs:\n got %s\nwant %s", again, data)
	}
}

func TestPartsKeepToolArgsByteForByte(t *testing.T) {
	for _, args := range []string{
		"", "{}", " {\"b\" : 1e400 , \"a\":0}\r\n", `{"path": "a`, "not JSON at all", "\u2028\u2029\ufffd", `"\ud800"`, "\x01\x7f<>&'",
	} {
		data, err := json.Marshal(model.Parts{model.ToolCall{ID: "1", Name: "t", Args: args}})
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		var got model.Parts
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if calls := got.ToolCalls(); len(calls) != 1 || calls[0].Args != args {
			t.Errorf("got %q, want %q", calls, args)
		}
	}
}

func TestUnknownPartKeepsItsBytes(t *testing.T) {
	const in = `[{ "type" : "hologram", "z": "<&>", "a": 1.0 }]`
	var ps model.Parts
	if err := json.Unmarshal([]byte(in), &ps); err != nil {
		t.Fatal(err)
	}
	out, err := ps.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != in {
		t.Errorf("got %s, want %s", out, in)
	}
}

// Nesting would cost the square of its depth.
func TestResultInAResultIsNotFollowed(t *testing.T) {
	const depth = 2000
	in := strings.Repeat(`[{"type":"tool_result","content":`, depth) + "[]" + strings.Repeat("}]", depth)
	var ps model.Parts
	if err := json.Unmarshal([]byte(in), &ps); err != nil {
		t.Fatal(err)
	}
	result, _ := ps[0].(model.ToolResult)
	if len(result.Content) != 1 {
		t.Fatalf("got %#v", ps)
	}
	if u, ok := result.Content[0].(model.Unknown); !ok || u.Kind != "tool_result" {
		t.Errorf("the inner result became %T", result.Content[0])
	}
}

func TestImageDataStaysOutOfRecords(t *testing.T) {
	data, err := json.Marshal(model.Parts{model.Image{MediaType: "image/png", Blob: "ab", Data: []byte("PIXELS")}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"type":"image","mediaType":"image/png","blob":"ab"}]`; string(data) != want {
		t.Errorf("got %s, want %s", data, want)
	}
}

func TestPartsNilAndEmpty(t *testing.T) {
	data, err := json.Marshal(model.Message{Role: model.RoleUser})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"role":"user","parts":[]}`; string(data) != want {
		t.Errorf("got %s, want %s", data, want)
	}
	ps := model.TextParts("old")
	if err := json.Unmarshal([]byte("null"), &ps); err != nil || ps != nil {
		t.Errorf("null gave %v, %v", ps, err)
	}
}

func TestPartsUnmarshalErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                         "message parts: ",
		`[null]`:                     `message part 0: missing "type"`,
		`[{"type":"text"},{}]`:       `message part 1: missing "type"`,
		`[7]`:                        "message part 0: ",
		`[{"type":"text","text":7}]`: "message part 0: ",
		`[{"type":"tool_result","content":[{"type":""}]}]`: `message part 0: message part 0: missing "type"`,
	} {
		var ps model.Parts
		err := json.Unmarshal([]byte(in), &ps)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %q…", in, err, want)
		}
	}
}

func TestPartsMarshalErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		part model.Part
		want string
	}{
		"nil":              {nil, "unknown part type"},
		"pointer":          {&model.Text{}, "*model.Text"},
		"unknown, broken":  {model.Unknown{Kind: "x", Raw: json.RawMessage(`{`)}, `"x"`},
		"unknown, empty":   {model.Unknown{Kind: "x"}, `"x"`},
		"unknown, array":   {model.Unknown{Kind: "x", Raw: json.RawMessage(`[]`)}, "cannot unmarshal array"},
		"unknown, untyped": {model.Unknown{Kind: "x", Raw: json.RawMessage(`{}`)}, `missing "type"`},
		"result in a result": {
			model.ToolResult{CallID: "c1", Content: model.Parts{model.ToolResult{CallID: "c2"}}},
			`result of tool call "c1" contains another`,
		},
		"opaque, broken": {model.Opaque{Provider: "p", Raw: json.RawMessage(`{`)}, `"opaque"`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := model.Parts{tc.part}.MarshalJSON()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %s, %v; want an error with %q", out, err, tc.want)
			}
		})
	}
}

func TestPartsText(t *testing.T) {
	for want, ps := range map[string]model.Parts{
		"":    {model.Image{}},
		"one": model.TextParts("one"),
		"ab":  {model.Text{Text: "a"}, model.Reasoning{Text: "no"}, model.Text{Text: "b"}},
	} {
		if got := ps.Text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPartsEstimateTokens(t *testing.T) {
	ps := model.Parts{
		model.Text{Text: "12345678"},
		model.Reasoning{Text: "1234"},
		model.ToolCall{Name: "tool", Args: "{  }"},
		model.Opaque{Raw: []byte("{}")},
		model.ToolResult{Content: model.Parts{model.Text{Text: "1234"}, model.Image{}}},
	}
	if got, want := ps.EstimateTokens(), 2+1+2+1+1000; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestPartsHasImage(t *testing.T) {
	for want, ps := range map[bool]model.Parts{true: {model.Text{}, model.Image{}}, false: {model.Text{}}} {
		if ps.HasImage() != want {
			t.Errorf("%v: HasImage is not %t", ps, want)
		}
	}
}

// FuzzParts checks that everything that can be read can be written, and is then
// read back unchanged.
func FuzzParts(f *testing.F) {
	data, err := json.Marshal(everyPart())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`[{"Type":"text","text":null},{"type":"tool_result","content":null},{"type":"opaque"}]`))
	f.Add([]byte(`[{"type":"x","type":"y"}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var first, second model.Parts
		if json.Unmarshal(in, &first) != nil {
			return
		}
		once, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("read, but not written: %v", err)
		}
		if err := json.Unmarshal(once, &second); err != nil {
			t.Fatalf("written, but not read: %v\n%s", err, once)
		}
		twice, err := json.Marshal(second)
		if err != nil {
			t.Fatal(err)
		}
		if string(once) != string(twice) {
			t.Fatalf("not stable:\n%s\n%s", once, twice)
		}
	})
}
