package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

const secret = "sk-test-5f1d0c9be7a24e6c"

// lines is a Decoder of events that are text, or "end" at the end of the answer.
type lines struct {
	emit  func(model.Delta) error
	ended bool
}

func (l *lines) Event(kind string, data []byte) error {
	switch {
	case kind == "error":
		return &Failed{Data: data}
	case string(data) == "end":
		l.ended = true
		return ErrDone
	case string(data) == "nonsense":
		return errors.New("what is this?")
	}
	return l.emit(model.Delta{Kind: model.DeltaText, Text: string(data)})
}

func (l *lines) Done() (model.Delta, error) {
	if !l.ended {
		return model.Delta{}, io.ErrUnexpectedEOF
	}
	return model.Delta{Kind: model.DeltaDone, Stop: model.StopEnd, Usage: model.Usage{Input: 1}}, nil
}

func newClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	cfg.Default("test", "http://127.0.0.1:1/v1", "m")
	if cfg.APIKey == "" && cfg.Token == nil {
		cfg.APIKey = secret
	}
	if cfg.Transport == nil {
		own := NewTransport(DefaultConnectTimeout)
		t.Cleanup(own.CloseIdleConnections)
		cfg.Transport = own
	}
	c, err := New(cfg, Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func stream(ctx context.Context, c *Client) (text string, err error) {
	seq := c.Stream(ctx, func() (Post, error) {
		return Post{URL: c.URL("say"), Header: http.Header{"X-Extra": {"1"}}, Body: []byte(`{}`)}, nil
	}, func(emit func(model.Delta) error) Decoder { return &lines{emit: emit} })
	done := false
	for d, err := range seq {
		if err != nil {
			return text, err
		}
		done = d.Kind == model.DeltaDone
		text += d.Text
	}
	if !done {
		return text, errors.New("the sequence has no end")
	}
	return text, nil
}

// serve starts a server with handler f, and returns its base URL.
func serve(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func TestStream(t *testing.T) {
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/v1/say" || r.URL.Query().Get("q") != "1" || string(body) != `{}` ||
			r.Header.Get("Authorization") != "Bearer "+secret || r.Header.Get("X-Extra") != "1" || r.Header.Get("X-Mine") != "yes" {
			t.Errorf("request %s %s %v %s", r.Method, r.URL, r.Header, body)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": ping\n\ndata: hello \n\ndata: world\n\ndata: end\n\n")
	})
	c := newClient(t, Config{BaseURL: base + "?q=1", Headers: map[string]string{"X-Mine": "yes"}})
	if text, err := stream(t.Context(), c); text != "hello world" || err != nil {
		t.Errorf("stream %q, %v", text, err)
	}
}

// TestFailures checks the messages, which say what to do.
func TestFailures(t *testing.T) {
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "https://elsewhere.example/")
			w.Header().Set("X-Request-Id", "req_1")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	const sse, js = "text/event-stream", "application/json"
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		code    model.ErrorCode
		says    string
	}{
		{"wrong key", answer(401, js, `{"error":{"message":"bad key `+secret+`"}}`), model.CodeAuthentication, "the server rejected the key of providers.test.apiKey: bad key [redacted] (HTTP 401) [request req_1]"},
		{"unknown model", answer(404, js, `{"error":{"message":"no model m"}}`), model.CodeModelNotFound, "no model m"},
		{"wrong address", answer(404, "text/plain", `404 page not found`), model.CodeNotConfigured, "has no /say: check providers.test.baseUrl"},
		{"redirect", answer(302, sse, ""), model.CodeNotConfigured, "redirects to another URL: set providers.test.baseUrl to that"},
		{"web page", answer(200, "text/html; charset=utf-8", "<html>"), model.CodeInvalidResponse, "answered with a web page: is providers.test.baseUrl right?"},
		{"error with status 200", answer(200, sse, "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n"), model.CodeNetwork, "the answer ended early with an error: busy"},
		{"nonsense", answer(200, sse, "data: nonsense\n\n"), model.CodeInvalidResponse, "/v1: what is this?"},
		{"cut", answer(200, sse, "data: a\n\n"), model.CodeNetwork, "ended early: unexpected EOF"},
		{"no credit", answer(402, js, `{"error":{"code":402,"message":"Insufficient credits"}}`), model.CodeRateLimited, "the service asks for payment: Insufficient credits (HTTP 402)"},
		{"no money", answer(429, js, `{"error":{"code":"insufficient_quota","message":"pay"}}`), model.CodeRateLimited, "pay"},
		{"too long", answer(400, js, `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`), model.CodeContextLength, "maximum context length"},
		{"too large", answer(413, js, `{}`), model.CodeContextLength, "Request Entity Too Large"},
		{"no 429", answer(400, js, `{"error":{"message":"you sent 204290 tokens of rubbish"}}`), model.CodeInvalidRequest, "204290"},
		{"overload", answer(529, js, `{}`), model.CodeNetwork, "HTTP 529"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := stream(t.Context(), newClient(t, Config{BaseURL: serve(t, test.handler)}))
			var e *model.Error
			if !errors.As(err, &e) || e.Code != test.code || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), secret) {
				t.Errorf("error %v, want %s with %q", err, test.code, test.says)
			}
			if want := test.name == "no money" || test.name == "no credit"; e != nil && e.Permanent != want {
				t.Errorf("permanent %v", e.Permanent)
			}
		})
	}
}

