package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

const secret = "sk-test-5f1d0c9be7a24e6c"

// The shapes are those of the API's documentation:
// https://platform.openai.com/docs/api-reference/responses-streaming
const (
	created   = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"model":"gpt-5-mini-2025-08-07","output":[],"usage":null}}`
	progress  = `{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress"}}`
	reasoning = `{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAA<b>","summary":[{"type":"summary_text","text":"One"},{"type":"summary_text","text":"Two"}]}`
)

func ended(status, details string) string {
	return `{"type":"response.` + status + `","sequence_number":99,"response":{"id":"resp_1","object":"response","status":"` + status + `","error":null,"incomplete_details":` + details +
		`,"model":"gpt-5-mini-2025-08-07","usage":{"input_tokens":165,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":25},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":195}}}`
}

func added(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","sequence_number":2,"output_index":%d,"item":%s}`, index, item)
}

func done(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","sequence_number":9,"output_index":%d,"item":%s}`, index, item)
}

func piece1(kind string, index int, delta string) string {
	return fmt.Sprintf(`{"type":"response.%s.delta","sequence_number":5,"item_id":"x_1","output_index":%d,"content_index":0,"delta":%s,"logprobs":[],"obfuscation":"Ab3dE"}`, kind, index, delta)
}

func summary(part int, delta string) string {
	return fmt.Sprintf(`{"type":"response.reasoning_summary_text.delta","sequence_number":4,"item_id":"rs_1","output_index":0,"summary_index":%d,"delta":%s}`, part, delta)
}

func function(id, name, args, status string) string {
	return fmt.Sprintf(`{"id":"fc_%s","type":"function_call","status":%q,"arguments":%s,"call_id":%q,"name":%q}`, id, status, args, id, name)
}

// whole is an answer with every kind of item; its calls are interleaved.
func whole() string {
	return modeltest.Events(
		created, progress,
		added(0, `{"id":"rs_1","type":"reasoning","encrypted_content":"gA","summary":[]}`),
		summary(0, `"On"`), summary(0, `"e"`), summary(1, `"Two"`), done(0, reasoning),
		added(1, `{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`),
		piece1("output_text", 1, `"Hel"`), piece1("output_text", 1, `"lo \u00e9"`),
		done(1, `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello é","annotations":[]}]}`),
		added(2, function("call_1", "read", `""`, "in_progress")), added(3, function("call_2", "list", `""`, "in_progress")),
		piece1("function_call_arguments", 2, `"{\"n\": 12345678901234567890, "`), piece1("function_call_arguments", 2, `"\"s\":\"\\u00e9\"}"`),
		done(2, function("call_1", "read", `"{\"n\": 12345678901234567890, \"s\":\"\\u00e9\"}"`, "completed")),
		done(3, function("call_2", "list", `"{}"`, "completed")),
		ended("completed", "null"),
	)
}

