package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

func user(text string) model.Message {
	return model.Message{Role: model.RoleUser, Parts: model.TextParts(text)}
}

func hello() *model.Request { return &model.Request{Messages: []model.Message{user("hello")}} }

func TestAnswer(t *testing.T) {
	_, p := start(t, whole())
	got, err := model.Complete(t.Context(), p, hello())
	want := &model.Response{
		Parts: model.Parts{
			model.Reasoning{Text: "Let me think.", Signature: "anthropic/claude-sonnet-4-5:c2ln"},
			model.Opaque{Provider: "anthropic", Model: "claude-sonnet-4-5", Raw: json.RawMessage(`{"type":"redacted_thinking","data":"ZGF0YQ=="}`)},
			model.Text{Text: "Hello"},
			model.ToolCall{ID: "toolu_1", Name: "read", Args: `{"n": 12345678901234567890, "s":"\u00e9"}`},
			model.ToolCall{ID: "toolu_2", Name: "list", Args: `{}`},
		},
		Usage: model.Usage{Input: 165, CachedInput: 40, CacheWrite: 100, Output: 30, Reasoning: 12},
		Stop:  model.StopToolCalls, ID: "msg_1", Model: "claude-sonnet-4-5-20250929",
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("error %v\ngot  %+v\nwant %+v", err, got, want)
	}
}

func TestStopReasons(t *testing.T) {
	call := []string{blockStart(0, `{"type":"tool_use","id":"a","name":"f","input":{}}`), piece(0, `{"type":"input_json_delta","partial_json":"{\"x\":"}`), blockStop(0)}
	for reason, want := range map[string]model.StopReason{
		"end_turn": model.StopEnd, "stop_sequence": model.StopEnd, "tool_use": model.StopToolCalls, "max_tokens": model.StopMaxTokens,
		"model_context_window_exceeded": model.StopMaxTokens, "refusal": model.StopRefusal, "pause_turn": model.StopOther, "new": model.StopOther,
	} {
		_, p := start(t, modeltest.Events(append(append([]string{begin}, call...), stopped(reason), end)...))
		ended := false
		for d, err := range p.Stream(t.Context(), hello()) {
			if err != nil {
				t.Fatalf("%s: %v", reason, err)
			}
			ended = ended || d.Kind == model.DeltaToolEnd
			if d.Kind == model.DeltaDone && d.Stop != want {
				t.Errorf("%s: stop %s, want %s", reason, d.Stop, want)
			}
		}
		if cut := want == model.StopMaxTokens; ended == cut {
			t.Errorf("%s: the call has an end: %v", reason, ended)
		}
	}
}

