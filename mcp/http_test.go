package mcp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/mark3labs/mcp-go/server/servertest"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/mcp"
)

// webServer is a server of the legacy protocol over streamable HTTP.
type webServer struct {
	*httptest.Server
	mu        sync.Mutex
	sessions  map[string]bool
	n         int
	seen      []jsonrpc.Message // requests and notifications
	headers   []http.Header
	refused   int  // with status 401
	gate      bool // requires the header Authorization
	tools     string
	hanging   chan struct{} // signalled when a call hangs
	cancelled chan struct{}
	refusals  chan struct{} // signalled for each request that the client refuses; may be nil
	answers   map[string]chan jsonrpc.Message
}

func newWebServer(t testing.TB) *webServer {
	t.Helper()
	w := &webServer{sessions: map[string]bool{}, tools: defaultTools, hanging: make(chan struct{}, 10), cancelled: make(chan struct{}, 10), answers: map[string]chan jsonrpc.Message{}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

func (w *webServer) forgetSessions() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sessions = map[string]bool{}
}

func (w *webServer) methods() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for _, m := range w.seen {
		list = append(list, m.Method)
	}
	return strings.Join(list, " ")
}

// ServeHTTP implements [http.Handler].
func (w *webServer) ServeHTTP(out http.ResponseWriter, req *http.Request) {
	session := req.Header.Get("Mcp-Session-Id")
	switch {
	case req.Method == http.MethodDelete:
		return
	case req.Method != http.MethodPost:
		out.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(req.Body)
	m, _ := jsonrpc.Parse(body)
	w.mu.Lock()
	w.seen, w.headers = append(w.seen, m), append(w.headers, req.Header.Clone())
	known := w.sessions[session]
	denied := w.gate && req.Header.Get("Authorization") == ""
	if denied {
		w.refused++
	}
	if m.Method == "initialize" {
		w.n++
		session = fmt.Sprintf("session-%d", w.n)
		w.sessions[session] = true
	}
	w.mu.Unlock()
	reply := func(result string) {
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	switch {
	case denied:
		out.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://example.com/x"`)
		out.WriteHeader(http.StatusUnauthorized)
	case m.Method == "initialize":
		out.Header().Set("Mcp-Session-Id", session)
		reply(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"web","version":"1"}}`)
	case m.Method == "server/discover":
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	case !known:
		out.WriteHeader(http.StatusNotFound)
	case m.Method == "notifications/cancelled":
		w.cancelled <- struct{}{}
		out.WriteHeader(http.StatusAccepted)
	case m.Method == "":
		w.mu.Lock()
		answer := w.answers[string(m.ID)]
		w.mu.Unlock()
		if m.Error != nil && w.refusals != nil {
			w.refusals <- struct{}{}
		}
		answer <- m
		out.WriteHeader(http.StatusAccepted)
	case !m.HasID():
		out.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/list":
		reply(`{"tools":[` + w.tools + `]}`)
	case m.Method == "tools/call":
		w.call(out, req, m, reply)
	}
}

func (w *webServer) call(out http.ResponseWriter, req *http.Request, m jsonrpc.Message, reply func(string)) {
	var p struct {
		Name string `json:"name"`
		Args struct {
			N int `json:"n"`
		} `json:"arguments"`
		Meta struct {
			Token string `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p)
	switch p.Name {
	case "questions":
		w.askMany(out, m.ID, p.Args.N)
	case "hang":
		w.hanging <- struct{}{}
		<-req.Context().Done()
	case "big":
		reply(`{"content":[{"type":"text","text":"` + strings.Repeat("A", 3<<19) + `"}]}`)
	case "bigevents":
		out.Header().Set("Content-Type", "text/event-stream")
		for range 2 { // each within the limit
			fmt.Fprintf(out, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":%q}}\n\n", strings.Repeat("A", 600<<10))
		}
		fmt.Fprintf(out, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}}\n\n", m.ID)
	case "bigevent":
		out.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(out, "data: %s\n\n", strings.Repeat("A", 3<<19))
	case "another": // request's response
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprint(out, `{"jsonrpc":"2.0","id":4242,"result":{}}`)
	case "accepted":
		out.WriteHeader(http.StatusAccepted)
	case "nameless": // error
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprint(out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`)
	case "ended", "cut":
		out.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(out, ": nothing\n\nid: 1\nevent: message\ndata: [1,{}]\n\ndata: {\"id\":4242,\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":4242,\"result\":{}}\n\n")
		out.(http.Flusher).Flush()
		if p.Name == "cut" {
			panic(http.ErrAbortHandler)
		}
	case "batch":
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(out, ` [{"jsonrpc":"2.0","method":"notifications/message"},{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"of many"}]}}]`, m.ID)
	case "progress":
		out.Header().Set("Content-Type", "text/event-stream")
		for i := range 10 { // all at once, with the response
			fmt.Fprintf(out, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%q,\"progress\":%d,\"total\":10}}\n\n", p.Meta.Token, i+1)
		}
		fmt.Fprintf(out, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", m.ID)
	case "question", "unheard":
		answer := make(chan jsonrpc.Message, 1)
		w.mu.Lock()
		w.answers[`"q"`] = answer
		w.mu.Unlock()
		out.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(out, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"x\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}\n\n")
		out.(http.Flusher).Flush()
		if p.Name == "unheard" { // the test receives the answer
			<-req.Context().Done()
			return
		}
		select {
		case a := <-answer:
			fmt.Fprintf(out, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":%q}]}}\n\n", m.ID, a.Result)
		case <-req.Context().Done():
		}
	default:
		reply(`{"content":[{"type":"text","text":"ok"}]}`)
	}
}

const emptyForm = `"method":"elicitation/create","params":{"message":"x","requestedSchema":{"type":"object","properties":{}}}`

// askMany asks n questions at once. The result of the call is all answers.
func (w *webServer) askMany(out http.ResponseWriter, id json.RawMessage, n int) {
	answers := make(chan jsonrpc.Message, n)
	out.Header().Set("Content-Type", "text/event-stream")
	for i := range n {
		question := fmt.Sprintf(`"q%d"`, i)
		w.mu.Lock()
		w.answers[question] = answers
		w.mu.Unlock()
		fmt.Fprintf(out, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n\n", question, emptyForm)
	}
	out.(http.Flusher).Flush()
	var all []string
	for range n {
		all = append(all, string(jsonrpc.Encode(<-answers)))
	}
	fmt.Fprintf(out, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":%q}]}}\n\n", id, strings.Join(all, "\n"))
}

func TestStreamableHTTP(t *testing.T) {
	web := newWebServer(t)
	s := mcp.Server{URL: web.URL, Headers: map[string]string{"X-Key": "${MCP_TEST_KEY:-k}"}}
	h := newHost(t, s, "")
	if st := refreshed(t, h); st.Info.Protocol != "2025-11-25" || len(st.Tools) != 3 || string(st.Tools[1].Schema) != oddSchema {
		t.Errorf("status %+v", st)
	}
	if res := runTool(t, toolNamed(t, h, "echo"), `{"text":"x"}`, core.Answer{}, nil); text(res) != "ok" {
		t.Errorf("echo: %s %q", res.Code, text(res))
	}
	for i, header := range web.headers {
		if header.Get("X-Key") != "k" {
			t.Errorf("request %d (%s) has no key", i, web.seen[i].Method)
		}
	}
}

func TestExpiredSession(t *testing.T) {
	web := newWebServer(t)
	h := newHost(t, mcp.Server{URL: web.URL}, "")
	refreshed(t, h)
	web.forgetSessions()
	if res := runTool(t, toolNamed(t, h, "echo"), `{"text":"x"}`, core.Answer{}, nil); res.Code != "" {
		t.Errorf("after the session was forgotten: %s %q", res.Code, text(res))
	}
	before := strings.Count(web.methods(), "initialize ")
	var never http.HandlerFunc = func(out http.ResponseWriter, req *http.Request) {
		if body, _ := io.ReadAll(req.Body); !strings.Contains(string(body), `"tools/call"`) {
			req.Body = io.NopCloser(strings.NewReader(string(body)))
			web.ServeHTTP(out, req)
			return
		}
		web.mu.Lock()
		web.seen = append(web.seen, jsonrpc.Message{Method: "tools/call"})
		web.mu.Unlock()
		out.WriteHeader(http.StatusNotFound)
	}
	web.Config.Handler = never
	res := runTool(t, toolNamed(t, h, "echo"), `{"text":"x"}`, core.Answer{}, nil)
	if res.Code != core.CodeIO || !strings.Contains(text(res), "the session has expired") {
		t.Errorf("a server that knows no session: %s %q", res.Code, text(res))
	}
	if n := strings.Count(web.methods(), "initialize ") - before; n != 1 {
		t.Errorf("initialized %d times for one call", n)
	}
}

func TestNotMCP(t *testing.T) {
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"a web page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<html>login</html>")
		}, "returned a web page (text/html) instead of MCP: check the url"},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "go away", http.StatusForbidden) }, "supports neither streamable HTTP nor SSE: HTTP status 403 Forbidden: go away"},
		"broken":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh dear", http.StatusInternalServerError) }, "HTTP status 500 Internal Server Error: oh dear"},
		"sign-in":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "sign-in required (HTTP status 401); run: agent mcp login test"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.invalid/steal", http.StatusTemporaryRedirect)
		}, "the server redirects to another host, http://example.invalid/steal"},
		"silence": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection goes unnoticed
			<-r.Context().Done()
		}, "no response to the handshake within 300ms"},
		"nonsense": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{nonsense")
		}, "does not answer the request: {nonsense"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(tt.handler)
			defer web.Close()
			limit := 60_000
			if name == "silence" {
				limit = 300
			}
			_, err := mcp.Connect(t.Context(), "test", mcp.Server{URL: web.URL, StartTimeout: limit}, mcp.ConnectOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "MCP server test: ") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if signIn := name == "sign-in"; errors.Is(err, mcp.ErrSignIn) != signIn {
				t.Errorf("ErrSignIn: want %v", signIn)
			}
		})
	}
}

func TestExpiredCertificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(-time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
	web.StartTLS()
	defer web.Close()
	_, err = mcp.Connect(t.Context(), "test", mcp.Server{URL: web.URL}, mcp.ConnectOptions{})
	if err == nil || !strings.Contains(err.Error(), "certificate has expired") {
		t.Errorf("error %v", err)
	}
}

func TestSignIn(t *testing.T) {
	web := newWebServer(t)
	web.gate = true
	h := mcp.NewHost(mcp.HostOptions{Servers: []mcp.Configured{{Name: "test", Server: mcp.Server{URL: web.URL}}}, Connect: mcp.ConnectOptions{Authorize: func(name string, _ mcp.Server, base http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(req)
			if err != nil || resp.StatusCode != http.StatusUnauthorized {
				return resp, err
			}
			resp.Body.Close()
			again := req.Clone(req.Context())
			again.Body, _ = req.GetBody()
			again.Header.Set("Authorization", "Bearer "+name)
			return base.RoundTrip(again)
		})
	}}})
	defer h.Close()
	if st := refreshed(t, h); len(st.Tools) != 3 || web.refused == 0 {
		t.Errorf("%d tools, %d requests without a token", len(st.Tools), web.refused)
	}
}

func TestSignInThatFails(t *testing.T) {
	web := newWebServer(t)
	_, err := mcp.Connect(t.Context(), "test", mcp.Server{URL: web.URL}, mcp.ConnectOptions{Authorize: func(string, mcp.Server, http.RoundTripper) http.RoundTripper {
		return roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("%w: the token was revoked", mcp.ErrSignIn)
		})
	}})
	want := "MCP server test: sign-in required: the token was revoked; run: agent mcp login test"
	if !errors.Is(err, mcp.ErrSignIn) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if n := len(web.seen); n > 0 {
		t.Errorf("%d requests reached the server", n)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestBoundsOverHTTP(t *testing.T) {
	web := newWebServer(t)
	for limit, want := range map[int]string{64: "", 1: "the message is too long: more than 1 MiB"} {
		c := connect(t, mcp.Server{URL: web.URL, MaxMessageMiB: limit}, old)
		if _, err := call(t, c, "big", `{}`, mcp.Caller{}); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("limit %d: %v", limit, err)
		}
		if got, err := call(t, c, "bigevents", `{}`, mcp.Caller{}); err != nil || got.Text() != "ok" {
			t.Errorf("limit %d, many events: %q, %v", limit, got.Text(), err)
		}
	}
	c := connect(t, mcp.Server{URL: web.URL, MaxMessageMiB: 1}, old)
	if _, err := call(t, c, "bigevent", `{}`, mcp.Caller{}); err == nil {
		t.Error("an event that is too long came through")
	}
}

func TestCancelOverHTTP(t *testing.T) {
	web := newWebServer(t)
	c := connect(t, mcp.Server{URL: web.URL}, old)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-web.hanging
		cancel()
	}()
	if _, err := c.Call(ctx, mcp.ToolInfo{Name: "hang"}, json.RawMessage(`{}`), mcp.Caller{}); err == nil {
		t.Error("the call came back")
	}
	select {
	case <-web.cancelled:
	case <-time.After(time.Minute):
		t.Error("the server was not told")
	}
}

func TestOddResponses(t *testing.T) {
	c := connect(t, mcp.Server{URL: newWebServer(t).URL}, old)
	for tool, want := range map[string]string{
		"another":  "the response does not answer the request",
		"accepted": "the response (HTTP status 202 Accepted) has the type \"\"",
		"nameless": "the server returned error -32700: parse error",
		"ended":    "the response stream was interrupted and could not be resumed: HTTP status 405 Method Not Allowed",
		"cut":      "unexpected EOF",
		"batch":    "of many",
		"echo":     "ok",
	} {
		got, err := call(t, c, tool, `{}`, mcp.Caller{})
		text := got.Text()
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", tool, text, want)
		}
	}
}

func TestLastProgressIsReported(t *testing.T) {
	for name, s := range map[string]mcp.Server{"stdio": scriptedServer(t, ""), "http": {URL: newWebServer(t).URL}} {
		c := connect(t, s, old)
		var last core.Progress
		reports := 0
		if _, err := call(t, c, "progress", `{"n":10}`, mcp.Caller{Progress: func(p core.Progress) { last, reports = p, reports+1 }}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if last.Done != 10 || reports > 3 {
			t.Errorf("%s: %d reports, the last %+v", name, reports, last)
		}
	}
}

func TestQuestionOverHTTP(t *testing.T) {
	web := newWebServer(t)
	c := connect(t, mcp.Server{URL: web.URL}, old)
	got, err := call(t, c, "question", `{}`, mcp.Caller{Ask: func(ctx context.Context, _ core.Question) (core.Answer, error) {
		if _, ok := ctx.Deadline(); ok {
			t.Error("the question has a deadline")
		}
		return core.Answer{Choice: core.ChoiceYes}, nil
	}})
	if err != nil || got.Text() != `{"action":"accept","content":{}}` {
		t.Errorf("%q, %v", got.Text(), err)
	}
}

// TestLateAnswer checks that a question is answered even if its call has ended.
func TestLateAnswer(t *testing.T) {
	web := newWebServer(t)
	c := connect(t, mcp.Server{URL: web.URL}, old)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.Call(ctx, mcp.ToolInfo{Name: "unheard"}, json.RawMessage(`{}`), mcp.Caller{Ask: func(ctx context.Context, _ core.Question) (core.Answer, error) {
		cancel()
		<-ctx.Done()
		return core.Answer{}, ctx.Err()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the call: %v", err)
	}
	web.mu.Lock()
	answer := web.answers[`"q"`]
	web.mu.Unlock()
	select {
	case m := <-answer:
		if string(m.Result) != `{"action":"cancel"}` {
			t.Errorf("the answer %+v", m)
		}
	case <-time.After(time.Minute):
		t.Error("there was no answer")
	}
}

// TestModernProtocol connects to a server of 2026-07-28, that of mcp-go.
func TestModernProtocol(t *testing.T) {
	s := mcpserver.NewMCPServer("new", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithRecovery())
	s.AddTool(mcpgo.NewTool("add"), func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		s.AddTool(mcpgo.NewTool("more"), func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			return mcpgo.NewToolResultText("m"), nil
		})
		return mcpgo.NewToolResultText("added"), nil
	})
	s.AddTool(mcpgo.NewTool("panic"), func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) { panic("boom") })
	web := httptest.NewServer(mcpserver.NewStreamableHTTPServer(s))
	t.Cleanup(web.Close) // after the host
	h := newHost(t, mcp.Server{URL: web.URL}, t.TempDir())
	if st := refreshed(t, h); st.Info.Protocol != mcpgo.ProtocolVersion20260728 || len(st.Tools) != 2 {
		t.Fatalf("status %+v", st)
	}
	if err := h.Ping(t.Context(), "test"); err != nil {
		t.Errorf("Ping: %v", err)
	}
	set := h.Toolsets()[0]
	drain(set)
	if res := runTool(t, toolNamed(t, h, "add"), `{}`, core.Answer{}, nil); text(res) != "added" {
		t.Errorf("add: %s %q", res.Code, text(res))
	}
	if res := runTool(t, toolNamed(t, h, "panic"), `{}`, core.Answer{}, nil); res.Code == "" {
		t.Errorf("panic: %q", text(res))
	}
	select {
	case <-set.Changed():
		if list, _ := set.Tools(t.Context()); len(list) != 3 {
			t.Errorf("%d tools after the change", len(list))
		}
	case <-time.After(time.Minute):
		t.Error("no signal of the change")
	}
}

// TestLegacyProtocol connects to a server of 2025-11-25, that of mcp-go, over
// streamable HTTP, and over SSE as the fallback.
func TestLegacyProtocol(t *testing.T) {
	s := mcpserver.NewMCPServer("old", "1", mcpserver.WithToolCapabilities(true))
	s.AddTool(mcpgo.NewTool("more"), func(ctx context.Context, req mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		s.SendNotificationToAllClients("notifications/tools/list_changed", nil)
		return mcpgo.NewToolResultText(req.GetString("text", "")), nil
	})
	streamable := servertest.NewTestStreamableHTTPServer(s)
	t.Cleanup(streamable.Close)
	events := servertest.NewTestServer(s)
	t.Cleanup(events.Close)
	for kind, url := range map[string]string{mcp.TransportHTTP: streamable.URL, mcp.TransportSSE: events.URL + "/sse"} {
		told := make(chan mcp.Notice, 1)
		c := connect(t, mcp.Server{URL: url}, oldWith(mcp.ConnectOptions{Notify: func(_ context.Context, n mcp.Notice) { told <- n }}))
		if got := c.Info(); got.Transport != kind || got.Protocol != "2025-11-25" {
			t.Errorf("%s: %+v", kind, got)
		}
		if got, err := call(t, c, "more", `{"text":"x"}`, mcp.Caller{}); err != nil || got.Text() != "x" {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
		select {
		case n := <-told:
			if n.Kind != mcp.ToolsChanged {
				t.Errorf("%s: notice %+v", kind, n)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: no notification outside of requests", kind)
		}
		_ = c.Close()
	}
}

// TestStreamThatEndsEarly resumes interrupted streams until the response arrives.
func TestStreamThatEndsEarly(t *testing.T) {
	var asked json.RawMessage
	web := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		m, _ := jsonrpc.Parse(body)
		answer := `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"content":[{"type":"text","text":"late"}]}}`
		switch {
		case req.Method == http.MethodGet && req.Header.Get("Last-Event-ID") == "":
			out.WriteHeader(http.StatusMethodNotAllowed)
		case req.Method == http.MethodGet:
			out.Header().Set("Content-Type", "text/event-stream")
			if req.Header.Get("Last-Event-ID") == "1" { // not yet
				fmt.Fprint(out, "id: 2\n\n")
				return
			}
			fmt.Fprintf(out, "data: "+answer, asked) // without the last blank line
		case m.Method == "tools/call":
			asked = m.ID
			out.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(out, "id: 1\nretry: 5\ndata:\n\n")
		case m.HasID():
			out.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(out, answer, m.ID)
		}
	}))
	t.Cleanup(web.Close)
	got, err := call(t, connect(t, mcp.Server{URL: web.URL}, old), "x", `{}`, mcp.Caller{})
	if err != nil || got.Text() != "late" {
		t.Errorf("%q, %v", got.Text(), err)
	}
}

// modernServer is a server of 2026-07-28 that responds with what result returns.
func modernServer(t *testing.T, result func(out http.ResponseWriter, m jsonrpc.Message) string) *httptest.Server {
	web := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		m, _ := jsonrpc.Parse(body)
		if req.Header.Get("Mcp-Method") != m.Method || req.Header.Get("Mcp-Protocol-Version") != "2026-07-28" || !strings.Contains(string(m.Params), `"io.modelcontextprotocol/clientCapabilities"`) {
			t.Errorf("%s %s has the headers %v", m.Method, m.Params, req.Header)
		}
		out.Header().Set("Content-Type", "application/json")
		if m.Method == "server/discover" {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`, m.ID)
			return
		}
		text := result(out, m)
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, text)
	}))
	t.Cleanup(web.Close)
	return web
}

