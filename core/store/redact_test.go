package store

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// Keys are assembled here, so that scanners do not report this file as a leak.
const letters = "aB3dE5gH1jK2mN4pQ6sT8vX0zaB3dE5gH1jK2mN4pQ6s"

func TestAppendRedacts(t *testing.T) {
	key := "sk-" + letters
	j, err := Create(t.TempDir(), "s", Options{Secrets: []string{`pass"word<1>`}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	part := model.Parts{
		model.Text{Text: "is " + key + ` and pass"word<1>`},
		model.Reasoning{Text: key, Signature: key},
		model.Opaque{Provider: "p", Raw: json.RawMessage(`{"enc":"` + key + `"}`)},
		model.ToolCall{ID: "c", Name: "n", Args: `{"k":"` + key + `","p":"pass\"word<1>"}`},
	}
	e := userEvent(1, "")
	e.Body = event.ToolResult{
		Name:       "x",
		Content:    append(part, model.ToolResult{CallID: "c", Content: part}),
		Structured: json.RawMessage(`{"raw":"` + key + `","signature":["` + key + `"],"` + key + `":1,"big":12345678901234567890}`),
		Meta:       map[string]json.RawMessage{"m": json.RawMessage(`"` + key + `"`)},
		Output:     &event.Output{Text: key, Bytes: 9},
	}
	if err := j.Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	const raw = `[{"type":"text","text":"is [redacted] and [redacted]"},` +
		`{"type":"reasoning","text":"[redacted]","signature":"KEY"},` +
		`{"type":"opaque","provider":"p","raw":{"enc":"KEY"}},` +
		`{"type":"tool_call","id":"c","name":"n","args":"{\"k\":\"[redacted]\",\"p\":\"[redacted]\"}"}`
	want := `{"v":1,"seq":1,"id":"s-1","time":"1970-01-01T00:00:00Z","session":"s","type":"tool_result","name":"x","content":` +
		raw + `,{"type":"tool_result","callId":"c","name":"","content":` + raw + `]}],"output":{"text":"[redacted]","bytes":9},"durationMs":0,` +
		`"structured":{"raw":"[redacted]","signature":["[redacted]"],"[redacted]":1,"big":12345678901234567890},"meta":{"m":"[redacted]"}}`
	got := readLine(t, j)
	if want := strings.ReplaceAll(want, "KEY", key); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func BenchmarkAppend(b *testing.B) {
	key := "sk-" + letters
	source := strings.Repeat("func (t *task) run(ctx context.Context) error { // \"quoted\" <html>\n", 450)
	for _, bb := range []struct{ name, text string }{
		{"100B", strings.Repeat("x ", 50)}, {"30kB", source}, {"30kB with a key", source + key},
	} {
		b.Run(bb.name, func(b *testing.B) {
			j, err := Create(b.TempDir(), "s", Options{Secrets: []string{"some-api-key-1234", "another-api-key-5678"}})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			e := userEvent(1, bb.text)
			b.SetBytes(int64(len(bb.text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := j.Append(b.Context(), e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