func open(t testing.TB, url string, transport http.RoundTripper) model.Provider {
	t.Helper()
	p, err := New(Config{
		Config:       wire.Config{BaseURL: url + "/v1", APIKey: secret, Model: "gpt-5-mini", Transport: transport},
		Organization: "org-1", Project: "proj-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func canned(t testing.TB, transport http.RoundTripper) model.Provider {
	t.Helper()
	return open(t, "http://unused.invalid", transport)
}

func user(text string) model.Message {
	return model.Message{Role: model.RoleUser, Parts: model.TextParts(text)}
}

func hello() *model.Request { return &model.Request{Messages: []model.Message{user("hello")}} }

func TestAnswer(t *testing.T) {
	got, err := model.Complete(t.Context(), canned(t, modeltest.Canned(200, whole())), hello())
	want := &model.Response{
		Parts: model.Parts{
			model.Reasoning{Text: "One\n\nTwo"},
			model.Opaque{Provider: "openai", Model: "gpt-5-mini", Raw: json.RawMessage(reasoning)},
			model.Text{Text: "Hello é"},
			model.ToolCall{ID: "call_1", Name: "read", Args: `{"n": 12345678901234567890, "s":"\u00e9"}`},
			model.ToolCall{ID: "call_2", Name: "list", Args: `{}`},
		},
		Usage: model.Usage{Input: 165, CachedInput: 40, CacheWrite: 25, Output: 30, Reasoning: 12},
		Stop:  model.StopToolCalls, ID: "resp_1", Model: "gpt-5-mini-2025-08-07",
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("error %v\ngot  %+v\nwant %+v", err, got, want)
	}
}

func TestStopReasons(t *testing.T) {
	cut := added(0, function("call_1", "f", `""`, "in_progress"))
	for _, test := range []struct {
		name   string
		events []string
		want   model.StopReason
	}{
		{"end", []string{piece1("output_text", 0, `"x"`), ended("completed", "null")}, model.StopEnd},
		{"refusal", []string{piece1("refusal", 0, `"no"`), ended("completed", "null")}, model.StopRefusal},
		{"filter", []string{ended("incomplete", `{"reason":"content_filter"}`)}, model.StopContentFilter},
		{"other", []string{piece1("output_text", 0, `"x"`), ended("incomplete", `{"reason":"new"}`)}, model.StopOther},
		{"refusal in one piece", []string{done(0, `{"type":"message","content":[{"type":"refusal","refusal":"no"}]}`), ended("completed", "null")}, model.StopRefusal},
		{"filter in a call", []string{cut, ended("incomplete", `{"reason":"content_filter"}`)}, model.StopContentFilter},
		{"cut", []string{cut, piece1("function_call_arguments", 0, `"{"`), done(0, function("call_1", "f", `"{"`, "incomplete")), ended("incomplete", `{"reason":"max_output_tokens"}`)}, model.StopMaxTokens},
	} {
		p := canned(t, modeltest.Canned(200, modeltest.Events(append([]string{created}, test.events...)...)))
		resp, err := model.Complete(t.Context(), p, hello())
		if err != nil || resp.Stop != test.want {
			t.Errorf("%s: %+v, %v", test.name, resp, err)
		}
	}
	p := canned(t, modeltest.Canned(200, modeltest.Events(created, cut, ended("completed", "null"))))
	if _, err := model.Complete(t.Context(), p, hello()); model.AsError(err).Code != model.CodeInvalidResponse {
		t.Errorf("a call without an end: %v", err)
	}
}

// TestPhases checks that the phase of a message is sent back, to its own model.
func TestPhases(t *testing.T) {
	message := func(phase string) string {
		return `{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","phase":"` + phase + `","content":[]}`
	}
	stream := modeltest.Events(created, added(0, message(strings.Repeat("long", 99))), done(0, message("")), added(0, message("commentary")), piece1("output_text", 0, `"I look."`), done(0, message("commentary")),
		added(1, message("final_answer")), piece1("output_text", 1, `"It is so."`), done(1, message("final_answer")), ended("completed", "null"))
	s := modeltest.NewTranscript(stream, stream, stream)
	url, transport := s.Serve(t)
	p := open(t, url, transport)
	first, err := model.Complete(t.Context(), p, hello())
	if err != nil || first.Parts.Text() != "I look.It is so." {
		t.Fatalf("%+v, %v", first, err)
	}
	said := func(phase, text string) string {
		return `{"type":"message","role":"assistant",` + phase + `"content":[{"type":"output_text","text":"` + text + `","annotations":[]}]}`
	}
	for name, want := range map[string]string{
		"gpt-5-mini": said(`"phase":"commentary",`, "I look.") + "," + said(`"phase":"final_answer",`, "It is so.") + "]}",
		"gpt-5.4":    said("", "I look.") + "," + said("", "It is so.") + "]}",
	} {
		kept, err := json.MarshalIndent(first.Parts, "", "  ")
		var parts model.Parts
		if err != nil || json.Unmarshal(kept, &parts) != nil {
			t.Fatal("the parts cannot be stored")
		}
		req := hello()
		req.Model = name
		req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: parts})
		if _, err := model.Complete(t.Context(), p, req); err != nil {
			t.Fatal(err)
		}
		all := s.Requests()
		if body := all[len(all)-1].Body; !strings.HasSuffix(body, want) {
			t.Errorf("%s: %s does not end with %s", name, body, want)
		}
	}
}

