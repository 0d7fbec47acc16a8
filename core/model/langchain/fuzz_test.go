package langchain

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/seed-009c0928/agent/core/model"
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
		s := scanner{data: []byte(data)}
		var got, want chunk
		if !s.chunk(&got) || !s.end() {
			t.Skip("left to encoding/json")
		}
		if err := json.Unmarshal([]byte(data), &want); err != nil {
			t.Fatalf("%q is taken, but: %v", data, err)
		}
		// Whether an absent list is nil or empty, and how null is kept, is
		// of no importance.
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

// FuzzEvents feeds a stream to the reader at once and byte by byte.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"data: {\"a\":1}\n\ndata: [DONE]\n\n", "data:{}\r\n\r\n: ping\n\nevent: error\ndata: x\n\n",
		"data: {\ndata: }\n\n", "data: {}\ndata: {}\n", "data: [DO", "id: 1\nretry: 2\n\n\n\n", strings.Repeat("data: long\n", 5000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		read := func(r io.Reader) (events []string) {
			e := newEventReader(r)
			for {
				data, err := e.next()
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatalf("error %v", err)
					}
					return events
				}
				if len(data) == 0 {
					t.Fatal("an event without data")
				}
				events = append(events, string(data))
			}
		}
		whole := read(strings.NewReader(stream))
		if split := read(iotest.OneByteReader(strings.NewReader(stream))); !reflect.DeepEqual(whole, split) {
			t.Errorf("%q at once, %q byte by byte", whole, split)
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
		if a.finish() != nil {
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