// TestRoundTrip sends back answers of this provider and of others.
func TestRoundTrip(t *testing.T) {
	s, p := start(t, whole(), whole())
	first, err := model.Complete(t.Context(), p, hello())
	if err != nil {
		t.Fatal(err)
	}
	foreign := model.Parts{
		model.Reasoning{Text: "unsigned"},
		model.Reasoning{Text: "signed", Signature: "gemini:x"},
		model.Opaque{Provider: "openai", Raw: json.RawMessage(`{"x":1}`)},
		model.Text{Text: "  "},
		model.ToolCall{ID: "call|1 ü", Name: "read", Args: `no json`},
	}
	req := &model.Request{
		System: "Be <brief>.",
		Tools:  []model.ToolDef{{Name: "read", Schema: json.RawMessage(`{"type":"object","z":1,"a":1e40}`)}, {Name: "later", Deferred: true}},
		Messages: []model.Message{
			user("hello"),
			{Role: model.RoleAssistant, Parts: first.Parts},
			{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "toolu_2", Content: model.Parts{model.Image{MediaType: "image/png", Data: []byte("png")}}}}},
			{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "toolu_1", Content: model.TextParts("no"), IsError: true}}},
			{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: "and?"}, model.Image{MediaType: "image/jpeg", Data: []byte("jpg")}}},
			{Role: model.RoleAssistant, Parts: foreign},
			{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "call|1 ü", Content: model.Parts{model.ToolReference{Name: "later"}}}}},
		},
	}
	if _, err := model.Complete(t.Context(), p, req); err != nil {
		t.Fatal(err)
	}
	got := s.request(1)
	if h := got.header; h.Get("X-Api-Key") != secret || h.Get("Anthropic-Version") != apiVersion || h.Get("Authorization") != "" {
		t.Errorf("header %v", h)
	}
	id := wireID("call|1 ü")
	ephemeral := map[string]any{"type": "ephemeral"}
	want := []said{
		{"user", []map[string]any{{"type": "text", "text": "hello"}}},
		{"assistant", []map[string]any{
			{"type": "thinking", "thinking": "Let me think.", "signature": "c2ln"},
			{"type": "redacted_thinking", "data": "ZGF0YQ=="},
			{"type": "text", "text": "Hello"},
			{"type": "tool_use", "id": "toolu_1", "name": "read", "input": map[string]any{"n": 12345678901234567890.0, "s": "é"}},
			{"type": "tool_use", "id": "toolu_2", "name": "list", "input": map[string]any{}},
		}},
		{"user", []map[string]any{
			{"type": "tool_result", "tool_use_id": "toolu_2", "content": []any{map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": "cG5n"}}}},
			{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": []any{map[string]any{"type": "text", "text": "no"}}},
			{"type": "text", "text": "and?"},
			{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/jpeg", "data": "anBn"}, "cache_control": ephemeral},
		}},
		{"assistant", []map[string]any{{"type": "tool_use", "id": id, "name": "read", "input": map[string]any{"invalid_json": "no json"}}}},
		{"user", []map[string]any{{"type": "tool_result", "tool_use_id": id, "content": []any{map[string]any{"type": "tool_reference", "tool_name": "later"}}, "cache_control": ephemeral}}},
	}
	if !reflect.DeepEqual(got.Messages, want) {
		t.Errorf("messages\ngot  %+v\nwant %+v", got.Messages, want)
	}
	for _, exact := range []string{
		`{"n": 12345678901234567890, "s":"\u00e9"}`,
		`"input_schema":{"type":"object","z":1,"a":1e40},"cache_control":{"type":"ephemeral"}},{"name":"later","input_schema":{"type":"object","properties":{}},"defer_loading":true}]`,
		`"system":[{"type":"text","text":"Be <brief>.","cache_control":{"type":"ephemeral"}}]`,
	} {
		if !strings.Contains(got.body, exact) {
			t.Errorf("%s is missing in %s", exact, got.body)
		}
	}
	if n := strings.Count(got.body, "cache_control"); n != 4 {
		t.Errorf("%d marks of the cache, the API takes 4", n)
	}
}

func TestSettings(t *testing.T) {
	tools := []model.ToolDef{{Name: "f"}}
	half := 0.5
	called := append(hello().Messages, model.Message{Role: model.RoleAssistant, Parts: model.Parts{model.ToolCall{ID: "a", Name: "f"}}},
		model.Message{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "a"}}})
	signed := slices.Clone(called)
	signed[1].Parts = append(model.Parts{model.Reasoning{Signature: "anthropic/claude-sonnet-4-5:x"}}, called[1].Parts...)
	for _, test := range []struct {
		name string
		req  model.Request
		want string // members, as JSON
	}{
		{"plain", model.Request{}, `"max_tokens":32000,`},
		{"limit", model.Request{MaxTokens: 7, Temperature: &half}, `"max_tokens":7,"temperature":0.5,`},
		{"budget", model.Request{Effort: "low", Temperature: &half}, `"max_tokens":32000,"thinking":{"budget_tokens":4000,"type":"enabled"},`},
		{"small budget", model.Request{Effort: "high", MaxTokens: 4096}, `"max_tokens":4096,"thinking":{"budget_tokens":3072,"type":"enabled"},`},
		{"no room", model.Request{Effort: "high", MaxTokens: 2000}, `"max_tokens":2000,`},
		{"none", model.Request{Effort: "none"}, `"max_tokens":32000,`},
		{"dated", model.Request{Model: "claude-opus-4-20250514", Effort: "medium"}, `"thinking":{"budget_tokens":10000`},
		{"adaptive", model.Request{Model: "claude-opus-4-7", Effort: "xhigh"}, `"thinking":{"display":"summarized","type":"adaptive"},"output_config":{"effort":"xhigh"},`},
		{"4.6", model.Request{Model: "claude-sonnet-4-6", Effort: "xhigh"}, `"output_config":{"effort":"max"},`},
		{"newer", model.Request{Model: "claude-opus-5", Effort: "low"}, `"output_config":{"effort":"low"},`},
		{"shown without being requested", model.Request{Model: "claude-sonnet-5-5"}, `"thinking":{"display":"summarized","type":"adaptive"},"messages"`},
		{"newer, no effort", model.Request{Model: "claude-opus-5", Effort: "none"}, `"max_tokens":32000,"messages"`},
		{"schema", model.Request{OutputSchema: json.RawMessage(`{"type":"object"}`)}, `"output_config":{"format":{"schema":{"type":"object"},"type":"json_schema"}},`},
		{"choice none", model.Request{Tools: tools, ToolChoice: "none"}, `"tool_choice":{"type":"none"},`},
		{"choice any excludes thinking", model.Request{Tools: tools, ToolChoice: "required", Effort: "low"}, `"max_tokens":32000,"tool_choice":{"type":"any"},`},
		{"choice by name", model.Request{Tools: tools, ToolChoice: "f"}, `"tool_choice":{"name":"f","type":"tool"},`},
		{"choice without tools", model.Request{ToolChoice: "required"}, `"max_tokens":32000,"messages"`},
		{"after a call without thinking", model.Request{Effort: "low", Messages: called}, `"max_tokens":32000,"messages"`},
		{"after a call with thinking", model.Request{Effort: "low", Messages: signed}, `"thinking":{"budget_tokens":4000`},
		{"options", model.Request{ProviderOptions: map[string]json.RawMessage{"anthropic": json.RawMessage(`{"top_k":5,"max_tokens":9,"betas":["a","b"]}`), "other": nil}}, `"stream":true,"max_tokens":9,"top_k":5,`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, p := start(t, whole())
			if test.req.Messages == nil {
				test.req.Messages = hello().Messages
			}
			if _, err := model.Complete(t.Context(), p, &test.req); err != nil {
				t.Fatal(err)
			}
			got := s.request(0)
			if !strings.Contains(got.body, test.want) {
				t.Errorf("%s is missing in %s", test.want, got.body)
			}
			if betas := got.header.Get("Anthropic-Beta"); (betas == "a,b") != (test.name == "options") {
				t.Errorf("betas %q", betas)
			}
		})
	}
	_, p := start(t)
	for _, options := range []string{`[]`, `{"model":"x"}`, `{"betas":1}`} {
		req := hello()
		req.ProviderOptions = map[string]json.RawMessage{"anthropic": json.RawMessage(options)}
		if _, err := model.Complete(t.Context(), p, req); model.AsError(err).Code != model.CodeInvalidRequest {
			t.Errorf("%s: %v", options, err)
		}
	}
}

