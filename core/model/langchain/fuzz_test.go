package langchain

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// FuzzScanner checks that the scanner and encoding/json read the same chunk.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"é\n\u00e9"},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`{"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"stop"}]}`,
		`{"choices":[{"delta":{"reasoning":"r","reasoning_content":null,"refusal":"no"}}],"x":[1,{"y":[true,false,null]},"z"]}`,
		`{"choices":[],"usage":{"prompt_tokens":1}}`,
		`{"Choices":[{"delta":{"content":"x"}}],"choices":[]}`,
		`{"choices":[{"delta":{"content":"x"},"delta":{"content":null}}],"id":"a","id":"b"}`,
		`{"error":{"message":"x"}}`, `{"x":01}`, `{"x":"\q"}`, ` { } `, `{}x`, `[]`, `{"choices":[{"delta":{"content":"` + "\xff" + `"}}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		var got, want chunk
		left := false
		if err := wire.Decode([]byte(data), &got, func(s *wire.Scanner) bool { return scanChunk(s, &got) }, func() { left = true }); left || err != nil {
			t.Skip("left to encoding/json")
		}
		if err := json.Unmarshal([]byte(data), &want); err != nil {
			t.Fatalf("%q is taken, but: %v", data, err)
		}
		// Whether an absent list is nil or empty, and how null is kept,
		// does not matter.
		if len(got.Choices) == 0 {
			got.Choices, want.Choices = nil, want.Choices[:0:0]
			if len(want.Choices) == 0 {
				want.Choices = nil
			}
		}
		for _, c := range [][]choice{got.Choices, want.Choices} {
			for i := range c {
				if len(c[i].Delta.ToolCalls) == 0 {
					c[i].Delta.ToolCalls = nil
				}
			}
		}
		if string(want.Error) == "null" {
			want.Error = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q\ngot  %+v\nwant %+v", data, got, want)
		}
	})
}

// FuzzAnswer checks that no sequence of chunks breaks the order of the deltas.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"choices":[{"delta":{"content":"a"}}]}` + "\n" + `{"choices":[{"delta":{},"finish_reason":"stop"}]}`)
	f.Add(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}},{"index":1,"id":"b","function":{"name":"g"}}]}}]}` + "\n" +
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]},"finish_reason":"tool_calls"}]}`)
	f.Fuzz(func(t *testing.T, chunks string) {
		var g model.Gatherer
		open := map[int]bool{}
		a := answer{emit: func(d model.Delta) error {
			switch d.Kind {
			case model.DeltaToolStart:
				if _, known := open[d.Index]; known || d.ID == "" || d.Name == "" {
					t.Fatalf("delta %+v", d)
				}
				open[d.Index] = true
			case model.DeltaToolArgs:
				if !open[d.Index] || d.Text == "" {
					t.Fatalf("delta %+v", d)
				}
			case model.DeltaToolEnd:
				if !open[d.Index] {
					t.Fatalf("delta %+v", d)
				}
				open[d.Index] = false
			}
			g.Add(d)
			return nil
		}}
		for line := range strings.SplitSeq(chunks, "\n") {
			if a.add([]byte(line)) != nil {
				return
			}
		}
		if _, err := a.Done(); err != nil {
			return
		}
		if !json.Valid(a.completion()) {
			t.Errorf("completion %s", a.completion())
		}
		g.Add(model.Delta{Kind: model.DeltaDone, Stop: stopReason(a.finishing, len(a.calls))})
		if _, err := g.Response(); err != nil {
			t.Errorf("the answer is whole, but: %v", err)
		}
	})
}
