package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// fakeLLM is a langchaingo model made of a function.
type fakeLLM func(ctx context.Context, messages []llms.MessageContent, opts *llms.CallOptions) (*llms.ContentResponse, error)

func (f fakeLLM) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var opts llms.CallOptions
	for _, o := range options {
		o(&opts)
	}
	return f(ctx, messages, &opts)
}

func (f fakeLLM) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, f, prompt, options...)
}

var stockTraits = langchain.Traits{Info: model.ProviderInfo{Name: "stock", Model: "m"}, ImageURLs: true}

// TestProviderOverStock runs langchaingo's own openai client behind [Provider].
func TestProviderOverStock(t *testing.T) {
	run := func(t *testing.T, turn modeltest.Turn, req *model.Request) (*model.Response, error) {
		t.Helper()
		return model.Complete(t.Context(), langchain.Provider(stock(t, always(turn).Serve(t)), stockTraits), req)
	}
	t.Run("text", func(t *testing.T) {
		resp, err := run(t, modeltest.Turn{Reasoning: []string{"hm"}, Text: []string{"one ", "two"}}, user("hi"))
		want := model.Parts{model.Reasoning{Text: "hm"}, model.Text{Text: "one two"}}
		if err != nil || !reflect.DeepEqual(resp.Parts, want) || resp.Stop != model.StopEnd || resp.Usage.Input != modeltest.DefaultUsage.Prompt {
			t.Errorf("response %+v, %v", resp, err)
		}
	})
	t.Run("calls", func(t *testing.T) {
		turn := modeltest.Turn{Text: []string{"Looking."}, Calls: []modeltest.Call{{ID: "c1", Name: "a", Args: []string{`{"n":`, `12345678901234567890}`}}, {ID: "c2", Name: "b", Args: []string{`{}`}}}}
		req := conversation(2, 20)
		resp, err := run(t, turn, req)
		want := model.Parts{model.Text{Text: "Looking."}, model.ToolCall{ID: "c1", Name: "a", Args: `{"n":12345678901234567890}`}, model.ToolCall{ID: "c2", Name: "b", Args: `{}`}}
		if err != nil || !reflect.DeepEqual(resp.Parts, want) || resp.Stop != model.StopToolCalls {
			t.Errorf("response %+v, %v", resp, err)
		}
	})
	t.Run("broken off", func(t *testing.T) {
		_, err := run(t, modeltest.Turn{Text: []string{"one ", "two"}, Edits: []modeltest.Edit{modeltest.CutFrames(3)}}, user("hi"))
		if e := model.AsError(err); e == nil || e.Code != model.CodeNetwork || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("images of the user and of a result", func(t *testing.T) {
		chat := always(modeltest.Turn{Text: []string{"ok"}})
		req := conversation(1, 5)
		img := model.Image{MediaType: "image/png", Data: []byte("x")}
		req.Messages[0].Parts = append(req.Messages[0].Parts, img)
		req.Messages[2].Parts[0] = model.ToolResult{CallID: "call_0", Name: "shot", Content: model.Parts{img}, IsError: true}
		if _, err := model.Complete(t.Context(), langchain.Provider(stock(t, chat.Serve(t)), stockTraits), req); err != nil {
			t.Fatal(err)
		}
		images := 0
		for _, m := range chat.Requests()[0].Messages {
			images += len(m.Images())
		}
		if images != 2 {
			t.Errorf("%d images in %s", images, chat.Requests()[0].Body)
		}
	})
	for _, test := range []struct {
		turn modeltest.Turn
		code model.ErrorCode
	}{
		{modeltest.Unauthorized("k"), model.CodeAuthentication},
		{modeltest.NoSuchModel("m"), model.CodeModelNotFound},
		{modeltest.ContextLength(), model.CodeContextLength},
		{modeltest.RateLimited("7"), model.CodeRateLimited},
		{modeltest.ServerError(529), model.CodeNetwork},
	} {
		t.Run(http.StatusText(test.turn.Status), func(t *testing.T) {
			_, err := run(t, test.turn, user("hi"))
			if e := model.AsError(err); e == nil || e.Code != test.code || e.Status != test.turn.Status {
				t.Errorf("error %+v, want %s", err, test.code)
			}
		})
	}
	t.Run("cancel", func(t *testing.T) {
		const tries = 50 // the stock client treats about half of the cancellations as the end of the answer
		for range tries {
			p := langchain.Provider(stock(t, always(modeltest.Turn{Text: []string{"a", "b"}, Gate: modeltest.HoldAt(2, nil)}).Serve(t)), stockTraits)
			ctx, cancel := context.WithCancel(t.Context())
			var last error
			for _, err := range p.Stream(ctx, user("hi")) {
				cancel()
				last = err
			}
			cancel()
			if !errors.Is(last, context.Canceled) {
				t.Fatalf("error %v", last)
			}
		}
	})
	t.Run("early break", func(t *testing.T) {
		chat := always(modeltest.Turn{Text: []string{"a", "b"}, Gate: modeltest.HoldAt(2, nil)})
		for range langchain.Provider(stock(t, chat.Serve(t)), stockTraits).Stream(t.Context(), user("hi")) {
			break
		}
		chat.Wait()
	})
}

func TestProviderFaults(t *testing.T) {
	stop := func(choice llms.ContentChoice, chunks ...string) fakeLLM {
		return func(ctx context.Context, _ []llms.MessageContent, opts *llms.CallOptions) (*llms.ContentResponse, error) {
			for _, c := range chunks {
				if err := opts.StreamingFunc(ctx, []byte(c)); err != nil {
					return nil, err
				}
			}
			return &llms.ContentResponse{Choices: []*llms.ContentChoice{&choice}}, nil
		}
	}
	fail := func(err error) fakeLLM {
		return func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			return nil, err
		}
	}
	for _, test := range []struct {
		name string
		llm  fakeLLM
		code model.ErrorCode
	}{
		{"no result", fail(nil), model.CodeNetwork},
		{"other text than was streamed", stop(llms.ContentChoice{Content: "abc", StopReason: "stop"}, "x"), model.CodeInvalidResponse},
		{"a call without a name", stop(llms.ContentChoice{StopReason: "tool_use", ToolCalls: []llms.ToolCall{{ID: "c"}}}), model.CodeInvalidResponse},
		{"a panic", func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			panic("index out of range")
		}, model.CodeUnknown},
		{"langchaingo's own error", fail(llms.NewError(llms.ErrCodeTokenLimit, "x", "too much")), model.CodeContextLength},
		{"a number that is no status", fail(errors.New("cannot handle 429 or 204290 tokens")), model.CodeUnknown},
		{"words", fail(errors.New("googleapi: the model is overloaded")), model.CodeNetwork},
		{"unexpected EOF", fail(fmt.Errorf("reading: %w", io.ErrUnexpectedEOF)), model.CodeNetwork},
		{"our own error", fail(fmt.Errorf("wrapped: %w", &model.Error{Code: model.CodeModelNotFound})), model.CodeModelNotFound},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := model.Complete(t.Context(), langchain.Provider(test.llm, stockTraits), user("hi"))
			if e := model.AsError(err); e == nil || e.Code != test.code {
				t.Errorf("error %v, want %s", err, test.code)
			}
		})
	}
	t.Run("secrets", func(t *testing.T) {
		p := langchain.Provider(fail(errors.New("401 for sk-the-key")), langchain.Traits{Secrets: []string{"sk-the-key", ""}})
		_, err := model.Complete(t.Context(), p, user("hi"))
		for ; err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error(), "sk-the-key") {
				t.Errorf("the error holds the key: %v", err)
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		req := user("hi")
		req.OutputSchema = []byte(`{}`)
		if _, err := model.Complete(t.Context(), langchain.Provider(fail(nil), stockTraits), req); model.AsError(err).Code != model.CodeNotSupported {
			t.Errorf("error %v", err)
		}
	})
	t.Run("text left out of the result", func(t *testing.T) {
		resp, err := model.Complete(t.Context(), langchain.Provider(stop(llms.ContentChoice{}, "all ", "of it"), langchain.Traits{NoStopReason: true}), user("hi"))
		if err != nil || resp.Parts.Text() != "all of it" || resp.Stop != model.StopEnd {
			t.Errorf("response %+v, %v", resp, err)
		}
	})
	t.Run("text not streamed to the end", func(t *testing.T) {
		resp, err := model.Complete(t.Context(), langchain.Provider(stop(llms.ContentChoice{Content: "all of it", StopReason: "stop"}, "all "), stockTraits), user("hi"))
		if err != nil || resp.Parts.Text() != "all of it" {
			t.Errorf("response %+v, %v", resp, err)
		}
	})
}