// TestWhole checks items that are not streamed in pieces, and answers that are not
// streamed.
func TestWhole(t *testing.T) {
	items := []string{
		reasoning,
		`{"id":"cmp_1","type":"compaction","encrypted_content":"x"}`,
		`{"id":"new_1","type":"new","encrypted_content":"x","content":"of another form","arguments":{}}`,
		`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"He","annotations":[]},{"type":"output_text","text":"llo","annotations":[]}]}`,
		function("call_1", "read", `"{}"`, "completed"),
	}
	events := []string{created}
	for i, it := range items {
		events = append(events, done(i, it))
	}
	kept := func(raw string) model.Part {
		return model.Opaque{Provider: "openai", Model: "gpt-5-mini", Raw: json.RawMessage(raw)}
	}
	want := model.Parts{model.Reasoning{Text: "One\n\nTwo"}, kept(reasoning), kept(items[1]), model.Text{Text: "Hello"}, model.ToolCall{ID: "call_1", Name: "read", Args: "{}"}}
	plain := strings.Replace(ended("completed", "null"), `"usage"`, `"output":[`+strings.Join(items, ",")+`],"usage"`, 1)
	plain = strings.TrimSuffix(plain[strings.Index(plain, `"response":`)+len(`"response":`):], "}")
	for name, body := range map[string]string{"items": modeltest.Events(append(events, ended("completed", "null"))...), "no stream": plain} {
		got, err := model.Complete(t.Context(), canned(t, modeltest.Canned(200, body)), hello())
		if err != nil || !reflect.DeepEqual(got.Parts, want) || got.Stop != model.StopToolCalls || got.ID != "resp_1" || got.Usage.Output != 30 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	cut := strings.Replace(plain, `"status":"completed","error"`, `"status":"queued","error"`, 1)
	if _, err := model.Complete(t.Context(), canned(t, modeltest.Canned(200, cut)), hello()); model.AsError(err).Code != model.CodeInvalidResponse {
		t.Errorf("an answer that is not there yet: %v", err)
	}
}

// TestMalformedArguments checks that a call with invalid arguments goes back as
// valid JSON.
func TestMalformedArguments(t *testing.T) {
	s := modeltest.NewTranscript(whole())
	url, transport := s.Serve(t)
	req := &model.Request{Messages: []model.Message{{Role: model.RoleAssistant, Parts: model.Parts{model.ToolCall{ID: "c", Name: "f", Args: `{"a":`}}}}}
	if _, err := model.Complete(t.Context(), open(t, url, transport), req); err != nil {
		t.Fatal(err)
	}
	if sent := string(s.Requests()[0].Body); !strings.Contains(sent, `"arguments":"{\"invalid_json\":\"{\\\"a\\\":\"}"`) {
		t.Errorf("sent %s", sent)
	}
}

// TestRoundTrip sends back answers of this provider and of others.
func TestRoundTrip(t *testing.T) {
	s := modeltest.NewTranscript(whole(), whole())
	url, transport := s.Serve(t)
	p := open(t, url, transport)
	first, err := model.Complete(t.Context(), p, hello())
	if err != nil {
		t.Fatal(err)
	}
	png := model.Image{MediaType: "image/png", Data: []byte("png")}
	req := &model.Request{
		System: "Be <brief>.", Tools: []model.ToolDef{{Name: "read", Description: "reads", Schema: json.RawMessage(`{"z":1,"type":"object"}`)}, {Name: "list"}},
		Messages: []model.Message{
			user("hello"),
			{Role: model.RoleAssistant, Parts: first.Parts},
			{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "call_2", Content: model.Parts{png}}, model.ToolResult{CallID: "call_1", Content: model.TextParts("no"), IsError: true}}},
			{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: "and?"}, png}},
			{Role: model.RoleAssistant, Parts: model.Parts{
				model.Reasoning{Text: "x", Signature: "anthropic:y"},
				model.Opaque{Provider: "anthropic", Raw: json.RawMessage(`{}`)},
				model.Opaque{Provider: "openai", Model: "o3", Raw: json.RawMessage(`{"other":"model"}`)},
				model.ToolCall{ID: "toolu|ü", Name: "list", Args: " "},
			}},
			{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "toolu|ü"}}},
			{Role: model.RoleAssistant, Parts: first.Parts[:2]}, // reasoning that nothing follows
		},
	}
	if _, err := model.Complete(t.Context(), p, req); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[1]
	if h := got.Header; got.Path != "/v1/responses" || h.Get("Authorization") != "Bearer "+secret || h.Get("OpenAI-Organization") != "org-1" || h.Get("OpenAI-Project") != "proj-1" {
		t.Errorf("%s %v", got.Path, h)
	}
	id := callID("toolu|ü")
	want := `{"model":"gpt-5-mini","stream":true,"store":false,"include":["reasoning.encrypted_content"],` +
		`"tools":[{"type":"function","name":"read","description":"reads","parameters":{"z":1,"type":"object","properties":{}},"strict":false},{"type":"function","name":"list","parameters":{"type":"object","properties":{}},"strict":false}],` +
		`"instructions":"Be <brief>.","input":[` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]},` + reasoning +
		`,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello é","annotations":[]}]}` +
		`,{"type":"function_call","call_id":"call_1","name":"read","arguments":"{\"n\": 12345678901234567890, \"s\":\"\\u00e9\"}"}` +
		`,{"type":"function_call","call_id":"call_2","name":"list","arguments":"{}"}` +
		`,{"type":"function_call_output","call_id":"call_2","output":[{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,cG5n"}]}` +
		`,{"type":"function_call_output","call_id":"call_1","output":"Error: no"}` +
		`,{"type":"message","role":"user","content":[{"type":"input_text","text":"and?"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,cG5n"}]}` +
		`,{"type":"function_call","call_id":"` + id + `","name":"list","arguments":"{}"},{"type":"function_call_output","call_id":"` + id + `","output":""}]}`
	if got.Body != want {
		t.Errorf("body\ngot  %s\nwant %s", got.Body, want)
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
		{"plain", model.Request{}, `"store":false,"include":["reasoning.encrypted_content"],"input"`},
		{"a model that does not reason", model.Request{Model: "gpt-4.1", Temperature: &half, MaxTokens: 9}, `"store":false,"max_output_tokens":9,"temperature":0.5,"input"`},
		{"a model for chats", model.Request{Model: "gpt-5-chat-latest"}, `"store":false,"input"`},
		{"effort", model.Request{Effort: "low"}, `"reasoning":{"effort":"low","summary":"auto"},`},
		{"no effort", model.Request{Effort: "none"}, `"reasoning":{"effort":"minimal"},`},
		{"no effort, o", model.Request{Model: "o4-mini", Effort: "none"}, `"reasoning":{"effort":"low"},`},
		{"most effort, first generation", model.Request{Effort: "xhigh"}, `"effort":"high"`},
		{"most effort", model.Request{Model: "gpt-5.2", Effort: "xhigh"}, `"effort":"xhigh"`},
		{"no effort, later", model.Request{Model: "gpt-5.1", Effort: "none"}, `"reasoning":{"effort":"none"},`},
		{"effort of a model that does not reason", model.Request{Model: "gpt-4.1", Effort: "high"}, `"store":false,"input"`},
		{"effort of a deployment", model.Request{Model: "my-deployment", Effort: "none"}, `"include":["reasoning.encrypted_content"],"reasoning":{"effort":"none"},"input"`},
		{"schema", model.Request{OutputSchema: json.RawMessage(`{"type":"object"}`)}, `"text":{"format":{"name":"answer","schema":{"type":"object"},"type":"json_schema"}},`},
		{"choice none", model.Request{Tools: tools, ToolChoice: "none"}, `"tool_choice":"none",`},
		{"choice required", model.Request{Tools: tools, ToolChoice: "required"}, `"tool_choice":"required",`},
		{"choice by name", model.Request{Tools: tools, ToolChoice: "f"}, `"tool_choice":{"name":"f","type":"function"},`},
		{"choice without tools", model.Request{ToolChoice: "required"}, `.encrypted_content"],"input"`},
		{"options", model.Request{ProviderOptions: own(`{"service_tier":"flex","prompt_cache_key":"k"}`)}, `"prompt_cache_key":"k","service_tier":"flex","input"`},
		{"options beside settings", model.Request{Effort: "high", OutputSchema: json.RawMessage(`{}`), ProviderOptions: own(`{"text":{"verbosity":"low"},"reasoning":{"summary":"detailed"},"include":["message.output_text.logprobs"]}`)}, `"include":["message.output_text.logprobs","reasoning.encrypted_content"],"reasoning":{"effort":"high","summary":"detailed"},"text":{"format":{"name":"answer","schema":{},"type":"json_schema"},"verbosity":"low"},"input"`},
		{"no summary", model.Request{Effort: "high", ProviderOptions: own(`{"reasoning":{"summary":null}}`)}, `"reasoning":{"effort":"high","summary":null},"input"`},
		{"no reasoning", model.Request{Effort: "high", ProviderOptions: own(`{"reasoning":null}`)}, `"include":["reasoning.encrypted_content"],"input"`},
	} {
		s := modeltest.NewTranscript(whole())
		url, transport := s.Serve(t)
		test.req.Messages = hello().Messages
		if _, err := model.Complete(t.Context(), open(t, url, transport), &test.req); err != nil {
			t.Fatal(err)
		}
		if body := s.Requests()[0].Body; !strings.Contains(body, test.want) || !json.Valid([]byte(body)) {
			t.Errorf("%s: %s is missing in %s", test.name, test.want, body)
		}
	}
	for _, options := range []string{`{"store":true}`, `{"previous_response_id":"resp_1"}`, `{"text":"low"}`, `[]`} {
		req := hello()
		req.ProviderOptions = own(options)
		if _, err := model.Complete(t.Context(), canned(t, nil), req); model.AsError(err).Code != model.CodeInvalidRequest {
			t.Errorf("options %s: %v", options, err)
		}
	}
}

