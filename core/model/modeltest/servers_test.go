package modeltest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// paths are those of an answer below the base URL.
var paths = map[modeltest.API]string{
	modeltest.ChatCompletions: "/chat/completions",
	modeltest.Azure:           "/openai/deployments/m/chat/completions?api-version=2024-10-21",
	modeltest.Responses:       "/responses",
	modeltest.Messages:        "/messages",
	modeltest.Gemini:          "/models/gemini-3-test:streamGenerateContent?alt=sse",
	modeltest.Vertex:          "/projects/p/locations/l/publishers/google/models/gemini-3-test:streamGenerateContent?alt=sse",
}

// send posts a body with the headers of all APIs.
func send(t *testing.T, s *modeltest.Server, path, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Serve(t)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Anthropic-Version": "2023-06-01", "Api-Key": "key", "X-Api-Key": "key", "X-Goog-Api-Key": "key", "Authorization": "Bearer key"} {
		req.Header.Set(name, value)
	}
	resp, got, err := do(t, req)
	if err != nil {
		t.Fatal(err)
	}
	return resp, got
}

// TestStreams pins the streams of all APIs.
func TestStreams(t *testing.T) {
	turn := modeltest.Turn{
		Reasoning: []string{"Let me ", "think."}, Text: []string{"Two ", "calls."}, Redacted: "cmVkYWN0ZWQ=",
		Calls: []modeltest.Call{{ID: "call_1", Name: "a", Args: []string{"{", "}"}}, {ID: "call_2", Name: "b", Args: []string{`{"x": 1}`}}},
	}
	for api, body := range map[modeltest.API]string{
		modeltest.Azure:     `{"messages":[{"role":"user","content":"hi"}],"stream":true}`,
		modeltest.Responses: `{"model":"gpt-5-test","input":"hi","stream":true,"include":["reasoning.encrypted_content"]}`,
		modeltest.Messages:  `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":true}`,
		modeltest.Gemini:    `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		modeltest.Vertex:    `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
	} {
		resp, got := send(t, modeltest.New(api, turn), paths[api], body)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%v: %s %s", api, resp.Status, got)
			continue
		}
		goldentest.Check(t, "testdata/stream_"+strings.ToLower(api.String())+".golden", []byte(strings.ReplaceAll(got, "\r\n", "\n")))
	}
}

// TestResponsesRefusals sends requests that the service rejects.
func TestResponsesRefusals(t *testing.T) {
	const call = `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`
	for _, test := range []struct{ name, body, want string }{
		{"no JSON", `{`, "could not parse"},
		{"no model", `{"input":"hi"}`, "'model'"},
		{"no input", `{"model":"m"}`, "'input'"},
		{"an unknown parameter", `{"model":"m","input":"hi","messages":[]}`, "'messages'"},
		{"temperature", `{"model":"o4-mini","input":"hi","temperature":0}`, "'temperature'"},
		{"effort", `{"model":"gpt-4.1","input":"hi","reasoning":{"effort":"low"}}`, "reasoning.effort"},
		{"an unknown effort", `{"model":"gpt-5","input":"hi","reasoning":{"effort":"most"}}`, "'most'"},
		{"encrypted content", `{"model":"gpt-4.1","input":"hi","include":["reasoning.encrypted_content"]}`, "not supported"},
		{"a short limit", `{"model":"m","input":"hi","max_output_tokens":5}`, "below minimum"},
		{"tool choice", `{"model":"m","input":"hi","tool_choice":"required"}`, "'tools'"},
		{"tool name", `{"model":"m","input":"hi","tools":[{"type":"function","name":"a b","parameters":{"type":"object"}}]}`, "pattern"},
		{"tool schema", `{"model":"m","input":"hi","tools":[{"type":"function","name":"a","parameters":{}}]}`, "schema"},
		{"format", `{"model":"m","input":"hi","text":{"format":{"type":"json_schema","schema":{}}}}`, "text.format.name"},
		{"role", `{"model":"m","input":[{"role":"tool","content":"x"}]}`, "'tool'"},
		{"type", `{"model":"m","input":[{"type":"robot"}]}`, "'robot'"},
		{"content of the assistant", `{"model":"m","input":[{"role":"assistant","content":[{"type":"input_text","text":"x"}]}]}`, "'output_text'"},
		{"content of the user", `{"model":"m","input":[{"role":"user","content":[{"type":"output_text","text":"x"}]}]}`, "'input_text'"},
		{"image", `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]}`, "valid URL"},
		{"a call alone", `{"model":"m","input":[` + call + `]}`, "No tool output found for function call c1"},
		{"a result alone", `{"model":"m","input":[{"type":"function_call_output","call_id":"c1","output":"x"}]}`, "No tool call found"},
		{"a long id", `{"model":"m","input":[` + strings.Replace(call, "c1", strings.Repeat("c", 65), 1) + `]}`, "64"},
		{"forged reasoning", `{"model":"m","store":false,"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}]}`, "could not be verified"},
		{"reasoning by its id", `{"model":"m","store":false,"input":[{"type":"reasoning","id":"rs_1","summary":[]}]}`, "not persisted"},
		{"no summary", `{"model":"m","input":[{"type":"reasoning","id":"rs_1","encrypted_content":"x"}]}`, "summary"},
	} {
		t.Run(test.name, func(t *testing.T) { checkRefusal(t, modeltest.Responses, test.body, test.want) })
	}
}

