package langchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

func config(e modeltest.Endpoint) wire.Config {
	return wire.Config{
		BaseURL: e.URL, APIKey: e.Key, Model: e.Model, Transport: e.Transport,
		IdleTimeout: e.Idle, FirstByteTimeout: e.Idle,
	}
}

func TestOpenAI(t *testing.T) {
	modeltest.TestProvider(t, func(tb testing.TB, e modeltest.Endpoint) model.Provider {
		p, err := langchain.OpenAI(config(e))
		if err != nil {
			tb.Fatal(err)
		}
		return p
	})
}

func TestLocal(t *testing.T) {
	modeltest.TestProvider(t, func(tb testing.TB, e modeltest.Endpoint) model.Provider {
		p, err := langchain.Local(config(e))
		if err != nil {
			tb.Fatal(err)
		}
		return p
	})
}

func user(text string) *model.Request {
	return &model.Request{Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts(text)}}}
}

func TestNotConfigured(t *testing.T) {
	for _, test := range []struct {
		name string
		make func() (model.Provider, error)
		want []string
	}{
		{
			"no key", func() (model.Provider, error) { return langchain.OpenAI(wire.Config{Model: "m"}) },
			[]string{"openai: no API key", "providers.openai.apiKey", "OPENAI_API_KEY", "agent config path"},
		},
		{
			"a blank key under another name", func() (model.Provider, error) { return langchain.OpenAI(wire.Config{Name: "work", APIKey: " \n"}) },
			[]string{"providers.work.apiKey"},
		},
		{"more than a key", func() (model.Provider, error) {
			return langchain.OpenAI(wire.Config{APIKey: "secret-word\nsecret-word"})
		}, []string{"providers.openai.apiKey"}},
		{"no URL", func() (model.Provider, error) {
			return langchain.Local(wire.Config{BaseURL: "me:secret-word@localhost/v1"})
		}, []string{"providers.local.baseUrl", "https://models.example.com/v1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.make()
			var e *model.Error
			if !errors.As(err, &e) || e.Code != model.CodeNotConfigured {
				t.Fatalf("error %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not name %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "secret-word") {
				t.Errorf("%q holds the password", err)
			}
		})
	}
	t.Run("no model", func(t *testing.T) {
		p, err := langchain.OpenAI(wire.Config{APIKey: "key"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = model.Complete(t.Context(), p, user("hi"))
		if model.AsError(err).Code != model.CodeNotConfigured || !strings.Contains(err.Error(), "providers.openai.model") {
			t.Errorf("error %v", err)
		}
	})
}

func TestDefaults(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "key-of-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://elsewhere.invalid/v1")
	t.Setenv("OPENAI_ORGANIZATION", "org")
	t.Setenv("OPENAI_MODEL", "other")
	var got *http.Request
	stream := record(t, modeltest.Turn{Text: []string{"ok"}})
	p := local(t, roundTrip(func(r *http.Request) (*http.Response, error) {
		got = r
		return stream.RoundTrip(r)
	}))
	if want := (model.ProviderInfo{Name: "local", Model: "llama3.3:latest", Endpoint: "http://localhost:11434/v1", Timeouts: model.Timeouts{FirstByte: 2 * time.Minute, Idle: 3 * time.Minute, Total: 30 * time.Minute}}); p.Info() != want {
		t.Errorf("info %+v, want %+v", p.Info(), want)
	}
	if _, err := model.Complete(t.Context(), p, user("hi")); err != nil {
		t.Fatal(err)
	}
	if got.URL.String() != "http://localhost:11434/v1/chat/completions" {
		t.Errorf("URL %s", got.URL)
	}
	for _, name := range []string{"Authorization", "Openai-Organization"} {
		if v := got.Header.Get(name); v != "" {
			t.Errorf("%s: %s: a local server gets nothing from the environment", name, v)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAddress checks that user info, query and headers are sent, but never shown,
// even if the server repeats them.
func TestAddress(t *testing.T) {
	var got *http.Request
	p, err := langchain.OpenAI(wire.Config{
		BaseURL: "http://me:pass-word@host.example/base/v1/?api-version=version-token#x", APIKey: " sk-the-key\n", Model: "m",
		Headers: map[string]string{"X-Gateway": "gateway-token"},
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r
			return nil, fmt.Errorf("dial with sk-the-key, pass-word, version-token and gateway-token:\n\x1b[31mfailed")
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = model.Complete(t.Context(), p, user("hi"))
	if got.URL.Path != "/base/v1/chat/completions" || got.URL.RawQuery != "api-version=version-token" ||
		got.Header.Get("X-Gateway") != "gateway-token" || got.Header.Get("Authorization") != "Bearer sk-the-key" {
		t.Errorf("request %s %v", got.URL, got.Header)
	}
	if p.Info().Endpoint != "http://host.example/base/v1" {
		t.Errorf("endpoint %s", p.Info().Endpoint)
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		for _, secret := range []string{"sk-the-key", "pass-word", "version-token", "gateway-token", "\x1b", "\n"} {
			if strings.Contains(cause.Error(), secret) {
				t.Errorf("%q holds %q", cause, secret)
			}
		}
	}
	if !strings.Contains(err.Error(), "http://host.example/base/v1 failed") {
		t.Errorf("%q does not name the endpoint", err)
	}
}

func TestMessages(t *testing.T) {
	for _, test := range []struct {
		name string
		turn modeltest.Turn
		want string
	}{
		{"wrong key", modeltest.Unauthorized("sk-x"), "local: the server rejected the key of providers.local.apiKey: Incorrect API key provided: sk-x. You can find"},
		{"wrong path", modeltest.Turn{Status: 404, Body: "404 page not found"}, "has no /chat/completions: check providers.local.baseUrl, which usually ends in a version such as /v1 (HTTP 404) [request req_000001]"},
		{"a web page", modeltest.Turn{Header: http.Header{"Content-Type": {"text/html"}}}, "answered with a web page: is providers.local.baseUrl right?"},
		{"text", modeltest.Turn{Status: 500, Body: "line one\nline two"}, "local: line one line two (HTTP 500)"},
		{"nothing", modeltest.Turn{Status: 503}, "local: the server answered Service Unavailable (HTTP 503)"},
		{"a string", modeltest.Turn{Status: 400, Body: `{"error":"no such thing"}`}, "local: no such thing (HTTP 400)"},
		{"a detail", modeltest.Turn{Status: 422, Body: `{"detail":[{"loc":["body"]}]}`}, `local: [{"loc":["body"]}] (HTTP 422)`},
		{"a long one", modeltest.Turn{Status: 500, Body: strings.Repeat("long ", 1000)}, "long … (HTTP 500)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := model.Complete(t.Context(), serve(t, modeltest.NewChat(test.turn)), user("hi"))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want %q", err, test.want)
			}
		})
	}
	t.Run("no server", func(t *testing.T) {
		p, err := langchain.Local(wire.Config{BaseURL: "http://127.0.0.1:1/v1"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = model.Complete(t.Context(), p, user("hi"))
		const want = "local: cannot connect to http://127.0.0.1:1/v1 (is the server running, and is providers.local.baseUrl right?): "
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %q, want %q", err, want)
		}
	})
}

// serve returns a local provider for a fake server.
func serve(t *testing.T, chat *modeltest.Chat) model.Provider {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p, err := langchain.Local(wire.Config{BaseURL: chat.Serve(t), Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNoLimits(t *testing.T) {
	p, err := langchain.Local(wire.Config{Transport: record(t, modeltest.Turn{Text: []string{"ok"}}), IdleTimeout: -1, FirstByteTimeout: -1, ConnectTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := model.Complete(t.Context(), p, user("hi")); err != nil || resp.Parts.Text() != "ok" {
		t.Errorf("response %+v, %v", resp, err)
	}
}

func TestOptions(t *testing.T) {
	chat := modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"ok"}} })
	p := serve(t, chat)
	req := user("hi")
	req.MaxTokens, req.Effort = 9, model.EffortXHigh
	req.ProviderOptions = map[string]json.RawMessage{
		"local": json.RawMessage(`{"keep_alive":"5m","seed":12345678901234567890}`),
		"other": json.RawMessage(`{"secret":1}`),
	}
	if _, err := model.Complete(t.Context(), p, req); err != nil {
		t.Fatal(err)
	}
	got := chat.Requests()[0]
	if got.MaxTokens != 9 || got.ReasoningEffort != "high" {
		t.Errorf("body %s: a local server knows max_tokens and efforts up to high", got.Body)
	}
	for _, want := range []string{`"keep_alive":"5m"`, `"seed":12345678901234567890`} {
		if !strings.Contains(string(got.Body), want) {
			t.Errorf("body %s lacks %s", got.Body, want)
		}
	}
	if strings.Contains(string(got.Body), "secret") {
		t.Errorf("body %s has another provider's options", got.Body)
	}
	for name, bad := range map[string]*model.Request{
		"options that are no object":  {ProviderOptions: map[string]json.RawMessage{"local": json.RawMessage(`[]`)}},
		"an option that is not free":  {ProviderOptions: map[string]json.RawMessage{"local": json.RawMessage(`{"stream":false}`)}},
		"the schema of the answer":    {OutputSchema: json.RawMessage(`{`)},
		"bad options beside good use": {ProviderOptions: map[string]json.RawMessage{"local": json.RawMessage(`"x"`)}},
	} {
		if _, err := model.Complete(t.Context(), p, bad); model.AsError(err) == nil || model.AsError(err).Code != model.CodeInvalidRequest {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if n := len(chat.Requests()); n != 1 {
		t.Errorf("%d requests were sent, want 1", n)
	}
}

// TestOpenAILimit checks the name that OpenAI's newer models require.
func TestOpenAILimit(t *testing.T) {
	chat := modeltest.NewChat(modeltest.Turn{Text: []string{"ok"}})
	p, err := langchain.OpenAI(wire.Config{BaseURL: chat.Serve(t), APIKey: "key", Model: "o4-mini", Transport: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		t.Fatal(err)
	}
	req := user("hi")
	req.MaxTokens, req.Effort = 9, model.EffortXHigh
	if _, err := model.Complete(t.Context(), p, req); err != nil {
		t.Fatal(err)
	}
	if got := chat.Requests()[0]; got.MaxCompletionTokens != 9 || got.ReasoningEffort != "xhigh" {
		t.Errorf("body %s", got.Body)
	}
}

// TestPrefix checks that a growing conversation keeps its bytes: providers cache
// by prefix.
func TestPrefix(t *testing.T) {
	chat := modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return modeltest.Turn{Text: []string{"ok"}} })
	p := serve(t, chat)
	short, long := conversation(3, 50), conversation(4, 50)
	for _, req := range []*model.Request{short, long} {
		if _, err := model.Complete(t.Context(), p, req); err != nil {
			t.Fatal(err)
		}
	}
	a, b := string(chat.Requests()[0].Body), string(chat.Requests()[1].Body)
	if a = strings.TrimRight(a, "]}\n"); !strings.HasPrefix(b, a) {
		t.Errorf("%s\nis not a prefix of\n%s", a, b)
	}
}

// TestWholeAnswer checks servers that do not stream.
func TestWholeAnswer(t *testing.T) {
	answer := `{"id":"x","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{"n": 1.0}}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`
	for _, test := range []struct {
		name, body string
		want       model.ErrorCode
	}{
		{"whole", answer, ""},
		{"cut", answer[:200], model.CodeInvalidResponse},
		{"an error", `{"error":{"message":"no","type":"rate_limit_error"}}`, model.CodeRateLimited},
		{"of other types", `{"choices":"none"}`, model.CodeInvalidResponse},
	} {
		p := local(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(test.body)), Request: r}, nil
		}))
		resp, err := model.Complete(t.Context(), p, user("hi"))
		switch {
		case test.want != "":
			if e := model.AsError(err); e == nil || e.Code != test.want {
				t.Errorf("%s: error %v, want %s", test.name, err, test.want)
			}
		case err != nil || resp.Parts.Text() != "hi" || resp.Parts.ToolCalls()[0].Args != `{"n": 1.0}` || resp.Usage.Total() != 7:
			t.Errorf("%s: response %+v, %v", test.name, resp, err)
		}
	}
}

// pipe answers with what write writes, in a separate goroutine.
func pipe(write func(w io.Writer)) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		pr, pw := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = pr.CloseWithError(r.Context().Err()) })
		go write(pw)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: pr, Request: r}, nil
	}
}

