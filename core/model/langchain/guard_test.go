package langchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// The tests of this file compare langchaingo's own client with ours, on the same
// server. Each first shows the fault of langchaingo's client. If a newer langchaingo
// fixes it, the first half fails, and the workaround can be removed.

// stock returns langchaingo's own client.
func stock(t *testing.T, url string) *openai.LLM {
	t.Helper()
	llm, err := openai.New(openai.WithBaseURL(url), openai.WithToken("key"), openai.WithModel("m"), openai.WithHTTPClient(closing(t)))
	if err != nil {
		t.Fatal(err)
	}
	return llm
}

// generate calls a model with a streaming callback, and returns its only choice
// and the streamed text.
func generate(t *testing.T, llm llms.Model, options ...llms.CallOption) (*llms.ContentChoice, string, error) {
	t.Helper()
	var streamed strings.Builder
	resp, err := llm.GenerateContent(t.Context(), []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "hi")},
		append(options, llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
			streamed.Write(chunk)
			return nil
		}))...)
	if err != nil {
		return nil, streamed.String(), err
	}
	return resp.Choices[0], streamed.String(), nil
}

// always returns a server that gives the same answer to each request.
func always(turn modeltest.Turn) *modeltest.Chat {
	return modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return turn })
}

// pair returns the stock client and ours, on one server.
func pair(t *testing.T, turn modeltest.Turn) (*openai.LLM, model.Provider) {
	t.Helper()
	chat := always(turn)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	url := chat.Serve(t)
	p, err := langchain.Local(wire.Config{BaseURL: url, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return stock(t, url), p
}

// Guard 1: a stream that breaks off looks like success.
func TestGuardBrokenStreams(t *testing.T) {
	for name, edit := range map[string]modeltest.Edit{
		"early end":   modeltest.CutFrames(2),
		"error event": modeltest.Insert(2, modeltest.ErrorFrame("server_error", "", "overloaded")),
		"bad JSON":    modeltest.Insert(2, modeltest.BadJSON()),
	} {
		t.Run(name, func(t *testing.T) {
			llm, p := pair(t, modeltest.Turn{Text: []string{"Half of", " it."}, Edits: []modeltest.Edit{edit}})
			if choice, _, err := generate(t, llm); err != nil {
				t.Errorf("stock: %+v, %v; it used to succeed", choice, err)
			}
			if resp, err := model.Complete(t.Context(), p, user("hi")); err == nil {
				t.Errorf("ours succeeds: %+v", resp)
			}
		})
	}
}

// Guard 3: tool calls of a stream.
func TestGuardToolCalls(t *testing.T) {
	turn := modeltest.Turn{Calls: []modeltest.Call{
		{ID: "call_1", Name: "a", Args: []string{`{"n":`, `1}`}},
		{ID: "call_2", Name: "b", Args: []string{`{"n":`, `2}`}},
	}}
	for _, test := range []struct {
		name        string
		turn        func(*modeltest.Turn)
		stock, ours string
	}{
		{"interleaved", func(t *modeltest.Turn) { t.Interleave = true }, `a b{"n":{"n":1}2} tool_calls`, `a{"n":1} b{"n":2} tool_calls`},
		{"whole and without type", func(t *modeltest.Turn) {
			t.Calls = []modeltest.Call{{ID: "call_1", Name: "a"}, {ID: "call_2", Name: "b"}}
			t.Edits = []modeltest.Edit{modeltest.WithoutType, modeltest.Replace(`"arguments":""`, `"arguments":"{}"`)}
		}, `tool_calls`, `a{} b{} tool_calls`},
		{"null after the finish reason", func(t *modeltest.Turn) { t.Edits = []modeltest.Edit{modeltest.NullAfterFinish} }, `a{"n":1} b{"n":2} `, `a{"n":1} b{"n":2} tool_calls`},
	} {
		t.Run(test.name, func(t *testing.T) {
			turn := turn
			test.turn(&turn)
			llm, p := pair(t, turn)
			choice, streamed, err := generate(t, llm)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			for _, c := range choice.ToolCalls {
				got += c.FunctionCall.Name + c.FunctionCall.Arguments + " "
			}
			if got += choice.StopReason; got != test.stock {
				t.Errorf("stock: %s; it used to be %s", got, test.stock)
			}
			if !strings.Contains(streamed, `"function"`) {
				t.Errorf("stock: the callback for text got %q; it used to get tool calls", streamed)
			}
			resp, err := model.Complete(t.Context(), p, user("hi"))
			if err != nil {
				t.Fatal(err)
			}
			got = ""
			for _, c := range resp.Parts.ToolCalls() {
				got += c.Name + c.Args + " "
			}
			if got += string(resp.Stop); got != test.ours || resp.Parts.Text() != "" {
				t.Errorf("ours: %s and text %q; want %s", got, resp.Parts.Text(), test.ours)
			}
		})
	}
}

// Guard 4: lines over 64 KiB.
func TestGuardLongLines(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	llm, p := pair(t, modeltest.Turn{Text: []string{long}})
	if _, _, err := generate(t, llm); err == nil {
		t.Error("stock: no error; it used to fail")
	}
	resp, err := model.Complete(t.Context(), p, user("hi"))
	if err != nil || resp.Parts.Text() != long {
		t.Errorf("ours: %v", err)
	}
}

// Guard 5: an unrequested temperature, and a lost effort.
func TestGuardTemperatureAndEffort(t *testing.T) {
	chat := always(modeltest.Turn{Text: []string{"ok"}})
	llm, p := stock(t, chat.Serve(t)), serve(t, chat)
	_, _, err := generate(t, llm, llms.WithModel("o4-mini"), llms.WithThinkingMode(llms.ThinkingModeHigh))
	if err == nil || !strings.Contains(err.Error(), "temperature") {
		t.Errorf("stock: error %v; the server used to refuse the temperature", err)
	}
	if got := chat.Requests()[0]; got.ReasoningEffort != "" {
		t.Errorf("stock: body %s; it used to lose the effort", got.Body)
	}
	req := user("hi")
	req.Model, req.Effort = "o4-mini", model.EffortHigh
	if _, err := model.Complete(t.Context(), p, req); err != nil {
		t.Errorf("ours: %v", err)
	}
	if got := chat.Requests()[1]; got.ReasoningEffort != "high" {
		t.Errorf("ours: body %s", got.Body)
	}
}

// Guard 6: statuses and headers.
func TestGuardErrors(t *testing.T) {
	llm, p := pair(t, modeltest.RateLimited("7"))
	_, _, err := generate(t, llm)
	var typed *llms.Error
	if err == nil || errors.As(err, &typed) {
		t.Errorf("stock: error %v; it used to be a bare text", err)
	}
	_, err = model.Complete(t.Context(), p, user("hi"))
	if e := model.AsError(err); e == nil || e.Status != 429 || e.RetryAfter.Seconds() != 7 || e.RequestID == "" {
		t.Errorf("ours: %+v", err)
	}
}

// Guard 7: several results in one message, and calls without a type.
func TestGuardResults(t *testing.T) {
	llm, p := pair(t, modeltest.Turn{Text: []string{"ok"}})
	call := func(id, kind string) llms.ToolCall {
		return llms.ToolCall{ID: id, Type: kind, FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}}
	}
	for kind, results := range map[string][]llms.ContentPart{
		"function": {llms.ToolCallResponse{ToolCallID: "a"}, llms.ToolCallResponse{ToolCallID: "b"}},
		"":         {llms.ToolCallResponse{ToolCallID: "a"}},
	} {
		messages := []llms.MessageContent{{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{call("a", kind)}}, {Role: llms.ChatMessageTypeTool, Parts: results}}
		if _, err := llm.GenerateContent(t.Context(), messages); err == nil {
			t.Errorf("stock: type %q with %d results is accepted; it used to be refused", kind, len(results))
		}
	}
	req := user("hi")
	req.Messages = append(req.Messages,
		model.Message{Role: model.RoleAssistant, Parts: model.Parts{model.ToolCall{ID: "a", Name: "f"}, model.ToolCall{ID: "b", Name: "f"}}},
		model.Message{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "a"}, model.ToolResult{CallID: "b"}}})
	if _, err := model.Complete(t.Context(), p, req); err != nil {
		t.Errorf("ours: %v", err)
	}
}

