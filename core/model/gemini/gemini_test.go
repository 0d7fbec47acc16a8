package gemini

import (
	"context"
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

const secret = "AIza-test-5f1d0c9be7a24e6c"

// The shapes are those of https://ai.google.dev/api/generate-content.
func piece1(parts string) string {
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":160,"totalTokenCount":160},"modelVersion":"gemini-2.5-flash","responseId":"resp1"}`
}

func last(parts, finish string) string {
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"},"finishReason":"` + finish + `","index":0}],"usageMetadata":{"promptTokenCount":160,"toolUsePromptTokenCount":5,"cachedContentTokenCount":40,"candidatesTokenCount":18,"thoughtsTokenCount":12,"totalTokenCount":195},"modelVersion":"gemini-2.5-flash","responseId":"resp1"}`
}

// whole is an answer with every kind of part.
func whole() string {
	return modeltest.Events(
		piece1(`{"text":"Let me ","thought":true}`), piece1(`{"text":"think.","thought":true}`),
		piece1(`{"text":"Hel"}`), piece1(`{"text":"lo \u00e9"}`), piece1(`{"text":"","thoughtSignature":"dGV4dA=="}`),
		piece1(`{"functionCall":{"id":"fc1","name":"read","args":{"n": 12345678901234567890, "s":"\u00e9"}},"thoughtSignature":"Y2FsbA=="},{"functionCall":{"name":"list"}}`),
		last(`{"text":""}`, "STOP"),
	)
}

func open(t testing.TB, url string, transport http.RoundTripper, change func(*Config)) model.Provider {
	t.Helper()
	cfg := Config{Config: wire.Config{BaseURL: url + "/v1beta", APIKey: secret, Model: "gemini-2.5-flash", Transport: transport}}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func canned(t testing.TB, transport http.RoundTripper) model.Provider {
	t.Helper()
	return open(t, "http://unused.invalid", transport, nil)
}

func user(text string) model.Message {
	return model.Message{Role: model.RoleUser, Parts: model.TextParts(text)}
}

func hello() *model.Request { return &model.Request{Messages: []model.Message{user("hello")}} }

func opaque(raw string) model.Opaque {
	return model.Opaque{Provider: "gemini", Model: "gemini-2.5-flash", Raw: json.RawMessage(raw)}
}

func TestAnswer(t *testing.T) {
	got, err := model.Complete(t.Context(), canned(t, modeltest.Canned(200, whole())), hello())
	if err != nil || len(got.Parts) != 6 {
		t.Fatalf("%+v, %v", got, err)
	}
	list, _ := got.Parts[5].(model.ToolCall)
	if !strings.HasPrefix(list.ID, "call_") || len(list.ID) < 20 {
		t.Errorf("a call without an id got %q", list.ID)
	}
	want := &model.Response{
		Parts: model.Parts{
			model.Reasoning{Text: "Let me think."},
			model.Text{Text: "Hello é"},
			opaque(`{"thoughtSignature":"dGV4dA=="}`),
			opaque(`{"thoughtSignature":"Y2FsbA==","call":true}`),
			model.ToolCall{ID: "fc1", Name: "read", Args: `{"n": 12345678901234567890, "s":"\u00e9"}`},
			model.ToolCall{ID: list.ID, Name: "list", Args: `{}`},
		},
		Usage: model.Usage{Input: 165, CachedInput: 40, Output: 30, Reasoning: 12},
		Stop:  model.StopToolCalls, ID: "resp1", Model: "gemini-2.5-flash",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestStopReasons(t *testing.T) {
	for finish, want := range map[string]model.StopReason{
		"STOP": model.StopEnd, "MAX_TOKENS": model.StopMaxTokens, "SAFETY": model.StopContentFilter, "RECITATION": model.StopContentFilter,
		"PROHIBITED_CONTENT": model.StopContentFilter, "OTHER": model.StopOther, "NEW": model.StopOther,
	} {
		resp, err := model.Complete(t.Context(), canned(t, modeltest.Canned(200, modeltest.Events(last(`{"text":"x"}`, finish)))), hello())
		if err != nil || resp.Stop != want {
			t.Errorf("%s: %+v, %v", finish, resp, err)
		}
	}
	resp, err := model.Complete(t.Context(), canned(t, modeltest.Canned(200, modeltest.Events(`{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":9}}`))), hello())
	if err != nil || resp.Stop != model.StopContentFilter || resp.Usage.Input != 9 {
		t.Errorf("a prompt that is blocked: %+v, %v", resp, err)
	}
	_, err = model.Complete(t.Context(), canned(t, modeltest.Canned(200, modeltest.Events(last(``, "MALFORMED_FUNCTION_CALL")))), hello())
	if e := model.AsError(err); e.Code != model.CodeInvalidResponse || !strings.Contains(err.Error(), "MALFORMED_FUNCTION_CALL") {
		t.Errorf("a call that cannot be read: %v", err)
	}
}

func body(t *testing.T, req *model.Request, change func(*Config)) modeltest.Recorded {
	t.Helper()
	s := modeltest.NewTranscript(whole())
	url, transport := s.Serve(t)
	if _, err := model.Complete(t.Context(), open(t, url, transport, change), req); err != nil {
		t.Fatal(err)
	}
	r := s.Requests()[0]
	if !json.Valid([]byte(r.Body)) {
		t.Fatalf("body %s", r.Body)
	}
	return r
}

// TestRoundTrip sends back answers of this provider and of others.
func TestRoundTrip(t *testing.T) {
	first, err := model.Complete(t.Context(), canned(t, modeltest.Canned(200, whole())), hello())
	if err != nil {
		t.Fatal(err)
	}
	id := first.Parts[5].(model.ToolCall).ID
	png := model.Image{MediaType: "image/png", Data: []byte("png")}
	req := &model.Request{
		System: "Be <brief>.", Tools: []model.ToolDef{{Name: "read", Description: "reads", Schema: json.RawMessage(`{"z":1,"type":"object"}`)}, {Name: "list"}},
		Messages: []model.Message{
			user("hello"),
			{Role: model.RoleAssistant, Parts: first.Parts},
			{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: id, Name: "list", Content: model.Parts{png}}}},
			{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "fc1", Name: "read", Content: model.TextParts("no"), IsError: true}}},
			{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: "and?"}, png}},
			{Role: model.RoleAssistant, Parts: model.Parts{
				model.Reasoning{Text: "x", Signature: "anthropic:y"},
				model.Opaque{Provider: "openai", Raw: json.RawMessage(`{"thoughtSignature":"no"}`)},
				model.ToolCall{ID: "toolu_1", Name: "list", Args: "no json"},
			}},
			{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "toolu_1", Name: "list"}}},
			{Role: model.RoleAssistant, Parts: model.Parts{model.Reasoning{Text: "only"}}},
		},
	}
	got := body(t, req, nil)
	if got.Path != "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse" || got.Header.Get("X-Goog-Api-Key") != secret || got.Header.Get("Authorization") != "" {
		t.Errorf("%s %v", got.Path, got.Header)
	}
	want := `{"tools":[{"functionDeclarations":[{"name":"read","description":"reads","parametersJsonSchema":{"type":"object","properties":{},"description":"z 1"}},{"name":"list","parametersJsonSchema":{"type":"object","properties":{}}}]}],` +
		`"systemInstruction":{"parts":[{"text":"Be <brief>."}]},"contents":[` +
		`{"role":"user","parts":[{"text":"hello"}]},{"role":"model","parts":[{"text":"Hello é"},{"text":"","thoughtSignature":"dGV4dA=="},` +
		`{"functionCall":{"id":"fc1","name":"read","args":{"n": 12345678901234567890, "s":"\u00e9"}},"thoughtSignature":"Y2FsbA=="},{"functionCall":{"id":"` + id + `","name":"list","args":{}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"id":"fc1","name":"read","response":{"error":"no"}}},{"functionResponse":{"id":"` + id + `","name":"list","response":{"output":""}}},{"inlineData":{"mimeType":"image/png","data":"cG5n"}}]},` +
		`{"role":"user","parts":[{"text":"and?"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}}]},` +
		`{"role":"model","parts":[{"functionCall":{"id":"toolu_1","name":"list","args":{"invalid_json":"no json"}}}]},` +
		`{"role":"user","parts":[{"functionResponse":{"id":"toolu_1","name":"list","response":{"output":""}}}]}]}`
	if got.Body != want {
		t.Errorf("body\ngot  %s\nwant %s", got.Body, want)
	}
	req.Model = "gemini-3-pro-preview"
	got = body(t, req, nil)
	for _, want := range []string{
		`{"functionCall":{"id":"fc1","name":"read","args":{"n": 12345678901234567890, "s":"\u00e9"}},"thoughtSignature":"` + foreignCall + `"},{"functionCall":{"id":"` + id + `","name":"list","args":{}}}`,
		`"response":{"output":""},"parts":[{"inlineData":{"mimeType":"image/png","data":"cG5n"}}]}}]}`,
	} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("%s is missing in %s", want, got.Body)
		}
	}
}

