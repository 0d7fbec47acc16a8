package sdkcheck_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

func claude(t *testing.T, turns ...modeltest.Turn) (*modeltest.Server, anthropic.Client) {
	t.Helper()
	s, url, client := serve(t, modeltest.Messages, turns...)
	return s, anthropic.NewClient(option.WithBaseURL(url[:len(url)-len("/v1")]), option.WithAPIKey(key), option.WithHTTPClient(client), option.WithMaxRetries(0))
}

func messageParams(more ...anthropic.MessageParam) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 4096, System: []anthropic.TextBlockParam{{Text: "Be brief."}},
		Thinking: anthropic.ThinkingConfigParamOfEnabled(2048),
		Tools:    []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: map[string]any{}}, "read_file")},
		Messages: append([]anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))}, more...),
	}
}

func checkMessage(t *testing.T, m *anthropic.Message) {
	t.Helper()
	if len(m.Content) != 5 {
		t.Fatalf("message %s", m.RawJSON())
	}
	thinking := m.Content[0].AsThinking()
	same(t, "thinking", thinking.Thinking, richReasoning)
	same(t, "signature", thinking.Signature, rich().Signature)
	same(t, "redacted", m.Content[1].AsRedactedThinking().Data, "cmVkYWN0ZWQ=")
	same(t, "text", m.Content[2].AsText().Text, richText)
	call := m.Content[4].AsToolUse()
	same(t, "call id", call.ID, "call_2")
	same(t, "name", call.Name, "read_file")
	same(t, "input", string(call.Input), `{"path":"b.go"}`)
	same(t, "stop reason", m.StopReason, anthropic.StopReasonToolUse)
	same(t, "input tokens", m.Usage.InputTokens, 30)
	same(t, "cache reads", m.Usage.CacheReadInputTokens, 60)
	same(t, "cache writes", m.Usage.CacheCreationInputTokens, 10)
	same(t, "output tokens", m.Usage.OutputTokens, 30)
	same(t, "thinking tokens", m.Usage.OutputTokensDetails.ThinkingTokens, 12)
}

// accumulate reads a stream with the SDK.
func accumulate(t *testing.T, client anthropic.Client) (m anthropic.Message, err error) {
	t.Helper()
	stream := client.Messages.NewStreaming(t.Context(), messageParams())
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	return m, stream.Err()
}

func TestMessages(t *testing.T) {
	turn := rich()
	turn.Redacted = "cmVkYWN0ZWQ="
	s, client := claude(t, turn, turn)
	m, err := accumulate(t, client)
	if err != nil {
		t.Fatal(err)
	}
	checkMessage(t, &m)
	next, err := client.Messages.New(t.Context(), messageParams(m.ToParam(), anthropic.NewUserMessage(
		anthropic.NewToolResultBlock("call_1", "contents of a", true), anthropic.NewToolResultBlock("call_2", "contents of b", false),
	)))
	if err != nil {
		t.Fatal(err)
	}
	checkMessage(t, next)
	checkParsed(t, s, true)
	results := s.Requests()[1].Parsed.Results()
	same(t, "first fails", results[0].IsError, true)
	same(t, "second fails", results[1].IsError, false)
}

func TestMessagesStops(t *testing.T) {
	for stop, want := range map[model.StopReason]anthropic.StopReason{
		model.StopEnd: anthropic.StopReasonEndTurn, model.StopMaxTokens: anthropic.StopReasonMaxTokens, model.StopRefusal: anthropic.StopReasonRefusal,
	} {
		_, client := claude(t, modeltest.Turn{Text: []string{"x"}, Stop: stop})
		m, err := accumulate(t, client)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "stop reason", m.StopReason, want)
	}
}

func TestMessagesModels(t *testing.T) {
	s, client := claude(t)
	for i := range 45 {
		s.Models = append(s.Models, fmt.Sprint("claude-", i))
	}
	var names []string
	pages := client.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{})
	for pages.Next() {
		names = append(names, pages.Current().ID)
	}
	if err := pages.Err(); err != nil {
		t.Fatal(err)
	}
	same(t, "models", fmt.Sprint(names), fmt.Sprint(s.Models))
}

