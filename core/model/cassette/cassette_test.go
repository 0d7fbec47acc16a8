package cassette_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/anthropic"
	"github.com/seed-009c0928/agent/core/model/cassette"
	"github.com/seed-009c0928/agent/core/model/gemini"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/openai"
	"github.com/seed-009c0928/agent/core/model/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = `k3y-with "quotes" & more/than+that`

// talk makes two requests of a conversation and returns all deltas.
func talk(t *testing.T, p model.Provider) []model.Delta {
	t.Helper()
	req := &model.Request{
		System:   "Be brief.",
		Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("What is in the file?")}},
		Tools:    []model.ToolDef{{Name: "read_file", Description: "reads", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}},
	}
	var all []model.Delta
	for range 2 {
		var g model.Gatherer
		for d, err := range p.Stream(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
			g.Add(d)
		}
		resp, err := g.Response()
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: resp.Parts})
		for _, c := range resp.Parts.ToolCalls() {
			req.Messages = append(req.Messages, model.Message{Role: model.RoleTool, Parts: model.Parts{
				model.ToolResult{CallID: c.ID, Name: c.Name, Content: model.TextParts("it says: hello")},
			}})
		}
	}
	return all
}

// TestReplayIsWhatWasRecorded records and replays every provider's protocol, the
// latter without the service.
func TestReplayIsWhatWasRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		api  modeltest.API
		open func(wire.Config) (model.Provider, error)
	}{
		"chat":      {modeltest.ChatCompletions, langchain.Local},
		"responses": {modeltest.Responses, func(c wire.Config) (model.Provider, error) { return openai.New(openai.Config{Config: c}) }},
		"messages":  {modeltest.Messages, func(c wire.Config) (model.Provider, error) { return anthropic.New(anthropic.Config{Config: c}) }},
		"gemini":    {modeltest.Gemini, func(c wire.Config) (model.Provider, error) { return gemini.New(gemini.Config{Config: c}) }},
	} {
		t.Run(name, func(t *testing.T) {
			server := modeltest.New(
				c.api,
				modeltest.Turn{
					Reasoning: []string{"Let me ", "see."}, Text: []string{"I'll ", "look 世界."},
					Calls: []modeltest.Call{{ID: "call_1", Name: "read_file", Args: []string{`{"n":`, `12345678901234567890}`}}},
				},
				modeltest.Turn{Text: []string{"It says ", "hello."}},
			)
			base, stop, err := server.Start()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "tape.yaml")
			transport := wire.NewTransport(time.Minute)
			defer transport.CloseIdleConnections()
			rec, err := cassette.Record(path, transport, cassette.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := c.open(wire.Config{BaseURL: base, APIKey: "some-key-of-mine", Model: "m-1", Transport: rec})
			if err != nil {
				t.Fatal(err)
			}
			want := talk(t, p)
			if err := rec.Close(); err != nil {
				t.Fatal(err)
			}
			transport.CloseIdleConnections()
			stop()

			player, err := cassette.Replay(path, cassette.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err = c.open(wire.Config{BaseURL: "http://127.0.0.1:1/" + pathOf(t, base), APIKey: "replayed", Model: "m-1", Transport: player})
			if err != nil {
				t.Fatal(err)
			}
			if got := talk(t, p); !reflect.DeepEqual(got, want) {
				t.Errorf("replayed\n%+v\nrecorded\n%+v", got, want)
			}
			if unused, all := player.Unused(); unused != 0 || all != 2 {
				t.Errorf("%d of %d unused", unused, all)
			}
			text := read(t, path)
			if strings.Contains(text, "some-key-of-mine") || strings.Contains(text, "cut: true") {
				t.Errorf("the cassette holds the key, or was cut:\n%s", text)
			}
			for _, line := range []string{"cassette: 1\n---\nrequest:\n", "\n  body: |\n    {\n", "\n  body: |", "12345678901234567890", "世界"} {
				if !strings.Contains(text, line) {
					t.Errorf("nobody can read this, there is no %q:\n%s", line, text)
				}
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && filepath.Separator == '/' {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}

func pathOf(t *testing.T, base string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// service starts a server with the handler.
func service(t *testing.T, h http.HandlerFunc) (url string, transport http.RoundTripper) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	transport = s.Client().Transport
	return s.URL, transport
}

func post(t *testing.T, rt http.RoundTripper, url, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+secret[:8])
	req.Header.Set("X-Api-Key", "header-secret-1234")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, string(data), err
}

// record records some requests.
func record(t *testing.T, o cassette.Options, answer http.HandlerFunc, bodies ...string) (path string) {
	t.Helper()
	at, transport := service(t, answer)
	path = filepath.Join(t.TempDir(), "tape.yaml")
	rec, err := cassette.Record(path, transport, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		if _, _, err := post(t, rec, at+"/v1/chat?key=query-secret-1234&alt=sse", body); err != nil {
			t.Fatal(err)
		}
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Set-Cookie", "session=cookie-secret-1234")
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.Copy(w, r.Body)
}

func TestSecretsAreNotWritten(t *testing.T) {
	inJSON, _ := json.Marshal(secret)
	githubKey := "ghp_" + strings.Repeat("a1B2", 9)
	body := fmt.Sprintf(`{"a":%s,"b":%q,"c":%q,"d":%q,"e":%q}`, inJSON, url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), githubKey)
	opts := cassette.Options{Secrets: func() []string { return []string{secret} }}
	path := record(t, opts, echo, body)
	text := read(t, path)
	for _, leak := range []string{
		secret, string(inJSON), url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
		secret[:8], githubKey, "query-secret", "header-secret", "cookie-secret", "Authorization",
	} {
		if strings.Contains(text, leak) {
			t.Errorf("the cassette holds %q:\n%s", leak, text)
		}
	}
	// The same request still matches.
	player, err := cassette.Replay(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, got, err := post(t, player, "http://x/v1/chat?alt=sse&key=another", body); err != nil || strings.Count(got, "[redacted]") != 5 {
		t.Errorf("replayed %s, %v", got, err)
	}
}

func TestStableTexts(t *testing.T) {
	here := cassette.Options{Stable: []cassette.Stable{{Name: "home", Text: "/home/ann"}, {Name: "workspace", Text: "/home/ann/shop"}, {Name: "root", Text: "/"}}}
	path := record(t, here, echo, `{"text":"in /home/ann/shop/a.go, not /home/ann/shop2, of /home/ann"}`)
	if text := read(t, path); !strings.Contains(text, "in {{workspace}}/a.go, not {{home}}/shop2, of {{home}}") {
		t.Errorf("the cassette is of this place:\n%s", text)
	}
	there := cassette.Options{Stable: []cassette.Stable{{Name: "home", Text: `C:\Users\bob`}, {Name: "workspace", Text: `D:\shop`}}}
	player, err := cassette.Replay(path, there)
	if err != nil {
		t.Fatal(err)
	}
	asked := `{"text":"in D:\\shop/a.go, not C:\\Users\\bob/shop2, of C:\\Users\\bob"}`
	_, got, err := post(t, player, "http://x/v1/chat?alt=sse&key=1", asked)
	if err != nil || got != asked {
		t.Errorf("replayed %s, %v, want %s", got, err, asked)
	}
}

func TestMismatch(t *testing.T) {
	recorded := `{"model":"m","temperature":1.0,"gone":true,"messages":[{"role":"user","content":"` + strings.Repeat("x", 50) + ` the old text of this message"},{"role":"tool","content":"took 0.38 s"}]}`
	opts := cassette.Options{Ignore: []*regexp.Regexp{regexp.MustCompile(`[\d.]+ s\b`)}}
	path := record(t, opts, echo, recorded)
	for _, tt := range []struct{ name, now, want string }{
		{"the same in another order", `{"messages":[{"content":"` + strings.Repeat("x", 50) + ` the old text of this message","role":"user"},{"role":"tool","content":"took 12 s"}],"gone":true,
			"temperature":1.0,"model":"m"}`, ""},
		{"values", `{"model":"other","temperature":1,"new":{"a":[1]},"messages":[{"role":"user","content":"` + strings.Repeat("x", 50) + ` the new text of this message"}]}`, `the request differs from the one recorded at PATH:2:
  gone: recorded true, now missing
  messages[0].content: recorded …"xxxxxxxxxxxxxxx the old text of this message", now …"xxxxxxxxxxxxxxx the new text of this message"
  messages[1]: recorded {"content":"took 0.38 s","role":"tool"}, now missing
  model: recorded "m", now "other"
  new: not recorded, now {"a":[1]}
  temperature: recorded 1.0, now 1`},
		{"another kind", `[1]`, "the request differs from the one recorded at PATH:2:\n  body: recorded {\"gone\":true,"},
		{"no JSON", `hello`, "the request differs from the one recorded at PATH:2:\n  body: recorded \"{\\n  \\\"model\\\": \\\"m\\\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			player, err := cassette.Replay(path, opts)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = post(t, player, "http://other-host/v1/chat?key=1&alt=sse", tt.now)
			var known *model.Error
			var mismatch *cassette.MismatchError
			switch {
			case tt.want == "":
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = post(t, player, "http://other-host/v1/chat?key=1&alt=sse", tt.now)
				if !errors.As(err, &mismatch) || err.Error() == "" || !strings.Contains(mismatch.Error(), "no more requests were recorded") {
					t.Errorf("a request too many: %v", err)
				}
			case !errors.As(err, &known) || known.Code != model.CodeInvalidRequest || known.Retryable() || !errors.As(err, &mismatch):
				t.Errorf("error %#v", err)
			case !strings.HasPrefix(strings.ReplaceAll(mismatch.Error(), path, "PATH"), tt.want):
				t.Errorf("says\n%s\nwant\n%s", mismatch, tt.want)
			}
		})
	}
	t.Run("no more than twenty lines", func(t *testing.T) {
		player, _ := cassette.Replay(path, opts)
		many := map[string]int{}
		for i := range 100 {
			many[fmt.Sprint("k", i)] = i
		}
		text, _ := json.Marshal(many)
		_, _, err := post(t, player, "http://x/v2/chat?alt=sse", string(text))
		if n := strings.Count(err.Error(), "\n"); n < 20 || n > 24 {
			t.Errorf("%d lines:\n%v", n, err)
		}
		for _, want := range []string{"url: recorded", "\n  …"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in\n%v", want, err)
			}
		}
	})
}

// TestConcurrentRequests checks that each gets the answer recorded for it.
func TestConcurrentRequests(t *testing.T) {
	var bodies []string
	for i := range 20 {
		bodies = append(bodies, fmt.Sprintf(`{"n":%d}`, i))
	}
	player, err := cassette.Replay(record(t, cassette.Options{}, echo, bodies...), cassette.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Go(func() {
			body := bodies[len(bodies)-1-i]
			if _, got, err := post(t, player, "http://x/v1/chat?alt=sse&key=1", body); err != nil || got != body {
				t.Errorf("%s: %s, %v", body, got, err)
			}
		})
	}
	wg.Wait()
}

func TestFailuresAndOddBodies(t *testing.T) {
	n := 0
	answer := func(w http.ResponseWriter, r *http.Request) {
		n++
		switch n {
		case 1:
			w.Header().Set("Retry-After", "7")
			w.Header().Set("X-Request-Id", "req-1")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":"slow down"}`)
		case 2:
			_, _ = w.Write([]byte{0xff, 0xfe, 0})
		case 3:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: one\r\n\r\ndata: two  \n\n: ping\n\n")
		case 4:
		}
	}
	path := record(t, cassette.Options{}, answer, `{}`, "\xff\x00", "plain  \n", "")
	player, err := cassette.Replay(path, cassette.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const at = "http://x/v1/chat?alt=sse&key=1"
	resp, text, err := post(t, player, at, `{}`)
	if err != nil || resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "7" || resp.Header.Get("X-Request-Id") != "req-1" || text != `{"error":"slow down"}` {
		t.Errorf("%+v %q %v", resp, text, err)
	}
	for _, tt := range []struct{ body, want string }{
		{"\xff\x00", "\xff\xfe\x00"}, {"plain  \n", "data: one\r\n\r\ndata: two  \n\n: ping\n\n"}, {"", ""},
	} {
		if _, text, err := post(t, player, at, tt.body); err != nil || text != tt.want {
			t.Errorf("%q: %q, %v, want %q", tt.body, text, err, tt.want)
		}
	}
}

// TestCutAnswer checks that a recording ends where the consumer stopped reading.
func TestCutAnswer(t *testing.T) {
	gone := make(chan struct{})
	at, transport := service(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: one\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	path := filepath.Join(t.TempDir(), "tape.yaml")
	rec, err := cassette.Record(path, transport, cassette.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader("{}"))
	resp, err := rec.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	if n, err := resp.Body.Read(buf); err != nil || string(buf[:n]) != "data: one\n\n" { // before the answer ends
		t.Fatalf("%q, %v", buf[:n], err)
	}
	_ = resp.Body.Close()
	cancel()
	<-gone
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	if text := read(t, path); !strings.Contains(text, "cut: true") {
		t.Errorf("it does not say that it was cut:\n%s", text)
	}
	player, err := cassette.Replay(path, cassette.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, text, err := post(t, withoutType{player}, "http://x", "{}"); text != "data: one\n\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", text, err)
	}
}

// withoutType removes the Content-Type, as of the request above.
type withoutType struct{ http.RoundTripper }

func (w withoutType) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Del("Content-Type")
	return w.RoundTripper.RoundTrip(r)
}

func TestReplayHeedsTheContext(t *testing.T) {
	player, err := cassette.Replay(record(t, cassette.Options{}, echo, `{}`), cassette.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://x/v1/chat?alt=sse&key=1", strings.NewReader("{}"))
	req.Header.Set("Content-Type", "application/json")
	resp, err := player.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("reading on: %v", err)
	}
	if _, err := player.RoundTrip(req.Clone(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("asking again: %v", err)
	}
}

func TestRecordingFiles(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cassette.Record(there, nil, cassette.Options{}); !errors.Is(err, fs.ErrExist) || read(t, there) != "mine" {
		t.Errorf("a file that is there: %v", err)
	}
	empty := filepath.Join(dir, "empty")
	rec, err := cassette.Record(empty, nil, cassette.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rec.Close(), rec.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(empty); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a recording of nothing is left: %v", err)
	}
	if _, err := rec.RoundTrip(httptest.NewRequest(http.MethodPost, "/", nil)); err == nil {
		t.Error("a closed recorder sends requests")
	}
}

func TestBrokenCassettes(t *testing.T) {
	const good = "request: {method: POST, url: /x}\nresponse: {status: 200}\n"
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "it is empty"},
		{"no YAML", "cassette: 1\n---\n\t{", "line 3"},
		{"something else", "name: x\n", "line 1: not a recording"},
		{"a list", "- 1\n", "line 1: not a recording"},
		{"a newer one", "cassette: 2\n", "its version is 2; this program supports version 1"},
		{"an unknown field", "cassette: 1\n---\n" + good + "more: 1\n", "line 3"},
		{"no method", "cassette: 1\n---\n" + good + "---\nrequest: {url: /x}\nresponse: {status: 200}\n", "line 5: not an exchange"},
		{"no status", "cassette: 1\n---\nrequest: {method: POST, url: /x}\n", "line 2: not an exchange"},
		{"no base64", "cassette: 1\n---\nrequest: {method: POST, url: /x}\nresponse: {status: 200, base64: '%%'}\n", "line 2: not an exchange"},
		{"a wrong type", "cassette: 1\n---\nrequest: {method: POST, url: /x}\nresponse: {status: fine}\n", "line 4"},
	} {
		path := filepath.Join(t.TempDir(), "tape.yaml")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cassette.Replay(path, cassette.Options{}); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := cassette.Replay(filepath.Join(t.TempDir(), "none"), cassette.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte("cassette: 1\n---\nrequest: {method: POST, url: /x, body: '{}'}\nresponse: {status: 200, body: |\n  data: x\n}\n"))
	f.Add([]byte("cassette: 1\n---\nrequest: &a {method: POST, url: /x}\nresponse: {status: 200, header: *a}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "tape.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		player, err := cassette.Replay(path, cassette.Options{})
		if err != nil {
			return
		}
		req := httptest.NewRequest(http.MethodPost, "/x", bytes.NewReader([]byte("{}")))
		if resp, err := player.RoundTrip(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	})
}
