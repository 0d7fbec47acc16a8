package langchain_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

// TestTolerance checks what is made of the streams of servers that deviate from
// the API.
func TestTolerance(t *testing.T) {
	call := func(members, name, args string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{%s"function":{"name":%q,"arguments":%q}}]}}]}`, members, name, args)
	}
	text := func(content string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%s}}]}`, content)
	}
	end := func(usage string) string {
		return `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":` + usage + `}`
	}
	const usage = `{"prompt_tokens":3,"completion_tokens":4}`
	for _, test := range []struct {
		name, text, thought, calls string
		total                      int
		events                     []string
	}{
		{"index 0 and no ids", "", "", `f{"a":1} g{"b":2} f{"a":3}`, 7, []string{call(`"index":0,`, "f", `{"a":1}`), call(`"index":0,`, "g", `{"b":2}`), call(`"index":0,`, "f", `{"a":3}`), end(usage)}},
		{"neither index nor ids, in one chunk", "", "", `f{"a":1} f{"a":2}`, 7, []string{
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},{"function":{"name":"f","arguments":{"a":2}}}]}}]}`, end(usage),
		}},
		{"no index, one chunk each", "", "", `f{"a":1} f{"a":2}`, 7, []string{call("", "f", `{"a":1}`), call("", "f", `{"a":2}`), end(usage)}},
		{"index 0 and ids", "", "", `f{} f{"a":2}`, 7, []string{call(`"index":0,"id":"x",`, "f", `{}`), call(`"index":0,"id":"y",`, "f", `{"a":2}`), end(usage)}},
		{"the name in each piece", "", "", `f{"a":1}`, 7, []string{call(`"index":0,`, "f", `{"a"`), call(`"index":0,`, "f", `:1}`), call(`"index":0,`, "f", ""), end(usage)}},
		{"think", "Hello <think>", "Why?", "", 7, []string{text(`"\n<th"`), text(`"ink>Wh"`), text(`"y?</thi"`), text(`"nk>\n"`), text(`"\nHello <think>"`), end(usage)}},
		{"think in one piece", "Hello", "a<b", "", 7, []string{text(`"<think>a<b</think>Hello"`), end(usage)}},
		{"think without an end", "", "Why</th", "f{}", 7, []string{text(`"<think>Why</th"`), call("", "f", `{}`), end(usage)}},
		{"nearly think", "<thi", "", "", 7, []string{text(`"<thi"`), end(usage)}},
		{"a list of parts", "Hello", "Why?", "", 7, []string{text(`[{"type":"thinking","thinking":[{"type":"text","text":"Why?"}]}]`), text(`[{"type":"text","text":"Hel"},"lo",{"type":"reference","reference_ids":[1]}]`), end(usage)}},
		{"usage as float and text", "x", "", "", 7, []string{text(`"x"`), end(`{"prompt_tokens":3.0,"completion_tokens":"4"}`)}},
		{"absurd usage", "x", "", "", 4, []string{text(`"x"`), end(`{"prompt_tokens":-3e99,"completion_tokens":4,"prompt_tokens_details":"none","total_tokens":null}`)}},
		{"usage of another type", "x", "", "", 0, []string{text(`"x"`), end(`"none"`)}},
	} {
		body := "data: " + strings.Join(append(test.events, "[DONE]"), "\n\ndata: ") + "\n\n"
		p := local(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}))
		resp, err := model.Complete(t.Context(), p, user("hi"))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var calls []string
		ids := map[string]bool{}
		for _, c := range resp.Parts.ToolCalls() {
			calls = append(calls, c.Name+c.Args)
			ids[c.ID] = true
		}
		if resp.Parts.Text() != test.text || resp.Parts.Reasoning() != test.thought || strings.Join(calls, " ") != test.calls || len(ids) != len(calls) || resp.Usage.Total() != test.total {
			t.Errorf("%s: text %q, reasoning %q, calls %q, usage %+v", test.name, resp.Parts.Text(), resp.Parts.Reasoning(), calls, resp.Usage)
		}
	}
}