func TestMessagesErrors(t *testing.T) {
	for _, test := range []struct {
		turn   modeltest.Turn
		status int
		kind   string
	}{
		{modeltest.Unauthorized("x"), 401, "authentication_error"},
		{modeltest.NoSuchModel("x"), 404, "not_found_error"},
		{modeltest.ContextLength(), 400, "invalid_request_error"},
		{modeltest.RateLimited("7"), 429, "rate_limit_error"},
		{modeltest.Overloaded(), 529, "overloaded_error"},
		{modeltest.ServerError(500), 500, "api_error"},
	} {
		_, client := claude(t, test.turn)
		_, err := client.Messages.New(t.Context(), messageParams())
		var e *anthropic.Error
		if !errors.As(err, &e) {
			t.Fatalf("error %v", err)
		}
		same(t, "status", e.StatusCode, test.status)
		same(t, "type", string(e.Type()), test.kind)
		same(t, "request id", e.RequestID, "req_000001")
	}
}

func TestMessagesErrorInStream(t *testing.T) {
	frame := modeltest.Messages.ErrorFrame(*modeltest.Overloaded().Fault)
	_, client := claude(t, modeltest.Turn{Text: []string{"a"}, Edits: []modeltest.Edit{modeltest.Insert(3, frame)}})
	_, err := accumulate(t, client)
	var e *anthropic.Error
	if !errors.As(err, &e) || e.Type() != "overloaded_error" {
		t.Errorf("error %v", err)
	}
}

// TestMessagesRefusals sends requests that the service rejects.
func TestMessagesRefusals(t *testing.T) {
	user := anthropic.NewUserMessage
	reply := anthropic.NewAssistantMessage
	more := func(messages ...anthropic.MessageParam) func(*anthropic.MessageNewParams) {
		return func(p *anthropic.MessageNewParams) { p.Messages = append(p.Messages, messages...) }
	}
	goOn := user(anthropic.NewTextBlock("go on"))
	for want, change := range map[string]func(*anthropic.MessageNewParams){
		"max_tokens: must be":           func(p *anthropic.MessageNewParams) { p.MaxTokens = 0 },
		"greater than `thinking.budget": func(p *anthropic.MessageNewParams) { p.MaxTokens = 2048 },
		"or equal to 1024":              func(p *anthropic.MessageNewParams) { p.Thinking = anthropic.ThinkingConfigParamOfEnabled(100) },
		"only be set to 1":              func(p *anthropic.MessageNewParams) { p.Temperature = anthropic.Float(0) },
		"forces tool use":               func(p *anthropic.MessageNewParams) { p.ToolChoice = anthropic.ToolChoiceParamOfTool("read_file") },
		"must be non-empty":             more(user(anthropic.NewTextBlock(""))),
		"unexpected `tool_use_id`":      more(user(anthropic.NewToolResultBlock("x", "y", false))),
		"Invalid `signature`":           more(reply(anthropic.NewThinkingBlock("Zm9yZ2Vk", "hm"), anthropic.NewTextBlock("x")), goOn),
		"Invalid `data`":                more(reply(anthropic.NewRedactedThinkingBlock("Zm9yZ2Vk"), anthropic.NewTextBlock("x")), goOn),
		"without `tool_result` blocks":  more(reply(anthropic.NewToolUseBlock("a", map[string]any{}, "read_file")), goOn),
	} {
		_, client := claude(t, modeltest.Turn{})
		params := messageParams()
		change(&params)
		_, err := client.Messages.New(t.Context(), params)
		var e *anthropic.Error
		if !errors.As(err, &e) || e.StatusCode != 400 || !strings.Contains(e.RawJSON(), want) {
			t.Errorf("%v, want status 400 and a word on %q", err, want)
		}
	}
}