func TestSettings(t *testing.T) {
	tools := []model.ToolDef{{Name: "f"}}
	half := 0.5
	for _, test := range []struct {
		name string
		req  model.Request
		want string
	}{
		{"plain", model.Request{}, `{"contents":[`},
		{"limits", model.Request{MaxTokens: 9, Temperature: &half}, `{"generationConfig":{"maxOutputTokens":9,"temperature":0.5},"contents"`},
		{"budget", model.Request{Effort: "low"}, `"thinkingConfig":{"includeThoughts":true,"thinkingBudget":1024}`},
		{"no thinking", model.Request{Effort: "none"}, `"thinkingConfig":{"includeThoughts":false,"thinkingBudget":0}`},
		{"least thinking", model.Request{Model: "gemini-2.5-pro", Effort: "none"}, `"thinkingBudget":128`},
		{"most thinking", model.Request{Model: "models/gemini-2.5-pro", Effort: "xhigh"}, `"thinkingBudget":32768`},
		{"a model that does not think", model.Request{Model: "gemini-2.0-flash", Effort: "high"}, `{"contents":[`},
		{"level", model.Request{Model: "gemini-3.1-flash", Effort: "medium"}, `"thinkingLevel":"MEDIUM"`},
		{"level of the first", model.Request{Model: "gemini-3-pro-preview", Effort: "medium"}, `"thinkingLevel":"HIGH"`},
		{"least level", model.Request{Model: "gemini-3-flash", Effort: "none"}, `"thinkingLevel":"MINIMAL"`},
		{"schema", model.Request{OutputSchema: json.RawMessage(`{"type":"object"}`)}, `"responseJsonSchema":{"type":"object"},"responseMimeType":"application/json"`},
		{"choice none", model.Request{Tools: tools, ToolChoice: "none"}, `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`},
		{"choice required", model.Request{Tools: tools, ToolChoice: "required"}, `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`},
		{"choice by name", model.Request{Tools: tools, ToolChoice: "f"}, `{"allowedFunctionNames":["f"],"mode":"ANY"}`},
		{
			"options",
			model.Request{MaxTokens: 9, Tools: tools, ProviderOptions: map[string]json.RawMessage{"gemini": json.RawMessage(`{"safetySettings":[{"category":"X"}],"generationConfig":{"topK":3},"tools":[{"googleSearch":{}}]}`)}},
			`{"generationConfig":{"maxOutputTokens":9,"topK":3},"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{}}}]}],"safetySettings":[{"category":"X"}],"contents"`,
		},
	} {
		test.req.Messages = hello().Messages
		if got := body(t, &test.req, nil); !strings.Contains(got.Body, test.want) {
			t.Errorf("%s: %s is missing in %s", test.name, test.want, got.Body)
		}
	}
	for _, options := range []string{`{"contents":[]}`, `{"tools":{}}`, `{"generationConfig":[]}`} {
		req := hello()
		req.ProviderOptions = map[string]json.RawMessage{"gemini": json.RawMessage(options)}
		if _, err := model.Complete(t.Context(), canned(t, nil), req); model.AsError(err).Code != model.CodeInvalidRequest {
			t.Errorf("%s: %v", options, err)
		}
	}
}