// TestTraits checks what a model receives.
func TestTraits(t *testing.T) {
	req := conversation(1, 3)
	req.Messages[1].Parts = append(model.Parts{model.Text{Text: "Reading."}}, req.Messages[1].Parts...)
	req.Messages[0].Parts = append(req.Messages[0].Parts, model.Image{MediaType: "image/png", Data: []byte("x")})
	half := 0.5
	req.Model, req.MaxTokens, req.Temperature, req.Effort, req.ToolChoice = "big", 7, &half, model.EffortXHigh, "read_file"
	for _, test := range []struct {
		name   string
		traits langchain.Traits
		want   string
	}{
		{"plain", langchain.Traits{}, "system[text] human[text binary] ai[text call] tool[result]"},
		{"one part", langchain.Traits{OnePart: true}, "system[text] human[text] human[binary] ai[text] ai[call] tool[result]"},
		{"image URLs", langchain.Traits{ImageURLs: true}, "system[text] human[text url] ai[text call] tool[result]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			var opts *llms.CallOptions
			p := langchain.Provider(fakeLLM(func(_ context.Context, messages []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
				for _, m := range messages {
					got = append(got, string(m.Role)+fmt.Sprint(kinds(m.Parts)))
				}
				opts = o
				return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "ok", StopReason: "stop"}}}, nil
			}), test.traits)
			if _, err := model.Complete(t.Context(), p, req); err != nil {
				t.Fatal(err)
			}
			if s := strings.Join(got, " "); s != test.want {
				t.Errorf("messages %s, want %s", s, test.want)
			}
			if opts.Model != "big" || opts.MaxTokens != 7 || opts.Temperature != 0.5 || len(opts.Tools) != 1 ||
				llms.GetThinkingConfig(opts).Mode != llms.ThinkingModeHigh || opts.ToolChoice.(llms.ToolChoice).Function.Name != "read_file" {
				t.Errorf("options %+v", opts)
			}
		})
	}
}

func kinds(parts []llms.ContentPart) []string {
	var out []string
	for _, p := range parts {
		switch p.(type) {
		case llms.TextContent:
			out = append(out, "text")
		case llms.BinaryContent:
			out = append(out, "binary")
		case llms.ImageURLContent:
			out = append(out, "url")
		case llms.ToolCall:
			out = append(out, "call")
		case llms.ToolCallResponse:
			out = append(out, "result")
		}
	}
	return out
}
