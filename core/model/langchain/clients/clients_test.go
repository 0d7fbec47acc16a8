package clients_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain/clients"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// service is a fake service that keeps its last request.
type service struct {
	*httptest.Server
	path   string
	header http.Header
	body   string
}

func serve(t *testing.T, answer http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		s.path, s.header, s.body = r.URL.Path, r.Header, string(data)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func says(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

const secret = "key-Zx81kQm44TtLw902"

// base returns the base URL of a client for a fake service.
func base(client, url string) string {
	switch client {
	case "cloudflare":
		return url + "/client/v4/accounts/acc1"
	case "cohere", "mistral":
		return url + "/v1"
	}
	return url
}

func open(t *testing.T, client, modelName, url string) model.Provider {
	t.Helper()
	transport := wire.NewTransport(time.Second)
	t.Cleanup(transport.CloseIdleConnections)
	p, err := clients.New(clients.Config{Client: client, Config: wire.Config{
		Name: "x", BaseURL: base(client, url), Model: modelName, APIKey: secret, Transport: transport, Headers: map[string]string{"X-Team": "tools"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const claude = "anthropic.claude-3-5-sonnet-20240620-v1:0"

// models are the models of the clients in these tests.
var models = map[string]string{"bedrock": claude, "mistral": "m", "ollama": "m", "cloudflare": "@cf/m", "cohere": "m", "huggingface": "org/m"}

// dialogue is a conversation with a tool call.
func dialogue() *model.Request {
	return &model.Request{
		System: "Be brief.",
		Messages: []model.Message{
			{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: "What is in"}, model.Text{Text: "a.txt?"}}},
			{Role: model.RoleAssistant, Parts: model.Parts{model.Text{Text: "Reading."}, model.ToolCall{ID: "c1", Name: "read", Args: `{"path":"a.txt"}`}, model.ToolCall{ID: "c2", Name: "read", Args: `{"path":"b.txt"}`}}},
			{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: "c1", Name: "read", Content: model.TextParts("ALPHA")}, model.ToolResult{CallID: "c2", Name: "read", Content: model.TextParts("BETA")}}},
		},
		Tools: []model.ToolDef{{Name: "read", Description: "Read a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
	}
}

func user(text string) *model.Request {
	return &model.Request{Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts(text)}}}
}

// event encodes an event of Bedrock's stream.
func event(payload string) []byte {
	var b bytes.Buffer
	body, _ := json.Marshal(map[string]string{"bytes": base64.StdEncoding.EncodeToString([]byte(payload))})
	err := eventstream.NewEncoder().Encode(&b, eventstream.Message{
		Headers: eventstream.Headers{
			{Name: ":event-type", Value: eventstream.StringValue("chunk")},
			{Name: ":content-type", Value: eventstream.StringValue("application/json")},
			{Name: ":message-type", Value: eventstream.StringValue("event")},
		}, Payload: body,
	})
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

func bedrockStream(payloads ...string) string {
	var b bytes.Buffer
	for _, p := range payloads {
		b.Write(event(p))
	}
	return b.String()
}

const (
	ollamaWhole = `{"message":{"role":"assistant","content":"AL"},"done":false}
{"message":{"role":"assistant","content":"PHA"},"done":false}
{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":3}
`
	cloudflareWhole = "data: {\"response\":\"AL\",\"p\":\"x\"}\n\ndata: {\"response\":\"PHA\"}\n\ndata: [DONE]\n\n"
	mistralWhole    = `data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"AL"}}]}` + "\n\n" +
		`data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"PHA"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}` + "\n\ndata: [DONE]\n\n"
)

func claudeWhole() string {
	return bedrockStream(`{"type":"message_start","message":{"usage":{"input_tokens":7}}}`, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"AL"}}`,
		`{"type":"content_block_delta","delta":{"type":"text_delta","text":"PHA"}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`)
}

const awsEvents = "application/vnd.amazon.eventstream"

// answers are a complete answer of each service.
func answers() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"ollama": says("application/x-ndjson", ollamaWhole), "cloudflare": says("text/event-stream", cloudflareWhole),
		"mistral": says("text/event-stream", mistralWhole), "bedrock": says(awsEvents, claudeWhole()),
		"cohere":      says("application/json", `{"id":"1","generations":[{"id":"2","text":"ALPHA"}]}`),
		"huggingface": says("application/json", `[{"generated_text":"Hello\nALPHA"}]`),
	}
}

func TestText(t *testing.T) {
	paths := map[string]string{
		"ollama": "/api/chat", "cloudflare": "/client/v4/accounts/acc1/ai/run/@cf/m", "mistral": "/v1/chat/completions",
		"bedrock": "/model/" + claude + "/invoke-with-response-stream", "cohere": "/v1/generate", "huggingface": "/models/org/m",
	}
	streamed := map[string]int{"ollama": 2, "cloudflare": 2, "mistral": 2, "bedrock": 2, "cohere": 1, "huggingface": 1}
	usage := map[string]model.Usage{"ollama": {Input: 7, Output: 3}, "mistral": {Input: 7, Output: 3}, "bedrock": {Input: 7, Output: 3}}
	if !reflect.DeepEqual(clients.Names(), []string{"bedrock", "cloudflare", "cohere", "huggingface", "mistral", "ollama"}) {
		t.Fatal(clients.Names())
	}
	for _, name := range clients.Names() {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answers()[name])
			var g model.Gatherer
			texts := 0
			for d, err := range open(t, name, models[name], s.URL).Stream(t.Context(), user("Hello")) {
				if err != nil {
					t.Fatal(err)
				}
				if d.Kind == model.DeltaText {
					texts++
				}
				_ = g.Add(d)
			}
			resp, err := g.Response()
			if err != nil || resp.Parts.Text() != "ALPHA" || resp.Stop != model.StopEnd || resp.Usage != usage[name] || texts != streamed[name] {
				t.Errorf("%+v in %d pieces, %v", resp, texts, err)
			}
			if s.path != paths[name] || s.header.Get("X-Team") != "tools" || s.header.Get("Authorization") != "Bearer "+secret || !strings.Contains(s.body, "Hello") {
				t.Errorf("request %s %v %s", s.path, s.header, s.body)
			}
		})
	}
}

// TestConversation shows what of a conversation with tools arrives.
func TestConversation(t *testing.T) {
	for _, name := range clients.Names() {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answers()[name])
			if name == "bedrock" {
				s = serve(t, says("application/json", `{"content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}`))
			}
			if _, err := model.Complete(t.Context(), open(t, name, models[name], s.URL), dialogue()); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"Be brief.", "What is in", "a.txt?", "Reading.", "ALPHA", "BETA", "b.txt"} {
				if !strings.Contains(s.body, want) {
					t.Errorf("%q is missing in %s", want, s.body)
				}
			}
			if got := strings.Contains(s.body, `"Read a file."`); got != clients.HasTools(name, models[name]) {
				t.Errorf("tools sent: %v in %s", got, s.body)
			}
		})
	}
}