func TestEfforts(t *testing.T) {
	asked := []model.Effort{"", "none", "low", "medium", "high", "xhigh", "new"}
	for name, want := range map[string]string{
		"o4-mini":                        " low low medium high high new",
		"ft:o4-mini-2025-04-16:org::abc": " low low medium high high new",
		"codex-mini-latest":              " low low medium high high new",
		"gpt-5":                          " minimal low medium high high new",
		"gpt-5-mini-2025-08-07":          " minimal low medium high high new",
		"gpt-5-pro":                      " high high high high high new",
		"gpt-5-codex":                    " low low medium high high new",
		"gpt-5.1":                        " none low medium high high new",
		"gpt-5.1-codex-mini":             " low low medium high high new",
		"gpt-5.1-codex-max":              " low low medium high xhigh new",
		"gpt-5.2":                        " none low medium high xhigh new",
		"gpt-5.2-pro-2025-12-11":         " medium medium medium high xhigh new",
		"gpt-5.3-codex":                  " low low medium high xhigh new",
		"gpt-6-astra":                    " none low medium high xhigh new",
		"gpt-10":                         " none low medium high xhigh new",
		"gpt-4o":                         "      new",
		"gpt-5-chat-latest":              "      new",
		"deployment":                     " none low medium high xhigh new",
	} {
		var got []string
		for _, e := range asked {
			got = append(got, effort(name, e))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", name, strings.Join(got, " "), want)
		}
	}
}

