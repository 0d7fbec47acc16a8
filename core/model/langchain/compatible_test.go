package langchain_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// TestQuirks checks what services with and without quirks are sent.
func TestQuirks(t *testing.T) {
	req := &model.Request{Messages: []model.Message{
		{Role: model.RoleUser, Parts: model.TextParts("hi")},
		{Role: model.RoleAssistant, Parts: model.Parts{model.Reasoning{Text: "Why?"}, model.Reasoning{Text: "foreign", Signature: "s"}, model.ToolCall{ID: "call_1234567890", Name: "f", Args: `{"a":`}}},
		{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "call_1234567890", Name: "f", Content: model.TextParts("no")}}},
	}}
	for _, quirks := range [][]langchain.Quirk{nil, {langchain.QuirkNoStreamOptions, langchain.QuirkShortIDs, langchain.QuirkReplayReasoning}} {
		var sent struct {
			StreamOptions json.RawMessage `json:"stream_options"`
			Messages      []struct {
				Reasoning string `json:"reasoning_content"`
				Calls     []struct {
					ID       string
					Function struct{ Arguments string }
				} `json:"tool_calls"`
				CallID string `json:"tool_call_id"`
			}
		}
		var authorization string
		p, err := langchain.Compatible(wire.Config{Name: "work", BaseURL: "http://work.example/v1", Model: "m", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			authorization = r.Header.Get("Authorization")
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				return nil, err
			}
			answer := `{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}`
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
		})}, quirks...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.Complete(t.Context(), p, req); err != nil {
			t.Fatal(err)
		}
		call, result := sent.Messages[1], sent.Messages[2]
		id, want, reasoning := call.Calls[0].ID, 15, ""
		if quirks != nil {
			want, reasoning = 9, "Why?"
		}
		if len(id) != want || id != result.CallID || call.Reasoning != reasoning || (sent.StreamOptions == nil) != (quirks != nil) || authorization != "" {
			t.Errorf("%v: sent %+v, authorization %q", quirks, sent, authorization)
		}
		if got := call.Calls[0].Function.Arguments; got != `{"invalid_json":"{\"a\":"}` {
			t.Errorf("malformed arguments are sent as %s", got)
		}
	}
}