func TestToolCalls(t *testing.T) {
	want := model.Parts{model.Text{Text: "Looking."}, model.ToolCall{ID: "c1", Name: "read", Args: `{"path":"a.txt"}`}, model.ToolCall{ID: "c2", Name: "read", Args: `{"path":"b.txt"}`}}
	call := func(id, file string) string {
		return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"read","arguments":"{\"path\":\"%s\"}"}}`, id, file)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"mistral": says("text/event-stream", `data: {"choices":[{"index":0,"delta":{"content":"Looking."}}]}`+"\n\n"+
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[`+call("c1", "a.txt")+","+call("c2", "b.txt")+`]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n"),
		"mistral in pieces": says("text/event-stream", `data: {"choices":[{"index":0,"delta":{"content":"Looking."}}]}`+"\n\n"+
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c1","index":0,"function":{"name":"read","arguments":"{\"path\":"}}]}}]}`+"\n\n"+
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a.txt\"}"}}]}}]}`+"\n\n"+
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[`+call("c2", "b.txt")+`]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n"),
		"bedrock": says("application/json", `{"content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"c1","name":"read","input":{"path":"a.txt"}},{"type":"tool_use","id":"c2","name":"read","input":{"path":"b.txt"}}],"stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":3}}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer)
			req := dialogue()
			req.ToolChoice = "read"
			name, _, _ := strings.Cut(name, " ")
			resp, err := model.Complete(t.Context(), open(t, name, models[name], s.URL), req)
			if err != nil || !reflect.DeepEqual(resp.Parts, want) || resp.Stop != model.StopToolCalls {
				t.Errorf("%+v, %v", resp, err)
			}
		})
	}
}