// own returns options for the provider.
func own(options string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"openai": json.RawMessage(options)}
}

// TestPrefix checks that a longer conversation begins with the bytes of a
// shorter one.
func TestPrefix(t *testing.T) {
	s := modeltest.NewTranscript(slices.Repeat([]string{whole()}, 20)...)
	url, transport := s.Serve(t)
	p := open(t, url, transport)
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
		req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: resp.Parts}, model.Message{Role: model.RoleTool, Parts: model.Parts{
			model.ToolResult{CallID: "call_1"}, model.ToolResult{CallID: "call_2"},
		}})
	}
}

func failed(code, message string) string {
	return fmt.Sprintf(`{"type":"response.failed","sequence_number":3,"response":{"id":"resp_1","status":"failed","error":{"code":%q,"message":%q}}}`, code, message)
}

// TestRetryAfter checks that a header takes precedence over the message.
func TestRetryAfter(t *testing.T) {
	limit := func(wait string) string {
		return "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in " + wait + ". Visit https://platform.openai.com/account/rate-limits to learn more."
	}
	for words, want := range map[string]time.Duration{
		limit("1.898s"): 1898 * time.Millisecond, limit("28ms"): 28 * time.Millisecond, limit("6m0s"): 6 * time.Minute, limit("7m12.5s"): 432500 * time.Millisecond,
		limit("1h2m"): 62 * time.Minute, limit("a while"): 0, limit("99999999999999999999h"): 0, "Try again in 20S": 20 * time.Second,
	} {
		body := fmt.Sprintf(`{"error":{"message":%q,"type":"tokens","code":"rate_limit_exceeded"}}`, words)
		for name, transport := range map[string]modeltest.RoundTrip{
			"status": modeltest.Canned(429, body), "event": modeltest.Canned(200, modeltest.Events(created, failed("rate_limit_exceeded", words))),
		} {
			_, err := model.Complete(t.Context(), canned(t, transport), hello())
			if e := model.AsError(err); e.Code != model.CodeRateLimited || e.RetryAfter != want {
				t.Errorf("%s, %s: wait %v of %v, want %v", name, words, e.RetryAfter, err, want)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		status    int
		body      string
		code      model.ErrorCode
		retryable bool
	}{
		{400, `{"error":{"message":"Unsupported parameter","type":"invalid_request_error","param":"temperature","code":null}}`, model.CodeInvalidRequest, false},
		{400, `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, model.CodeContextLength, false},
		{401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, model.CodeAuthentication, false},
		{403, `{"error":{"message":"Country not supported","type":"request_forbidden","code":"unsupported_country_region_territory"}}`, model.CodeAuthentication, false},
		{404, `{"error":{"message":"The model does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, model.CodeModelNotFound, false},
		{404, `{"error":{"message":"Invalid URL (POST /v1/responses)","type":"invalid_request_error","param":null,"code":"unknown_url"}}`, model.CodeNotConfigured, false},
		{429, `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, model.CodeRateLimited, true},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, model.CodeRateLimited, false},
		{500, `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`, model.CodeNetwork, true},
		{503, `{"error":{"message":"Overloaded","type":"server_error"}}`, model.CodeNetwork, true},
		{504, ``, model.CodeTimeout, true},
		{429, `{"error":{"message":"Request too large for gpt-5 in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, model.CodeContextLength, false},
		{429, `{"error":{"message":"Slow down","type":"requests","code":"slow_down"}}`, model.CodeRateLimited, true},
		{400, `{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","code":"billing_hard_limit_reached"}}`, model.CodeRateLimited, false},
		{400, `{"error":{"message":"Our servers are currently overloaded.","type":"service_unavailable_error","code":null}}`, model.CodeNetwork, true},
		{503, `{"error":{"message":"Overloaded","type":"service_unavailable_error","code":"server_is_overloaded"}}`, model.CodeNetwork, true},
		{400, `{"error":{"message":"The encrypted content for item rs_1 could not be verified.","type":"invalid_request_error","code":"invalid_encrypted_content"}}`, model.CodeInvalidRequest, false},
		{413, `<html>`, model.CodeContextLength, false},
		{200, modeltest.Events(created, failed("invalid_base64_image", "The image is broken")), model.CodeInvalidRequest, false},
		{200, modeltest.Events(created, failed("bio_policy", "No")), model.CodeInvalidRequest, false},
		{200, modeltest.Events(created, failed("server_is_overloaded", "Overloaded")), model.CodeNetwork, true},
		{200, modeltest.Events(created, failed("context_length_exceeded", "Too long")), model.CodeContextLength, false},
		{200, modeltest.Events(created, `{"type":"error","sequence_number":3,"code":"rate_limit_exceeded","message":"slow down","param":null}`), model.CodeRateLimited, true},
		{200, modeltest.Events(created, failed("server_error", "it broke")), model.CodeNetwork, true},
		{200, `{"error":{"message":"it broke","code":"server_error"}}`, model.CodeNetwork, true},
		{200, `{"object":"chat.completion"}`, model.CodeInvalidResponse, true},
	} {
		_, err := model.Complete(t.Context(), canned(t, modeltest.Canned(test.status, test.body)), hello())
		var e *model.Error
		if !errors.As(err, &e) || e.Code != test.code || e.Retryable() != test.retryable || e.Provider != "openai" || e.Message == "" {
			t.Errorf("%d %s: %+v", test.status, test.body, e)
		}
	}
}

func TestBreaks(t *testing.T) {
	modeltest.TestCuts(t, whole(), func(rt http.RoundTripper) model.Provider { return canned(t, rt) })
}

func TestModels(t *testing.T) {
	p := canned(t, modeltest.Canned(200, `{"object":"list","data":[{"id":"b","object":"model","created":1,"owned_by":"openai"},{"id":"a"}]}`))
	if got, err := model.ListModels(t.Context(), p); err != nil || !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("models %q, %v", got, err)
	}
}

func TestNotConfigured(t *testing.T) {
	_, err := New(Config{})
	if e := model.AsError(err); e.Code != model.CodeNotConfigured || !strings.Contains(err.Error(), "providers.openai.apiKey") || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Errorf("error %v", err)
	}
	p, err := New(Config{Config: wire.Config{APIKey: secret}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Complete(t.Context(), p, hello()); model.AsError(err).Code != model.CodeNotConfigured || !strings.Contains(err.Error(), "providers.openai.model") {
		t.Errorf("error %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	for line := range strings.SplitSeq(whole(), "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			f.Add(data + "\n" + ended("completed", "null"))
		}
	}
	f.Fuzz(func(t *testing.T, events string) {
		open := map[int]bool{}
		var g model.Gatherer
		a := &answer{provider: "openai", emit: func(d model.Delta) error {
			switch d.Kind {
			case model.DeltaToolStart:
				if _, known := open[d.Index]; known {
					t.Fatalf("%+v of a call that is known", d)
				}
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

func FuzzFault(f *testing.F) {
	f.Add(400, `{"error":{"message":"Please try again in 7m12.5s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`)
	f.Add(0, failed("server_error", "it broke"))
	f.Add(0, `{"type":"response.failed","response":{"error":null}}`)
	f.Add(502, `<html>`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		said := fault(status, []byte(body))
		if said.RetryAfter < 0 {
			t.Errorf("wait %v", said.RetryAfter)
		}
		if said.As != "" && said.Classify(status) != said.As {
			t.Errorf("%q is classified as %q", said.As, said.Classify(status))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	a := &answer{emit: func(model.Delta) error { return nil }}
	data := []byte(piece1("output_text", 1, `"some words, "`))
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Event("response.output_text.delta", data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode500Turns(b *testing.B) {
	p := canned(b, nil).(*provider)
	req := &model.Request{System: strings.Repeat("system ", 500)}
	state := model.Opaque{Provider: "openai", Model: "gpt-5-mini", Raw: json.RawMessage(`{"id":"rs_1","type":"reasoning","encrypted_content":"` + strings.Repeat("gAAA", 700) + `","summary":[]}`)}
	for i := range 500 {
		id := fmt.Sprint("call_", i)
		req.Messages = append(
			req.Messages, user(strings.Repeat("question ", 20)),
			model.Message{Role: model.RoleAssistant, Parts: model.Parts{state, model.Text{Text: strings.Repeat("answer ", 50)}, model.ToolCall{ID: id, Name: "read", Args: `{"path":"a/b/c.go","limit":200}`}}},
			model.Message{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: id, Content: model.TextParts(strings.Repeat("line of a file\n", 30))}}},
		)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.post("gpt-5-mini", req); err != nil {
			b.Fatal(err)
		}
	}
}