// TestPrefix checks that a longer conversation begins with the bytes of a
// shorter one, except for the cache marks, which move.
func TestPrefix(t *testing.T) {
	s, p := start(t, slices.Repeat([]string{whole()}, 20)...)
	req := &model.Request{System: "system", Tools: []model.ToolDef{{Name: "read"}, {Name: "list"}}}
	before := ""
	for i := range 20 {
		req.Messages = append(req.Messages, user(fmt.Sprint("turn ", i)))
		resp, err := model.Complete(t.Context(), p, req)
		if err != nil {
			t.Fatal(err)
		}
		body := strings.ReplaceAll(s.request(i).body, `,"cache_control":{"type":"ephemeral"}`, "")
		if !strings.HasPrefix(body, before) {
			t.Fatalf("turn %d does not begin with\n%s\nbut is\n%s", i, before, body)
		}
		before = strings.TrimSuffix(body, `]}`)
		req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: resp.Parts}, model.Message{Role: model.RoleTool, Parts: model.Parts{
			model.ToolResult{CallID: "toolu_1"}, model.ToolResult{CallID: "toolu_2"},
		}})
		before = before[:strings.LastIndex(before, `{"role":"user"`)]
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string
		code   model.ErrorCode
		retry  bool
	}{
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages: at least one message is required"},"request_id":"req_2"}`, model.CodeInvalidRequest, false},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 204290 tokens > 200000 maximum"}}`, model.CodeContextLength, false},
		{401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, model.CodeAuthentication, false},
		{402, `{"type":"error","error":{"type":"billing_error","message":"credit"}}`, model.CodeRateLimited, false},
		{403, `{"type":"error","error":{"type":"permission_error","message":"no"}}`, model.CodeAuthentication, false},
		{404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`, model.CodeModelNotFound, false},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, model.CodeContextLength, false},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, model.CodeRateLimited, true},
		{500, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, model.CodeNetwork, true},
		{504, `{"type":"error","error":{"type":"timeout_error","message":"timed out"}}`, model.CodeTimeout, true},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.CodeNetwork, true},
		{200, modeltest.Events(begin, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), model.CodeNetwork, true},
		{200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.CodeNetwork, true},
		{200, `{"type":"message"}`, model.CodeInvalidResponse, true},
	} {
		p := canned(t, modeltest.RoundTrip(func(r *http.Request) *http.Response {
			resp := modeltest.Canned(test.status, test.body)(r)
			resp.Header.Set("Request-Id", "req_1")
			resp.Header.Set("Retry-After", "7")
			return resp
		}))
		_, err := model.Complete(t.Context(), p, hello())
		var e *model.Error
		if !errors.As(err, &e) || e.Code != test.code || e.Retryable() != test.retry || e.Provider != "anthropic" || test.status != 200 && (e.RequestID != "req_1" || e.RetryAfter.Seconds() != 7) {
			t.Errorf("%d %s: %+v", test.status, test.body, e)
		}
	}
}