// Guard 8: usage and stop reasons with many names and types.
func TestGuardUsageAndStopReasons(t *testing.T) {
	type mistral struct {
		Prompt int `json:"prompt_tokens"`
		Output int `json:"completion_tokens"`
	}
	for _, test := range []struct {
		choice llms.ContentChoice
		stop   model.StopReason
		usage  model.Usage
	}{
		{llms.ContentChoice{StopReason: "stop", GenerationInfo: map[string]any{"PromptTokens": 5, "CompletionTokens": 3, "PromptCachedTokens": 2, "ReasoningTokens": 1}}, model.StopEnd, model.Usage{Input: 5, CachedInput: 2, Output: 3, Reasoning: 1}},
		{llms.ContentChoice{StopReason: "end_turn", GenerationInfo: map[string]any{"InputTokens": 5, "OutputTokens": 3, "CacheReadInputTokens": 20, "CacheCreationInputTokens": 100}}, model.StopEnd, model.Usage{Input: 125, CachedInput: 20, CacheWrite: 100, Output: 3}},
		{llms.ContentChoice{StopReason: "FinishReasonMaxTokens", GenerationInfo: map[string]any{"input_tokens": int32(5), "output_tokens": int32(3)}}, model.StopMaxTokens, model.Usage{Input: 5, Output: 3}},
		{llms.ContentChoice{StopReason: "length", GenerationInfo: map[string]any{"usage": mistral{5, 3}}}, model.StopMaxTokens, model.Usage{Input: 5, Output: 3}},
		{llms.ContentChoice{StopReason: "FinishReasonSafety"}, model.StopContentFilter, model.Usage{}},
		{llms.ContentChoice{StopReason: "refusal"}, model.StopRefusal, model.Usage{}},
		{llms.ContentChoice{StopReason: "brand_new", GenerationInfo: map[string]any{"PromptTokens": 5.0, "CompletionTokens": uint8(3)}}, model.StopOther, model.Usage{Input: 5, Output: 3}},
	} {
		t.Run(test.choice.StopReason, func(t *testing.T) {
			test.choice.Content = "ok"
			p := langchain.Provider(fakeLLM(func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
				return &llms.ContentResponse{Choices: []*llms.ContentChoice{&test.choice}}, nil
			}), langchain.Traits{})
			resp, err := model.Complete(t.Context(), p, user("hi"))
			if err != nil || resp.Stop != test.stop || resp.Usage != test.usage {
				t.Errorf("response %+v, %v; want %s and %+v", resp, err, test.stop, test.usage)
			}
		})
	}
}