func TestVertex(t *testing.T) {
	token := func(context.Context) (string, error) { return "ya29.token", nil }
	got := body(t, hello(), func(c *Config) {
		c.Vertex, c.Project, c.Location, c.APIKey, c.Token = true, "p", "europe-west4", "", token
	})
	if got.Path != "/v1beta/projects/p/locations/europe-west4/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse" || got.Header.Get("Authorization") != "Bearer ya29.token" {
		t.Errorf("%s %v", got.Path, got.Header)
	}
	got = body(t, hello(), func(c *Config) { c.Vertex = true })
	if got.Path != "/v1beta/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse" || got.Header.Get("X-Goog-Api-Key") != secret {
		t.Errorf("%s %v", got.Path, got.Header)
	}
	for want, cfg := range map[string]Config{
		"https://generativelanguage.googleapis.com/v1beta": {Config: wire.Config{APIKey: secret}},
		"https://aiplatform.googleapis.com/v1":             {Config: wire.Config{APIKey: secret}, Vertex: true},
		"https://us-east5-aiplatform.googleapis.com/v1":    {Config: wire.Config{APIKey: secret}, Vertex: true, Location: "us-east5"},
	} {
		if p, err := New(cfg); err != nil || p.Info().Endpoint != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, cfg := range []Config{{}, {Vertex: true, Config: wire.Config{Token: token}}, {Config: wire.Config{Token: token}}} {
		if _, err := New(cfg); model.AsError(err).Code != model.CodeNotConfigured {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestPrefix checks that a longer conversation begins with the bytes of a
// shorter one.
func TestPrefix(t *testing.T) {
	s := modeltest.NewTranscript(slices.Repeat([]string{whole()}, 20)...)
	url, transport := s.Serve(t)
	p := open(t, url, transport, nil)
	req := &model.Request{System: "system", Tools: []model.ToolDef{{Name: "read"}, {Name: "list"}}}
	before := ""
	for i := range 20 {
		req.Messages = append(req.Messages, user(fmt.Sprint("turn ", i)))
		resp, err := model.Complete(t.Context(), p, req)
		if err != nil {
			t.Fatal(err)
		}
		body := s.Requests()[i].Body
		if !strings.HasPrefix(body, before) {
			t.Fatalf("turn %d does not begin with\n%s\nbut is\n%s", i, before, body)
		}
		before = strings.TrimSuffix(body, `]}`)
		results := model.Parts{}
		for _, call := range resp.Parts.ToolCalls() {
			results = append(results, model.ToolResult{CallID: call.ID, Name: call.Name})
		}
		req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: resp.Parts}, model.Message{Role: model.RoleTool, Parts: results})
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		status    int
		body      string
		code      model.ErrorCode
		retryable bool
	}{
		{400, `{"error":{"code":400,"message":"Invalid JSON payload received.","status":"INVALID_ARGUMENT"}}`, model.CodeInvalidRequest, false},
		{400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`, model.CodeAuthentication, false},
		{400, `{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, model.CodeContextLength, false},
		{403, `{"error":{"code":403,"message":"denied","status":"PERMISSION_DENIED"}}`, model.CodeAuthentication, false},
		{404, `{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}`, model.CodeModelNotFound, false},
		{429, `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`, model.CodeRateLimited, true},
		{500, `{"error":{"code":500,"message":"internal","status":"INTERNAL"}}`, model.CodeNetwork, true},
		{503, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`, model.CodeNetwork, true},
		{504, `{"error":{"code":504,"message":"late","status":"DEADLINE_EXCEEDED"}}`, model.CodeTimeout, true},
		{200, modeltest.Events(piece1(`{"text":"x"}`), `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`), model.CodeNetwork, true},
		{200, `[{"candidates":[]}]`, model.CodeNetwork, true},
	} {
		_, err := model.Complete(t.Context(), canned(t, modeltest.Canned(test.status, test.body)), hello())
		var e *model.Error
		if !errors.As(err, &e) || e.Code != test.code || e.Retryable() != test.retryable || e.Provider != "gemini" {
			t.Errorf("%d %s: %+v", test.status, test.body, e)
		}
		if e != nil && strings.Contains(test.body, "34.5s") && e.RetryAfter.Seconds() != 34.5 {
			t.Errorf("retry after %v", e.RetryAfter)
		}
	}
}

func TestBreaks(t *testing.T) {
	modeltest.TestCuts(t, whole(), func(rt http.RoundTripper) model.Provider { return canned(t, rt) })
}

func TestModels(t *testing.T) {
	pages := map[string]string{
		"":  `{"models":[{"name":"models/a","supportedGenerationMethods":["generateContent","countTokens"]},{"name":"models/e","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"n"}`,
		"n": `{"models":[{"name":"models/b","supportedGenerationMethods":["generateContent"]}]}`,
	}
	p := canned(t, modeltest.RoundTrip(func(r *http.Request) *http.Response {
		return modeltest.Canned(200, pages[r.URL.Query().Get("pageToken")])(r)
	}))
	if got, err := model.ListModels(t.Context(), p); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("models %q, %v", got, err)
	}
	p = open(t, "http://unused.invalid", nil, func(c *Config) { c.Vertex = true })
	if _, err := model.ListModels(t.Context(), p); model.AsError(err).Code != model.CodeNotSupported {
		t.Errorf("Vertex AI: %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	for line := range strings.SplitSeq(whole(), "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			f.Add(data)
		}
	}
	f.Add(`{"error":{}}`)
	f.Fuzz(func(t *testing.T, data string) {
		var g model.Gatherer
		a := &answer{provider: "gemini", emit: func(d model.Delta) error { g.Add(d); return nil }}
		if a.Event("", []byte(data)) != nil {
			return
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
	data := []byte(piece1(`{"text":"some words, and some more, "}`))
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Event("", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode500Turns(b *testing.B) {
	p := canned(b, nil).(*provider)
	req := &model.Request{System: strings.Repeat("system ", 500)}
	for i := range 500 {
		id := fmt.Sprint("call_", i)
		req.Messages = append(
			req.Messages, user(strings.Repeat("question ", 20)),
			model.Message{Role: model.RoleAssistant, Parts: model.Parts{model.Text{Text: strings.Repeat("answer ", 50)}, model.ToolCall{ID: id, Name: "read", Args: `{"path":"a/b/c.go","limit":200}`}}},
			model.Message{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: id, Name: "read", Content: model.TextParts(strings.Repeat("line of a file\n", 30))}}},
		)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.post("gemini-2.5-flash", req); err != nil {
			b.Fatal(err)
		}
	}
}