// TestIdle runs in a bubble with a fake clock.
func TestIdle(t *testing.T) {
	stream := string(record(t, modeltest.Turn{Text: []string{"late"}}))
	for _, test := range []struct {
		name    string
		answer  roundTrip
		code    model.ErrorCode
		elapsed time.Duration
	}{
		{"keep-alives hold the answer open", pipe(func(w io.Writer) {
			for range 5 {
				time.Sleep(150 * time.Second)
				_, _ = io.WriteString(w, ": still thinking\n\n")
			}
			_, _ = io.WriteString(w, stream)
			_ = w.(io.Closer).Close()
		}), "", 750 * time.Second},
		{"but not for ever", pipe(func(w io.Writer) {
			for range 20 {
				time.Sleep(150 * time.Second)
				_, _ = io.WriteString(w, ": still thinking\n\n")
			}
		}), model.CodeTimeout, 30 * time.Minute},
		{"silence does not", pipe(func(w io.Writer) {
			_, _ = io.WriteString(w, stream[:len(stream)/2])
		}), model.CodeTimeout, 180 * time.Second},
		{"no answer at all", func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, model.CodeTimeout, 120 * time.Second},
		{"a connection left open after the end", pipe(func(w io.Writer) {
			_, _ = io.WriteString(w, stream)
		}), "", 50 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				resp, err := model.Complete(t.Context(), local(t, test.answer), user("hi"))
				if e := model.AsError(err); e != nil && e.Code != test.code || e == nil && test.code != "" {
					t.Errorf("error %v, want code %q", err, test.code)
				}
				if err == nil && resp.Parts.Text() != "late" {
					t.Errorf("response %+v", resp)
				}
				if took := time.Since(begin); took != test.elapsed {
					t.Errorf("took %v, want %v", took, test.elapsed)
				}
				time.Sleep(time.Hour) // until the server has noticed
			})
		})
	}
}

// TestConcurrent is for the race detector.
func TestConcurrent(t *testing.T) {
	p := local(t, record(t, textTurn(50)))
	req := conversation(3, 100)
	done := make(chan error)
	const callers = 8
	for range callers {
		go func() {
			_, err := model.Complete(t.Context(), p, req)
			done <- err
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestConsumerPanics checks that a panic of the consumer is passed on, without
// leaks.
func TestConsumerPanics(t *testing.T) {
	chat := modeltest.NewChat(modeltest.Turn{Text: []string{"a", "b"}, Gate: modeltest.HoldAt(3, nil)})
	p := serve(t, chat)
	func() {
		defer func() {
			if r := recover(); r != "consumer" {
				t.Errorf("recovered %v", r)
			}
		}()
		for range p.Stream(t.Context(), user("hi")) {
			panic("consumer")
		}
	}()
	chat.Wait()
}