func checkRefusal(t *testing.T, api modeltest.API, body, want string) {
	t.Helper()
	s := modeltest.New(api, modeltest.Turn{})
	resp, got := send(t, s, paths[api], body)
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(got, want) {
		t.Errorf("%s %s, want a word on %q", resp.Status, got, want)
	}
	if len(s.Requests()) != 1 {
		t.Error("the request was not kept")
	}
}

// TestMessagesRefusals sends requests that the service rejects.
func TestMessagesRefusals(t *testing.T) {
	body := func(messages string) string { return `{"model":"m","max_tokens":9,"messages":[` + messages + `]}` }
	const hi = `{"role":"user","content":"hi"}`
	use := func(id, input string) string {
		return `{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"f","input":` + input + `}]}`
	}
	const result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"}]}`
	const mark = `"cache_control":{"type":"ephemeral"}`
	for _, test := range []struct{ name, body, want string }{
		{"no JSON", `{`, "could not parse"},
		{"no model", `{"max_tokens":9,"messages":[` + hi + `]}`, "model: Field required"},
		{"no limit", `{"model":"m","messages":[` + hi + `]}`, "max_tokens: Field required"},
		{"no messages", body(""), "at least one message"},
		{"an unknown member", `{"model":"m","max_tokens":9,"n":1,"messages":[` + hi + `]}`, "n: Extra inputs"},
		{"the assistant first", body(`{"role":"assistant","content":"x"}`), "first message"},
		{"a system message", body(hi + `,{"role":"system","content":"x"}`), "top-level"},
		{"no content", body(`{"role":"user","content":[]}`), "non-empty content"},
		{"blank text", body(`{"role":"user","content":" "}`), "non-whitespace"},
		{"arguments", body(hi + `,` + use("c1", `"x"`) + `,` + result), "valid dictionary"},
		{"id", body(hi + `,` + use("c.1", `{}`) + `,` + strings.ReplaceAll(result, "c1", "c.1")), "pattern"},
		{"an id twice", body(hi + `,` + use("c1", `{}`) + `,` + result + `,` + use("c1", `{}`) + `,` + result), "unique"},
		{"text before the result", body(hi + `,` + use("c1", `{}`) + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"c1"}]}`), "without `tool_result`"},
		{"a call at the end", body(hi + `,` + use("c1", `{}`)), "without `tool_result`"},
		{"an image of the assistant", body(hi + `,{"role":"assistant","content":[{"type":"image","source":{}}]}`), "`image` blocks"},
		{"media type", body(`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":""}}]}`), "media_type"},
		{"a block of the future", body(`{"role":"user","content":[{"type":"smell"}]}`), "'smell'"},
		{"five marks", body(`{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"x",`+mark+`},`, 4) + `{"type":"text","text":"x",` + mark + `}]}`), "Found 5"},
		{"tool schema", `{"model":"m","max_tokens":9,"tools":[{"name":"a","input_schema":{}}],"messages":[` + hi + `]}`, "input_schema"},
		{"a tool twice", `{"model":"m","max_tokens":9,"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}],"messages":[` + hi + `]}`, "unique"},
		{"adaptive thinking", `{"model":"claude-sonnet-4-5","max_tokens":9,"thinking":{"type":"adaptive"},"messages":[` + hi + `]}`, "adaptive"},
	} {
		t.Run(test.name, func(t *testing.T) { checkRefusal(t, modeltest.Messages, test.body, test.want) })
	}
}

// TestMessagesVersion checks that the version is required.
func TestMessagesVersion(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, modeltest.New(modeltest.Messages).Serve(t)+"/messages", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if resp, body, err := do(t, req); err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "anthropic-version") {
		t.Errorf("%s %s, %v", resp.Status, body, err)
	}
}

