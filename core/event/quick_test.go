package event

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/internal/quickjson"
	"github.com/seed-009c0928/agent/core/model"
)

// quick reads an event the quick way only.
func quick(line []byte) (Event, bool) {
	r := quickjson.New(line)
	e, kind, ok := readEnvelope(&r)
	if !ok {
		return Event{}, false
	}
	e.Body, ok = quickBody(kind, r)
	return e, ok
}

// general reads an event with encoding/json only.
func general(line []byte) (Event, error) {
	if !json.Valid(line) {
		return Event{}, os.ErrInvalid
	}
	e, kind, err := decodeEnvelope(line)
	if err == nil {
		e.Body, err = decodeBody(kind, line, line)
	}
	return e, err
}

// frequent are the types of which a session log has most.
var frequent = []string{"session_start", "user", "idle", "message_start", "message", "llm_start", "llm_end", "tool_use", "tool_result", "permission"}

// variants are bodies of all types, and of the frequent ones with all kinds of values.
func variants(t *testing.T) []Body {
	t.Helper()
	texts := []string{"", "plain", "a \"quoted\" \\ text\n\twith <&> é 世界 😀 \u2028 \x7f \x01", strings.Repeat("line of output\n", 50), "{not} [json]: ,\"type\":\"idle\"", "bad \xff byte \xed\xa0\x80"}
	var list []Body
	for _, text := range texts {
		parts := model.Parts{
			model.Text{Text: text},
			model.Reasoning{Text: text, Signature: text},
			model.ToolCall{ID: "c", Name: "shell", Args: text},
			model.Opaque{Provider: "p", Raw: json.RawMessage(`{"a":[1,"]}",null]}`)},
		}
		usage := model.Usage{Input: len(text), Output: 3, CachedInput: 7, Reasoning: 1}
		list = append(
			list,
			SessionStart{Cwd: text, Model: "m", Resumed: true, Path: []string{text}}, User{Content: parts[:1], Run: text, Input: text}, User{Content: parts}, User{Content: model.Parts{}},
			Message{Content: parts, Usage: usage, Stop: model.StopEnd, Provider: text, Model: "m", Partial: true}, Message{Content: parts[2:3]},
			ToolUse{Name: "shell", Source: "builtin", Args: text},
			ToolResult{Name: "x", Content: parts[:1], IsError: true, Code: "c", DurationMS: 12, Structured: json.RawMessage(`{"x":1}`), Meta: SandboxMeta("strict")},
			ToolResult{Name: "x", Content: parts[:1], Output: &Output{Text: text, Handle: "ctx://s/1", Bytes: 7}, Meta: map[string]json.RawMessage{}},
			Permission{Tool: "shell", Decision: "allow", Reason: text, Rules: []string{text}, Accesses: []Access{{Scope: "shell-run", Resource: text, Argv: []string{"a", text}}}},
			LLMStart{Provider: "p", Model: text, Messages: 3, IdleMS: 120_000}, LLMEnd{Provider: "p", Usage: usage, LatencyMS: 5, Error: text}, Idle{State: "idle", Stop: text},
		)
	}
	return append(append(list, filled(t)...), zeroBodies(t)...)
}

// TestQuickReadsAsJSON: what is read the quick way is what encoding/json reads, and of
// the frequent types that is all that this package writes.
func TestQuickReadsAsJSON(t *testing.T) {
	t.Parallel()
	for _, body := range variants(t) {
		for _, e := range []Event{full(body), {V: Version, Seq: 1, Session: "s", Body: body}} {
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			want, err := general(line)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := quick(line)
			if ok && !reflect.DeepEqual(got, want) {
				t.Errorf("%s\nreads  %#v\nwanted %#v", line, got, want)
			}
			if ok != slices.Contains(frequent, body.Type()) {
				t.Errorf("read quickly: %t: %s", ok, line)
			}
			if err := got.UnmarshalJSON(line); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s\nis     %#v, %v\nwanted %#v", line, got, err, want)
			}
		}
	}
}

// TestDamageIsFoundQuickly: of a record in which one byte changed, or whose end is
// missing, the quick way reads what encoding/json does, or nothing.
func TestDamageIsFoundQuickly(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile(filepath.Join("testdata", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(golden) {
		line = bytes.TrimSpace(line)
		for at := range line {
			agree(t, line[:at])
			damaged := bytes.Clone(line)
			for bit := range 8 {
				damaged[at] = line[at] ^ 1<<bit
				agree(t, damaged)
			}
		}
	}
}

// agree checks that the quick way does not read anything else than encoding/json.
func agree(t *testing.T, line []byte) {
	t.Helper()
	got, ok := quick(line)
	if !ok {
		return
	}
	want, err := general(line)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nreads  %#v\nwanted %#v, %v", line, got, want, err)
	}
}

func FuzzQuick(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "events.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(golden) {
		f.Add(bytes.TrimSpace(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) { agree(t, line) })
}

// TestReadingAllocatesLittle: a record costs the memory of what is in it, and little
// else. The general way takes several times as many allocations.
func TestReadingAllocatesLittle(t *testing.T) {
	for _, test := range []struct {
		body Body
		most float64
	}{
		{Idle{State: "idle", Stop: "done"}, 5},
		{User{Content: model.TextParts("do\nthe next thing")}, 6},
		{ToolResult{Name: "shell", Content: model.TextParts(strings.Repeat("a line\n", 99)), DurationMS: 3}, 9},
	} {
		line, err := json.Marshal(Event{V: Version, Seq: 1, Session: "s", Call: "c", Body: test.body})
		if err != nil {
			t.Fatal(err)
		}
		got := testing.AllocsPerRun(100, func() {
			var e Event
			if err := e.UnmarshalJSON(line); err != nil {
				t.Error(err)
			}
		})
		if got > test.most {
			t.Errorf("%s: %v allocations, want at most %v", test.body.Type(), got, test.most)
		}
	}
}
