package langchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// TestModel uses a provider as a langchaingo model.
func TestModel(t *testing.T) {
	t.Run("a single prompt", func(t *testing.T) {
		llm := langchain.Model(serve(t, always(modeltest.Turn{Text: []string{"forty-", "two"}})))
		got, err := llms.GenerateFromSinglePrompt(t.Context(), llm, "6 × 7?")
		if err != nil || got != "forty-two" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("text, reasoning, calls and usage", func(t *testing.T) {
		turn := modeltest.Turn{Reasoning: []string{"hm"}, Text: []string{"on", "e"}, Calls: []modeltest.Call{{ID: "c1", Name: "f", Args: []string{`{"n":12345678901234567890}`}}}, Usage: modeltest.Usage{Prompt: 9, Cached: 4, Completion: 7, Reasoning: 3}}
		var thought string
		choice, streamed, err := generate(t, langchain.Model(serve(t, always(turn))), llms.WithStreamingReasoningFunc(func(_ context.Context, reasoning, _ []byte) error {
			thought += string(reasoning)
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		if streamed != "one" || choice.Content != "one" || thought != "hm" || choice.ReasoningContent != "hm" || choice.StopReason != "tool_calls" {
			t.Errorf("streamed %q, thought %q, choice %+v", streamed, thought, choice)
		}
		want := []llms.ToolCall{{ID: "c1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: `{"n":12345678901234567890}`}}}
		if !reflect.DeepEqual(choice.ToolCalls, want) || choice.FuncCall != choice.ToolCalls[0].FunctionCall {
			t.Errorf("calls %+v", choice.ToolCalls)
		}
		for key, want := range map[string]int{"PromptTokens": 9, "CompletionTokens": 7, "TotalTokens": 16, "PromptCachedTokens": 4, "ReasoningTokens": 3} {
			if got := choice.GenerationInfo[key]; got != want {
				t.Errorf("%s = %v, want %d", key, got, want)
			}
		}
	})
	t.Run("back again", func(t *testing.T) {
		p := langchain.Provider(langchain.Model(serve(t, always(modeltest.Turn{Text: []string{"same"}}))), langchain.Traits{})
		resp, err := model.Complete(t.Context(), p, conversation(2, 10))
		if err != nil || resp.Parts.Text() != "same" || resp.Usage.Input != modeltest.DefaultUsage.Prompt {
			t.Errorf("response %+v, %v", resp, err)
		}
	})
	t.Run("errors", func(t *testing.T) {
		_, _, err := generate(t, langchain.Model(serve(t, always(modeltest.RateLimited("7")))))
		if e := model.AsError(err); e == nil || e.Code != model.CodeRateLimited || e.Status != 429 {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a failing callback", func(t *testing.T) {
		full := errors.New("disk full")
		chat := always(modeltest.Turn{Text: []string{"a", "b"}, Gate: modeltest.HoldAt(2, nil)})
		_, err := langchain.Model(serve(t, chat)).GenerateContent(t.Context(), []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "hi")},
			llms.WithStreamingFunc(func(context.Context, []byte) error { return full }))
		if !errors.Is(err, full) {
			t.Errorf("error %v", err)
		}
		chat.Wait()
	})
}

func TestStopWords(t *testing.T) {
	for _, test := range []struct {
		text  string
		words []string
		want  string
	}{
		{"Thought: go\nObservation: no", []string{"\nObservation:"}, "Thought: go"},
		{"one two three", []string{"three", "two"}, "one "},
		{"ends with Obser", []string{"Observation"}, "ends with Obser"},
		{"aaab", []string{"aab"}, "a"},
		{"nothing", []string{""}, "nothing"},
	} {
		t.Run(test.want, func(t *testing.T) {
			chat := always(modeltest.Turn{Text: strings.Split(test.text, "")})
			choice, streamed, err := generate(t, langchain.Model(serve(t, chat)), llms.WithStopWords(test.words))
			if err != nil || choice.Content != test.want || streamed != test.want || choice.StopReason != "stop" {
				t.Errorf("streamed %q, choice %+v, %v; want %q", streamed, choice, err, test.want)
			}
		})
	}
}

func TestModelRequest(t *testing.T) {
	chat := always(modeltest.Turn{})
	llm := langchain.Model(serve(t, chat))
	_, err := llm.GenerateContent(t.Context(), []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, "Be brief."),
		llms.TextParts(llms.ChatMessageTypeSystem, "Be kind."),
		{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.TextContent{Text: "look"}, llms.BinaryContent{MIMEType: "image/png", Data: []byte("a")}, llms.ImageURLContent{URL: "data:image/png;base64,Yg=="}}},
		{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.TextContent{Text: "I do."}, llms.ToolCall{ID: "c", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: `{"b":1,"a":2}`}}}},
		{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "c", Name: "f", Content: "done"}}},
	},
		llms.WithModel("m2"), llms.WithMaxTokens(5), llms.WithTemperature(0.5), llms.WithJSONMode(), llms.WithThinkingMode(llms.ThinkingModeLow),
		llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}}}),
		llms.WithToolChoice("required"))
	if err != nil {
		t.Fatal(err)
	}
	got := chat.Requests()[0]
	if got.Model != "m2" || got.MaxTokens != 5 || *got.Temperature != 0.5 || got.ReasoningEffort != "low" || got.ResponseFormat == nil || string(got.ToolChoice) != `"required"` || len(got.Tools) != 1 {
		t.Errorf("body %s", got.Body)
	}
	if len(got.Messages) != 4 || got.Messages[0].Text() != "Be brief.\n\nBe kind." || len(got.Messages[1].Images()) != 2 ||
		got.Messages[2].Text() != "I do." || got.Messages[2].ToolCalls[0].Function.Arguments != `{"b":1,"a":2}` || got.Messages[3].Text() != "done" {
		t.Errorf("body %s", got.Body)
	}
}