// TestGeminiRefusals sends requests that the service rejects.
func TestGeminiRefusals(t *testing.T) {
	const hi = `{"role":"user","parts":[{"text":"hi"}]}`
	with := func(member string) string { return `{"contents":[` + hi + `],` + member + `}` }
	declared := func(member string) string { return `"tools":[{"functionDeclarations":[{"name":"f",` + member + `}]}]` }
	for _, test := range []struct{ name, body, want string }{
		{"no JSON", `{`, "could not parse"},
		{"no contents", `{}`, "contents is not specified"},
		{"an unknown member", with(`"messages":[]`), "messages"},
		{"an unknown member of a part", `{"contents":[{"role":"user","parts":[{"text":"hi","type":"text"}]}]}`, "type"},
		{"no parts", `{"contents":[{"role":"user","parts":[]}]}`, "parts must not be empty"},
		{"an empty part", `{"contents":[{"role":"user","parts":[{}]}]}`, "oneof"},
		{"two in a part", `{"contents":[{"role":"user","parts":[{"text":"x","inlineData":{"mimeType":"image/png","data":""}}]}]}`, "already set"},
		{"a schema of JSON Schema", with(declared(`"parameters":{"type":"object","properties":{"a":{"type":"object","additionalProperties":false}}}`)), "additionalProperties"},
		{"two schemas", with(declared(`"parameters":{},"parametersJsonSchema":{}`)), "mutually exclusive"},
		{"names without a mode", with(`"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["f"]}}`), "mode is ANY"},
		{"a name of nothing", with(`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}`), "allowed_function_names"},
		{"a mode", with(`"toolConfig":{"functionCallingConfig":{"mode":"MAYBE"}}`), "MAYBE"},
		{"a schema without a type", with(`"generationConfig":{"responseJsonSchema":{}}`), "application/json"},
		{"budget and level", with(`"generationConfig":{"thinkingConfig":{"thinkingBudget":1,"thinkingLevel":"LOW"}}`), "only one"},
		{"a level", with(`"generationConfig":{"thinkingConfig":{"thinkingLevel":"MOST"}}`), "MOST"},
		{"a budget", with(`"generationConfig":{"thinkingConfig":{"thinkingBudget":99999}}`), "99999"},
		{"temperature", with(`"generationConfig":{"temperature":3}`), "temperature"},
		{"arguments", `{"contents":[` + hi + `,{"role":"model","parts":[{"functionCall":{"name":"f","args":"x"}}]}]}`, "function_call.args"},
		{"a nameless result", `{"contents":[` + hi + `,{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"response":{}}}]}]}`, "Name cannot be empty"},
		{"an image that is none", `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"?"}}]}]}`, "input image"},
	} {
		t.Run(test.name, func(t *testing.T) { checkRefusal(t, modeltest.Gemini, test.body, test.want) })
	}
	resp, got := send(t, modeltest.New(modeltest.Gemini), "/models/gemini-2.5-pro:generateContent", with(`"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}`))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(got, "Budget 0") {
		t.Errorf("%s %s", resp.Status, got)
	}
}

// TestAzureRefusals checks the paths and errors that are specific to Azure.
func TestAzureRefusals(t *testing.T) {
	const body = `{"messages":[{"role":"user","content":"hi"}]}`
	for _, test := range []struct {
		path, want string
		status     int
	}{
		{"/openai/deployments/m/chat/completions", "Resource not found", 404},
		{"/openai/deployments/other/chat/completions?api-version=1", "DeploymentNotFound", 404},
		{"/openai/deployments/m/chat/completions?api-version=1", `"content":"ok"`, 200},
		{"/openai/v1/chat/completions", "you must provide a model", 400},
	} {
		s := modeltest.New(modeltest.Azure, modeltest.Turn{Text: []string{"ok"}})
		s.Key, s.Models = "key", []string{"m"}
		if resp, got := send(t, s, test.path, body); resp.StatusCode != test.status || !strings.Contains(got, test.want) {
			t.Errorf("%s: %s %s", test.path, resp.Status, got)
		}
	}
}

// TestParsed checks that a request is parsed to the same over every API.
func TestParsed(t *testing.T) {
	zero := 0.5
	req := &model.Request{
		System: "Be brief.", MaxTokens: 99, Temperature: &zero,
		Messages: []model.Message{
			{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: "look"}, model.Image{MediaType: "image/png", Data: []byte("png")}}},
			{Role: model.RoleAssistant, Parts: model.Parts{model.Text{Text: "I do."}, model.ToolCall{ID: "call_1", Name: "f", Args: `{"n":1}`}}},
			{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "call_1", Name: "f", Content: model.TextParts("seen")}}},
		},
		Tools: []model.ToolDef{{Name: "f", Description: "F.", Schema: []byte(`{"type":"object","properties":{}}`)}},
	}
	for api, name := range map[modeltest.API]string{
		modeltest.ChatCompletions: "gpt-4.1", modeltest.Responses: "gpt-4.1", modeltest.Messages: "claude-sonnet-4-5", modeltest.Gemini: "gemini-2.5-flash",
	} {
		s := modeltest.New(api, modeltest.Turn{Text: []string{"ok"}})
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		p := factory(api)(t, modeltest.Endpoint{URL: s.Serve(t), Key: "key", Model: name, Transport: transport})
		if _, err := model.Complete(t.Context(), p, req); err != nil {
			t.Fatal(err)
		}
		got := s.Requests()[0].Parsed
		results := got.Results()
		if len(results) != 1 || !strings.Contains(results[0].Content.Text(), "seen") {
			t.Fatalf("%v: results %+v", api, results)
		}
		parsed := fmt.Sprintf("%s %s %d %v %s %d %s %s", got.Model, got.System, got.MaxTokens, *got.Temperature, got.Parts(model.RoleUser).Text(),
			len(got.Images()), got.Parts(model.RoleAssistant).Text(), got.Tools[0].Name+got.Tools[0].Description+string(got.Tools[0].Schema))
		if want := name + ` Be brief. 99 0.5 look 1 I do. fF.{"type":"object","properties":{}}`; parsed != want || results[0].CallID != "call_1" {
			t.Errorf("%v says %s, want %s", api, parsed, want)
		}
	}
}