func TestInputRequired(t *testing.T) {
	rounds := 0
	web := modernServer(t, func(out http.ResponseWriter, m jsonrpc.Message) string {
		var p struct {
			Name      string                     `json:"name"`
			Responses map[string]json.RawMessage `json:"inputResponses"`
			State     string                     `json:"requestState"`
		}
		_ = json.Unmarshal(m.Params, &p)
		rounds++
		const form = `{"method":"elicitation/create","params":{"message":"x","requestedSchema":{"type":"object","properties":{}}}}`
		switch {
		case p.Name == "ask" && p.State == "":
			return `"result":{"resultType":"input_required","requestState":"s","inputRequests":{"a":` + form + `,"b":{"method":"roots/list"}}}`
		case p.Name == "ask":
			return fmt.Sprintf(`"result":{"content":[{"type":"text","text":%q}]}`, jsonrpc.Encode(p.Responses))
		case p.Name == "busy":
			return `"result":{"resultType":"input_required","requestState":"s"}`
		case p.Name == "insatiable":
			return `"result":{"resultType":"input_required","inputRequests":{"a":` + form + `}}`
		case p.Name == "curious":
			return `"result":{"resultType":"input_required","inputRequests":{"a":{"method":"fs/read"}}}`
		case p.Name == "broken":
			return `"result":{"resultType":"input_required","inputRequests":7}`
		}
		out.WriteHeader(http.StatusNotFound)
		return `"error":{"code":-32601,"message":"no such method"}`
	})
	c := connect(t, mcp.Server{URL: web.URL}, mcp.ConnectOptions{Roots: []string{"/w"}})
	for tool, want := range map[string]struct {
		text   string
		rounds int
	}{
		"ask":        {`{"a":{"action":"decline"},"b":{"roots":[{"uri":"file:///w","name":"w"}]}}`, 2},
		"busy":       {"keeps requesting input", 3},
		"insatiable": {"keeps requesting input", 10},
		"curious":    {"this client does not support fs/read", 1},
		"broken":     {"invalid requests for input", 1},
		"unknown":    {"the server returned error -32601: no such method", 1},
	} {
		rounds = 0
		got, err := call(t, c, tool, `{}`, mcp.Caller{})
		text := got.Text()
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want.text) || rounds != want.rounds {
			t.Errorf("%s: %q in %d rounds; want %q in %d", tool, text, rounds, want.text, want.rounds)
		}
	}
}