// TestBroken shows that an answer that ends early is an error, which langchaingo
// takes for a success.
func TestBroken(t *testing.T) {
	cut := func(text string, last string) string { return text[:strings.LastIndex(text, last)] }
	whole := claudeWhole()
	for name, body := range map[string]string{
		"ollama": cut(ollamaWhole, `{"message"`), "cloudflare": cut(cloudflareWhole, "data: [DONE]"), "mistral": cut(mistralWhole, "data: {"),
		"bedrock": whole[:len(whole)-20],
	} {
		kinds := map[string]string{"bedrock": awsEvents}
		t.Run(name, func(t *testing.T) {
			s := serve(t, says(kinds[name], body))
			_, err := model.Complete(t.Context(), open(t, name, models[name], s.URL), user("Hello"))
			if e := model.AsError(err); e == nil || e.Code != model.CodeNetwork {
				t.Errorf("clean end: %v", err)
			}
			s = serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(len(body)+100))
				says(kinds[name], body)(w, r)
			})
			_, err = model.Complete(t.Context(), open(t, name, models[name], s.URL), user("Hello"))
			if e := model.AsError(err); e == nil || e.Code != model.CodeNetwork || !e.Retryable() {
				t.Errorf("connection lost: %v", err)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for _, name := range clients.Names() {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, `{"message":"slow down, `+secret+`"}`)
			})
			_, err := model.Complete(t.Context(), open(t, name, models[name], s.URL), user("Hello"))
			e := model.AsError(err)
			if e == nil || e.Code != model.CodeRateLimited || e.Status != 429 || e.RetryAfter != 7*time.Second || strings.Contains(err.Error(), secret) {
				t.Errorf("%#v", e)
			}
			s.Close()
			_, err = model.Complete(t.Context(), open(t, name, models[name], s.URL), user("Hello"))
			if e := model.AsError(err); e == nil || e.Code != model.CodeNetwork {
				t.Errorf("no server: %v", err)
			}
		})
	}
}

// TestCancel shows that a call ends with its context, and with its consumer, even
// if the client knows neither.
func TestCancel(t *testing.T) {
	first := map[string]string{
		"ollama": strings.SplitAfter(ollamaWhole, "\n")[0], "cloudflare": strings.SplitAfter(cloudflareWhole, "\n\n")[0], "mistral": strings.SplitAfter(mistralWhole, "\n\n")[0],
		"bedrock": string(event(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"AL"}}`)), "cohere": " ", "huggingface": " ",
	}
	kinds := map[string]string{"bedrock": awsEvents}
	for _, name := range clients.Names() {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{}, 2)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				says(kinds[name], first[name])(w, r)
				w.(http.Flusher).Flush()
				begun <- struct{}{}
				<-r.Context().Done()
			})
			p := open(t, name, models[name], s.URL)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-begun; cancel() }()
			var last error
			for _, err := range p.Stream(ctx, user("Hello")) {
				last = err
			}
			if !errors.Is(last, context.Canceled) {
				t.Errorf("error %v", last)
			}
			if len(first[name]) > 1 {
				for range p.Stream(t.Context(), user("Hello")) {
					break
				}
			}
		})
	}
}

func TestNotConfigured(t *testing.T) {
	for _, test := range []struct {
		cfg  clients.Config
		want string
	}{
		{clients.Config{Client: "nope", Config: wire.Config{Name: "x"}}, "expected one of bedrock, cloudflare"},
		{clients.Config{Client: "cohere", Config: wire.Config{Name: "x"}}, "COHERE_API_KEY"},
		{clients.Config{Client: "cloudflare", Config: wire.Config{Name: "x", APIKey: secret}}, "accounts/ACCOUNT_ID"},
	} {
		_, err := clients.New(test.cfg)
		if e := model.AsError(err); e == nil || e.Code != model.CodeNotConfigured || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.cfg.Client, err)
		}
	}
}

// TestOptions shows that options are added to the body, but not to a signed one.
func TestOptions(t *testing.T) {
	req := user("Hello")
	req.ProviderOptions = map[string]json.RawMessage{"x": json.RawMessage(`{"keep_alive":"1h"}`)}
	s := serve(t, answers()["ollama"])
	if _, err := model.Complete(t.Context(), open(t, "ollama", "m", s.URL), req); err != nil || !strings.Contains(s.body, `"keep_alive":"1h"`) {
		t.Errorf("%v: %s", err, s.body)
	}
	_, err := model.Complete(t.Context(), open(t, "bedrock", claude, s.URL), req)
	if e := model.AsError(err); e == nil || e.Code != model.CodeNotSupported {
		t.Errorf("bedrock: %v", err)
	}
}

// TestSigned shows that Bedrock's client signs with the machine's credentials if
// there is no key.
func TestSigned(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "example")
	t.Setenv("AWS_CONFIG_FILE", "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
	s := serve(t, answers()["bedrock"])
	transport := wire.NewTransport(time.Second)
	defer transport.CloseIdleConnections()
	p, err := clients.New(clients.Config{Client: "bedrock", Config: wire.Config{Name: "x", BaseURL: s.URL, Model: claude, Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Complete(t.Context(), p, user("Hello")); err != nil || !strings.HasPrefix(s.header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/") {
		t.Errorf("%v %v", s.header, err)
	}
}
