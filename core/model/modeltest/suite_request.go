package modeltest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

func (s *suite) testWire(t *testing.T) {
	zero := 0.0
	schema := `{"type":"object","properties":{"z":{"type":"integer","maximum":12345678901234567890},"a":{"description":"<&>"}},"required":["z"]}`
	tools := []model.ToolDef{{Name: "count", Description: "Counts.", Schema: json.RawMessage(schema)}, {Name: "now", Deferred: true}}
	for _, test := range []struct {
		name  string
		req   func(*model.Request)
		check func(t *testing.T, got *Request)
	}{
		{"nothing that was not asked for", func(*model.Request) {}, func(t *testing.T, got *Request) {
			if got.Temperature != nil || got.MaxTokens+got.MaxCompletionTokens != 0 || got.ReasoningEffort != "" || got.Tools != nil || got.ToolChoice != nil || got.ResponseFormat != nil {
				t.Errorf("body %s", got.Body)
			}
			if got.Model != testModel || !got.Stream || got.StreamOptions == nil || !got.StreamOptions.IncludeUsage {
				t.Errorf("body %s", got.Body)
			}
		}},
		{"model", func(r *model.Request) { r.Model = "other" }, func(t *testing.T, got *Request) {
			if got.Model != "other" {
				t.Errorf("model %q", got.Model)
			}
		}},
		{"a temperature of 0", func(r *model.Request) { r.Temperature = &zero }, func(t *testing.T, got *Request) {
			if got.Temperature == nil || *got.Temperature != 0 {
				t.Errorf("body %s", got.Body)
			}
		}},
		{"no temperature for a model that refuses it", func(r *model.Request) { r.Model = "o4-mini" }, func(*testing.T, *Request) {}},
		{"effort", func(r *model.Request) { r.Effort = model.EffortLow }, func(t *testing.T, got *Request) {
			if got.ReasoningEffort != "low" {
				t.Errorf("effort %q", got.ReasoningEffort)
			}
		}},
		{"limit", func(r *model.Request) { r.MaxTokens = 77 }, func(t *testing.T, got *Request) {
			if got.MaxTokens+got.MaxCompletionTokens != 77 {
				t.Errorf("body %s", got.Body)
			}
		}},
		{"system prompt", func(r *model.Request) { r.System = "Be <brief> & \"kind\"." }, func(t *testing.T, got *Request) {
			if m := got.Messages[0]; len(got.Messages) != 2 || m.Role != "system" || m.Text() != "Be <brief> & \"kind\"." {
				t.Errorf("messages %+v", got.Messages)
			}
		}},
		{"tools", func(r *model.Request) { r.Tools = tools }, func(t *testing.T, got *Request) {
			if len(got.Tools) != 2 || got.Tools[0].Function.Name != "count" || got.Tools[0].Function.Description != "Counts." {
				t.Fatalf("tools %+v", got.Tools)
			}
			if p := got.Tools[0].Function.Parameters; string(p) != schema {
				t.Errorf("schema %s, want it unchanged: %s", p, schema)
			}
		}},
		{"tool choice", func(r *model.Request) { r.Tools, r.ToolChoice = tools, model.ToolChoiceRequired }, func(t *testing.T, got *Request) {
			if string(got.ToolChoice) != `"required"` {
				t.Errorf("tool choice %s", got.ToolChoice)
			}
		}},
		{"choice of one tool", func(r *model.Request) { r.Tools, r.ToolChoice = tools, "count" }, func(t *testing.T, got *Request) {
			var choice struct{ Function struct{ Name string } }
			if json.Unmarshal(got.ToolChoice, &choice) != nil || choice.Function.Name != "count" {
				t.Errorf("tool choice %s", got.ToolChoice)
			}
		}},
		{"schema of the answer", func(r *model.Request) { r.OutputSchema = json.RawMessage(schema) }, func(t *testing.T, got *Request) {
			if !bytes.Contains(got.ResponseFormat, []byte(schema)) {
				t.Errorf("response format %s", got.ResponseFormat)
			}
		}},
		{"several texts", func(r *model.Request) {
			r.Messages[0].Parts = model.Parts{model.Text{Text: "one"}, model.Text{Text: "two"}}
		}, func(t *testing.T, got *Request) {
			if text := got.Messages[0].Text(); text != "one\ntwo" {
				t.Errorf("text %q", text)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := s.start(t, 0, Turn{})
			req := hello()
			test.req(req)
			r.must(req)
			test.check(t, r.chat.Requests()[0])
		})
	}
}

// history is a conversation with text beside calls, a failed result, and
// parts that only other providers or versions know.
func history() *model.Request {
	return &model.Request{
		System: "Be brief.",
		Messages: []model.Message{
			{Role: model.RoleUser, Parts: model.TextParts("read both")},
			{Role: model.RoleAssistant, Parts: model.Parts{
				model.Reasoning{Text: "hidden thought", Signature: "c2ln"},
				model.Opaque{Provider: "elsewhere", Raw: json.RawMessage(`{"state":"hidden state"}`)},
				model.Text{Text: "Reading."},
				model.ToolCall{ID: "call_1", Name: "read_file", Args: `{"path":"a", "n":12345678901234567890}`},
				model.ToolCall{ID: "toolu_" + strings.Repeat("x", 60), Name: "read_file", Args: `{"path":"b"`},
			}},
			{Role: model.RoleTool, Parts: model.Parts{
				model.ToolResult{CallID: "call_1", Name: "read_file", Content: model.Parts{model.Text{Text: "first"}, model.Unknown{Kind: "chart", Raw: json.RawMessage(`{"type":"chart"}`)}}},
				model.ToolResult{CallID: "toolu_" + strings.Repeat("x", 60), Name: "read_file", Content: model.TextParts("no such file"), IsError: true},
			}},
			{Role: model.RoleAssistant, Parts: model.Parts{model.Reasoning{Text: "cut while thinking"}}},
			{Role: model.RoleUser, Parts: model.TextParts("go on")},
		},
	}
}

func (s *suite) testResults(t *testing.T) {
	r := s.start(t, 0, Turn{Text: []string{"ok"}})
	r.must(history()) // the server refuses a result without its call and a call without its result
	got := r.chat.Requests()[0]
	var roles []string
	for _, m := range got.Messages {
		roles = append(roles, m.Role)
	}
	if want := []string{"system", "user", "assistant", "tool", "tool", "user"}; !reflect.DeepEqual(roles, want) {
		t.Fatalf("roles %q, want %q", roles, want)
	}
	call, first, second := got.Messages[2], got.Messages[3], got.Messages[4]
	if call.Text() != "Reading." || len(call.ToolCalls) != 2 {
		t.Errorf("assistant message %s %+v", call.Content, call.ToolCalls)
	}
	if args := call.ToolCalls[0].Function.Arguments; args != `{"path":"a", "n":12345678901234567890}` {
		t.Errorf("arguments %s", args)
	}
	if args := call.ToolCalls[1].Function.Arguments; !json.Valid([]byte(args)) {
		t.Errorf("arguments %q: servers that parse them fail", args)
	}
	if first.ToolCallID != call.ToolCalls[0].ID || second.ToolCallID != call.ToolCalls[1].ID {
		t.Errorf("results answer %q and %q", first.ToolCallID, second.ToolCallID)
	}
	if text := first.Text(); !strings.HasPrefix(text, "first") || !strings.Contains(text, "chart") {
		t.Errorf("first result %q, want its text and a word on the part that cannot be sent", text)
	}
	if text := second.Text(); !strings.Contains(strings.ToLower(text), "error") || !strings.Contains(text, "no such file") {
		t.Errorf("failed result %q does not say that it failed", text)
	}
	if bytes.Contains(got.Body, []byte("hidden")) {
		t.Errorf("another provider's state is sent: %s", got.Body)
	}
}

func (s *suite) testImages(t *testing.T) {
	data := []byte("\x89PNG\r\n\x1a\n0123")
	want := "data:image/png;base64," + base64.StdEncoding.EncodeToString(data)
	img := model.Image{MediaType: "image/png", Data: data}
	t.Run("from the user", func(t *testing.T) {
		r := s.start(t, 0, Turn{})
		req := hello()
		req.Messages[0].Parts = model.Parts{model.Text{Text: "What is this?"}, img}
		r.must(req)
		m := r.chat.Requests()[0].Messages[0]
		if m.Text() != "What is this?" || !reflect.DeepEqual(m.Images(), []string{want}) {
			t.Errorf("content %s", m.Content)
		}
	})
	t.Run("of a result", func(t *testing.T) {
		r := s.start(t, 0, Turn{})
		req := history()
		result := req.Messages[2].Parts[0].(model.ToolResult)
		result.Content = append(result.Content, img)
		req.Messages[2].Parts[0] = result
		r.must(req)
		var images []string
		for _, m := range r.chat.Requests()[0].Messages {
			images = append(images, m.Images()...)
		}
		if !reflect.DeepEqual(images, []string{want}) {
			t.Errorf("images %q", images)
		}
	})
	t.Run("without its bytes", func(t *testing.T) {
		r := s.start(t, 0, Turn{})
		req := hello()
		req.Messages[0].Parts = model.Parts{model.Image{MediaType: "image/png", Blob: "abc"}}
		r.must(req)
		if text := r.chat.Requests()[0].Messages[0].Text(); !strings.Contains(text, "image") {
			t.Errorf("text %q does not say that there was an image", text)
		}
	})
}

func (s *suite) testRequestUnchanged(t *testing.T) {
	r := s.start(t, 0, Turn{Calls: []Call{{ID: "call_9", Name: "now"}}})
	req := history()
	// Room behind the slices shows a provider that appends to them.
	messages := append(make([]model.Message, 0, 32), req.Messages...)
	req.Messages = messages
	req.Tools = append(make([]model.ToolDef, 0, 8), model.ToolDef{Name: "now", Schema: json.RawMessage(` {"type" : "object"} `)})
	before := clone(t, req)
	schema := string(req.Tools[0].Schema)
	r.must(req)
	if !reflect.DeepEqual(clone(t, req), before) || string(req.Tools[0].Schema) != schema {
		t.Errorf("the request was changed:\n%+v\nbefore:\n%+v", req, before)
	}
	if next := messages[:cap(messages)][len(req.Messages)]; next.Role != "" {
		t.Errorf("something was appended to the request's messages: %+v", next)
	}
}