// Guard 9: parts that the stock client drops or garbles.
func TestGuardParts(t *testing.T) {
	chat := always(modeltest.Turn{Text: []string{"ok"}})
	llm, p := stock(t, chat.Serve(t)), serve(t, chat)
	send := func(parts ...llms.ContentPart) error {
		_, err := llm.GenerateContent(t.Context(), []llms.MessageContent{{Role: llms.ChatMessageTypeHuman, Parts: parts}})
		return err
	}
	if err := send(llms.BinaryContent{MIMEType: "image/png", Data: []byte("x")}); err == nil {
		t.Error("stock: an image as bytes is accepted; it used to be refused by the server")
	}
	if err := send(llms.TextContent{Text: "a"}, llms.ToolCallResponse{Content: "lost"}); err != nil || strings.Contains(string(chat.Requests()[1].Body), "lost") {
		t.Errorf("stock: %v, %s; the second part used to be dropped", err, chat.Requests()[1].Body)
	}
	req := user("a")
	req.Messages[0].Parts = append(req.Messages[0].Parts, model.Image{MediaType: "image/png", Data: []byte("x")},
		model.Unknown{Kind: "chart"}, model.ToolReference{Name: "later"})
	if _, err := model.Complete(t.Context(), p, req); err != nil {
		t.Fatalf("ours: %v", err)
	}
	m := chat.Requests()[2].Messages[0]
	if got := fmt.Sprintf("%q %d", m.Text(), len(m.Images())); got != `"a\n[chart, not shown]\nThe tool later was found." 1` {
		t.Errorf("ours: %s", got)
	}
}