// TestVersions connects to servers that reject the version of the first request.
func TestVersions(t *testing.T) {
	for supported, want := range map[string]string{
		`["2026-07-28"]`:               "2026-07-28 after server/discover server/discover",
		`["2099-01-01","2025-06-18"]`:  "2025-06-18 after server/discover initialize",
		`["2099-01-01"]`:               "unsupported protocol versions 2099-01-01; supported are 2026-07-28, 2025-11-25",
		`[]`:                           "2025-11-25 after server/discover initialize",
		`"what it likes"`:              "2025-11-25 after server/discover initialize",
		`["2026-07-28","2025-06-18"]x`: "2025-11-25 after server/discover initialize", // an unreadable error
	} {
		var seen []string
		web := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			m, _ := jsonrpc.Parse(body)
			if !m.HasID() {
				out.WriteHeader(http.StatusAccepted)
				return
			}
			seen = append(seen, m.Method)
			out.Header().Set("Content-Type", "application/json")
			switch {
			case m.Method == "initialize":
				var p struct {
					Version string `json:"protocolVersion"`
				}
				_ = json.Unmarshal(m.Params, &p)
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, m.ID, p.Version)
			case len(seen) == 1:
				out.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no","data":{"supported":%s}}}`, supported)
			default:
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`, m.ID)
			}
		}))
		c, err := mcp.Connect(t.Context(), "test", mcp.Server{URL: web.URL}, mcp.ConnectOptions{})
		got := ""
		if err == nil {
			got = c.Info().Protocol + " after " + strings.Join(seen, " ")
			_ = c.Close()
		} else {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", supported, got, want)
		}
		web.Close()
	}
}