func TestGzip(t *testing.T) {
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("Accept-Encoding %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zipped(t, "data: hello\n\ndata: end\n\n"))
	})
	if text, err := stream(t.Context(), newClient(t, Config{BaseURL: base})); text != "hello" || err != nil {
		t.Errorf("stream %q, %v", text, err)
	}
}

func TestProxyThatIsDown(t *testing.T) {
	proxy, _ := url.Parse("http://127.0.0.1:1")
	transport := &http.Transport{Proxy: http.ProxyURL(proxy)}
	_, err := stream(t.Context(), newClient(t, Config{BaseURL: "https://models.example.com/v1", Transport: transport}))
	e := model.AsError(err)
	if e.Code != model.CodeNetwork || e.Permanent || !strings.Contains(e.Error(), "cannot connect to the proxy for https://models.example.com/v1") {
		t.Errorf("error %v", err)
	}
}

func TestCertificates(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // or it logs failed handshakes
	s.StartTLS()
	t.Cleanup(s.Close)
	for name, base := range map[string]string{
		"unknown authority": s.URL, "no https": serve(t, func(http.ResponseWriter, *http.Request) {}),
	} {
		t.Run(name, func(t *testing.T) {
			base := strings.Replace(base, "http:", "https:", 1)
			_, err := stream(t.Context(), newClient(t, Config{BaseURL: base}))
			e := model.AsError(err)
			if e.Code != model.CodeNetwork || e.Retryable() || !strings.Contains(e.Error(), "cannot connect securely to "+strings.TrimSuffix(base, "/")) {
				t.Errorf("error %v, retryable %v", err, e.Retryable())
			}
		})
	}
}