// Guard 2: only the first part of a message is sent.
func TestGuardFirstPartOnly(t *testing.T) {
	server := modeltest.NewFunc(modeltest.Messages, func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"fine"}} })
	llm, err := anthropic.New(anthropic.WithBaseURL(server.Serve(t)), anthropic.WithToken("key"), anthropic.WithModel("claude-sonnet-4-5"), anthropic.WithHTTPClient(closing(t)))
	if err != nil {
		t.Fatal(err)
	}
	calls := []model.ToolCall{{ID: "toolu_1", Name: "read", Args: `{"n":1}`}, {ID: "toolu_2", Name: "read", Args: `{"n":2}`}}
	req := user("hi")
	req.MaxTokens = 100
	req.Tools = []model.ToolDef{{Name: "read", Description: "reads", Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}
	req.Messages = append(
		req.Messages,
		model.Message{Role: model.RoleAssistant, Parts: model.Parts{model.Text{Text: "I look."}, calls[0], calls[1]}},
		model.Message{Role: model.RoleTool, Parts: model.Parts{
			model.ToolResult{CallID: "toolu_1", Name: "read", Content: model.TextParts("one")},
			model.ToolResult{CallID: "toolu_2", Name: "read", Content: model.TextParts("two")},
		}},
	)
	for _, test := range []struct {
		name   string
		traits langchain.Traits
		lost   bool
	}{
		{"stock", langchain.Traits{}, true},
		{"ours", langchain.Traits{OnePart: true}, false},
	} {
		before := len(server.Requests())
		_, err := model.Complete(t.Context(), langchain.Provider(llm, test.traits), req)
		sent := ""
		for _, r := range server.Requests()[before:] {
			sent += string(r.Body)
		}
		// The server rejects results without their calls.
		if lost := err != nil || !strings.Contains(sent, `"toolu_1","name"`) || !strings.Contains(sent, `"toolu_2","name"`); lost != test.lost {
			t.Errorf("%s: calls lost: %v, want %v: %v\n%s", test.name, lost, test.lost, err, sent)
		}
	}
}

// Guard 10: a conversation that is encoded and decoded. langchaingo's JSON drops
// unknown kinds; ours keeps everything.
func TestGuardHistory(t *testing.T) {
	theirs := llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
		llms.ToolCall{ID: "1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "read", Arguments: `{"n": 12345678901234567890}`}},
		llms.WithCacheControl(llms.TextContent{Text: "x"}, &llms.CacheControl{Type: "ephemeral"}),
	}}
	text, err := json.Marshal(theirs)
	var back llms.MessageContent
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err == nil && reflect.DeepEqual(theirs, back) {
		t.Errorf("stock: what was written is what is read: %s", text)
	}
	ours := model.Parts{
		model.ToolCall{ID: "1", Name: "read", Args: `{"n": 12345678901234567890}`},
		model.ToolResult{CallID: "1", Name: "read", Content: model.TextParts("x")},
		model.Reasoning{Text: "hm", Signature: "signed"},
		model.Opaque{Provider: "openai", Raw: []byte(`{"type":"reasoning","encrypted_content":"gA"}`)},
	}
	if text, err = json.Marshal(ours); err != nil {
		t.Fatal(err)
	}
	var again model.Parts
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(ours, again) {
		t.Errorf("ours: %+v, %v; written %s", again, err, text)
	}
}

// Guard 11: Azure without an API version.
func TestGuardAzureVersion(t *testing.T) {
	chat := modeltest.NewFunc(modeltest.Azure, func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"fine"}} })
	url := chat.Serve(t)
	if _, err := openai.New(openai.WithAPIType(openai.APITypeAzure), openai.WithBaseURL(url), openai.WithToken("key"), openai.WithModel("dep")); err == nil {
		t.Error("stock: no embedding model is demanded any more")
	}
	transport := closing(t).Transport
	p, err := langchain.Azure(langchain.AzureConfig{Config: wire.Config{BaseURL: url, APIKey: "key", Model: "dep", Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := model.Complete(t.Context(), p, user("hi")); err != nil || resp.Parts.Text() != "fine" {
		t.Errorf("ours: %+v, %v", resp, err)
	}
}

// closing returns an HTTP client without idle connections.
func closing(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