func TestModelRefuses(t *testing.T) {
	chat := always(modeltest.Turn{})
	llm := langchain.Model(serve(t, chat))
	human := func(parts ...llms.ContentPart) []llms.MessageContent {
		return []llms.MessageContent{{Role: llms.ChatMessageTypeHuman, Parts: parts}}
	}
	for _, test := range []struct {
		name     string
		messages []llms.MessageContent
		option   llms.CallOption
		code     model.ErrorCode
		want     string
	}{
		{"seed", human(), llms.WithSeed(1), model.CodeNotSupported, "a seed"},
		{"candidates", human(), llms.WithN(2), model.CodeNotSupported, "several candidates"},
		{"an image to fetch", human(llms.ImageURLContent{URL: "https://a/b.png"}), nil, model.CodeInvalidRequest, "base64"},
		{"a sound", human(llms.BinaryContent{MIMEType: "audio/wav"}), nil, model.CodeInvalidRequest, "audio/wav"},
		{"a call without function", human(llms.ToolCall{ID: "c7"}), nil, model.CodeInvalidRequest, "c7"},
		{"a role", []llms.MessageContent{{Role: "robot"}}, nil, model.CodeInvalidRequest, "robot"},
		{"text of a tool", []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeTool, "x")}, nil, model.CodeInvalidRequest, "ToolCallResponse"},
		{"a tool choice", human(), llms.WithToolChoice(7), model.CodeInvalidRequest, "int"},
		{"a tool", human(), llms.WithTools([]llms.Tool{{Type: "search"}}), model.CodeInvalidRequest, "search"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var options []llms.CallOption
			if test.option != nil {
				options = append(options, test.option)
			}
			_, err := llm.GenerateContent(t.Context(), test.messages, options...)
			if e := model.AsError(err); e == nil || e.Code != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s about %q", err, test.code, test.want)
			}
		})
	}
	if n := len(chat.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