func TestToken(t *testing.T) {
	var got string
	refuse := false
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		if refuse {
			http.Error(w, "no: "+got, http.StatusForbidden)
			return
		}
		fmt.Fprint(w, "data: end\n\n")
	})
	token, tokenErr := "tok-123456", error(nil)
	c := newClient(t, Config{BaseURL: base, Token: func(context.Context) (string, error) { return token, tokenErr }})
	if _, err := stream(t.Context(), c); err != nil || got != "Bearer tok-123456" {
		t.Errorf("error %v, header %q", err, got)
	}
	refuse = true
	if _, err := stream(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no: Bearer [redacted]") {
		t.Errorf("error %v", err)
	}
	token = "two\nlines"
	if _, err := stream(t.Context(), c); model.AsError(err).Code != model.CodeAuthentication {
		t.Errorf("error %v", err)
	}
	tokenErr = errors.New("not signed in")
	if _, err := stream(t.Context(), c); model.AsError(err).Code != model.CodeAuthentication || !strings.Contains(err.Error(), "not signed in") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := stream(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestTimeLimits(t *testing.T) {
	release := make(chan struct{})
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("begin") != "" {
			fmt.Fprint(w, "data: a\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	for query, says := range map[string]string{"": "did not respond within 50ms", "?begin=1": "sent nothing for 50ms"} {
		first := 50 * time.Millisecond
		if query != "" {
			first = time.Minute
		}
		c := newClient(t, Config{BaseURL: base + query, FirstByteTimeout: first, IdleTimeout: 50 * time.Millisecond})
		if _, err := stream(t.Context(), c); model.AsError(err).Code != model.CodeTimeout || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}

// TestRestart checks that a local server that has answered before may restart, and
// that one which never answered is not waited for.
func TestRestart(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: a\n\ndata: end\n\n") })
	server := httptest.NewServer(answer)
	address := server.Listener.Addr().String()
	c := newClient(t, Config{BaseURL: server.URL})
	if _, err := stream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	server.CloseClientConnections()
	server.Close()
	if _, err := stream(t.Context(), c); !model.AsError(err).Retryable() {
		t.Errorf("while it restarts: %v", err)
	}
	if _, err := stream(t.Context(), newClient(t, Config{BaseURL: server.URL})); model.AsError(err).Retryable() {
		t.Errorf("a server that never answered: %v", err)
	}
	waits := 0
	p := model.WithRetry(&restarted{c}, model.RetryPolicy{Max: 1, Broken: 5, Sleep: func(context.Context, time.Duration) error {
		if waits++; waits == 3 {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			again := httptest.NewUnstartedServer(answer)
			_ = again.Listener.Close()
			again.Listener = listener
			again.Start()
			t.Cleanup(again.Close)
		}
		return nil
	}})
	server = httptest.NewServer(answer)
	defer server.Close()
	c.base.Host = server.Listener.Addr().String()
	if _, err := model.Complete(t.Context(), p, &model.Request{}); err != nil {
		t.Fatal(err)
	}
	c.base.Host = address
	if resp, err := model.Complete(t.Context(), p, &model.Request{}); err != nil || resp.Parts.Text() != "a" || waits != 3 {
		t.Errorf("%+v, %v after %d waits", resp, err, waits)
	}
}

// restarted makes a provider of a client.
type restarted struct{ *Client }

func (r *restarted) Stream(ctx context.Context, _ *model.Request) iter.Seq2[model.Delta, error] {
	return r.Client.Stream(ctx, func() (Post, error) { return Post{URL: r.URL("x")}, nil }, func(emit func(model.Delta) error) Decoder {
		return &lines{emit: emit}
	})
}

func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{map[string]string{"Retry-After": "3"}, 3 * time.Second},
		{map[string]string{"Retry-After": "0.5"}, 500 * time.Millisecond},
		{map[string]string{"Retry-After-Ms": "1500", "Retry-After": "9"}, 1500 * time.Millisecond},
		{map[string]string{"Retry-After": "Sat, 21 Nov 2026 10:00:10 GMT", "Date": "Sat, 21 Nov 2026 10:00:00 GMT"}, 10 * time.Second},
		{map[string]string{"Retry-After": "soon"}, 0},
		{map[string]string{"Retry-After": "-4"}, 0},
	} {
		base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			for k, v := range test.header {
				w.Header().Set(k, v)
			}
			w.WriteHeader(http.StatusTooManyRequests)
		})
		if _, err := stream(t.Context(), newClient(t, Config{BaseURL: base})); model.AsError(err).RetryAfter != test.want {
			t.Errorf("%v: %v, want %v", test.header, model.AsError(err).RetryAfter, test.want)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	for _, seed := range []string{`{"error":{"message":"m","type":"t","code":"c"}}`, `{"error":"x"}`, `{"detail":[1]}`, `{"message":"x","code":429}`, `<html>`, `{`, `[]`, `{"error":null}`} {
		f.Add(400, seed)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		if code := ParseFault([]byte(body)).Classify(status); code == "" {
			t.Errorf("%d %q has no code", status, body)
		}
	})
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