func TestBreaks(t *testing.T) {
	modeltest.TestCuts(t, whole(), func(rt http.RoundTripper) model.Provider { return canned(t, rt) })
}

func TestModels(t *testing.T) {
	pages := map[string]string{
		"":  `{"data":[{"type":"model","id":"a"},{"type":"model","id":"b"}],"has_more":true,"first_id":"a","last_id":"b"}`,
		"b": `{"data":[{"type":"model","id":"c"}],"has_more":false,"first_id":"c","last_id":"c"}`,
	}
	p := canned(t, modeltest.RoundTrip(func(r *http.Request) *http.Response {
		if r.URL.Path != "/v1/models" || r.Header.Get("X-Api-Key") != secret || r.Header.Get("Anthropic-Version") != apiVersion {
			t.Errorf("request %s %v", r.URL, r.Header)
		}
		return modeltest.Canned(200, pages[r.URL.Query().Get("after_id")])(r)
	}))
	if got, err := model.ListModels(t.Context(), p); err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("models %q, %v", got, err)
	}
}

func TestNotConfigured(t *testing.T) {
	_, err := New(Config{})
	if e := model.AsError(err); e.Code != model.CodeNotConfigured || !strings.Contains(err.Error(), "providers.anthropic.apiKey") || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		t.Errorf("error %v", err)
	}
	p, err := New(Config{Config: wire.Config{APIKey: secret}})
	if err != nil || p.Info().Endpoint != baseURL {
		t.Errorf("%v, %+v", err, p)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, e := range strings.Split(whole(), "\n\n") {
		_, data, _ := strings.Cut(e, "data: ")
		f.Add(data + "\n" + stopped("end_turn"))
	}
	f.Fuzz(func(t *testing.T, events string) {
		open := map[int]bool{}
		var g model.Gatherer
		a := &answer{provider: "anthropic", emit: func(d model.Delta) error {
			switch d.Kind {
			case model.DeltaToolStart:
				open[d.Index] = true
			case model.DeltaToolArgs, model.DeltaToolEnd:
				if !open[d.Index] {
					t.Fatalf("%+v of a call that is not open", d)
				}
				open[d.Index] = d.Kind == model.DeltaToolArgs
			}
			g.Add(d)
			return nil
		}}
		for line := range strings.SplitSeq(events, "\n") {
			if a.Event("", []byte(line)) != nil {
				break
			}
		}
		if d, err := a.Done(); err == nil {
			g.Add(d)
			if _, err := g.Response(); err != nil {
				t.Errorf("it is whole, but: %v", err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	a := &answer{emit: func(model.Delta) error { return nil }}
	_ = a.Event("content_block_start", []byte(blockStart(0, `{"type":"text","text":""}`)))
	data := []byte(piece(0, `{"type":"text_delta","text":"some words, "}`))
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Event("content_block_delta", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode500Turns(b *testing.B) {
	p, err := New(Config{Config: wire.Config{APIKey: secret, Model: "claude-sonnet-4-5"}})
	if err != nil {
		b.Fatal(err)
	}
	req := &model.Request{System: strings.Repeat("system ", 500)}
	for i := range 500 {
		id := fmt.Sprint("toolu_", i)
		req.Messages = append(
			req.Messages, user(strings.Repeat("question ", 20)),
			model.Message{Role: model.RoleAssistant, Parts: model.Parts{model.Text{Text: strings.Repeat("answer ", 50)}, model.ToolCall{ID: id, Name: "read", Args: `{"path":"a/b/c.go","limit":200}`}}},
			model.Message{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: id, Content: model.TextParts(strings.Repeat("line of a file\n", 30))}}},
		)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.(*provider).post("claude-sonnet-4-5", req); err != nil {
			b.Fatal(err)
		}
	}
}
