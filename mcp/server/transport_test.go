package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`
	listing    = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	calling    = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}`
	listening  = `{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// testProtocol has tools that block until cancelled, and that send much.
func testProtocol() *protocol {
	p := newProtocol("1", "", slog.New(slog.DiscardHandler))
	addTool(p, "wait", func(ctx context.Context, c toolCall) (*result, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	addTool(p, "big", func(context.Context, toolCall) (*result, error) { return textf("%s", strings.Repeat("x", 32<<20)) })
	addTool(p, "chat", func(_ context.Context, c toolCall) (*result, error) {
		for {
			if err := c.send(notification(mcp.MethodNotificationMessage, object{"data": strings.Repeat("x", 1<<20)})); err != nil {
				return nil, err
			}
		}
	})
	return p
}

// testServer starts a server with the transport and returns it with its address.
func testServer(t *testing.T, p *protocol) (*transport, string) {
	tr := newTransport(p)
	web := httptest.NewServer(tr)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return tr, web.Listener.Addr().String()
}

// roundTrip sends a request over a separate connection, which is closed with the
// test.
func roundTrip(t *testing.T, address, method, session, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// begin returns the ID of a new session.
func begin(t *testing.T, address string) string {
	t.Helper()
	return roundTrip(t, address, http.MethodPost, "", initialize).Header.Get("Mcp-Session-Id")
}

// TestSlowReader: a client that does not read its response neither blocks others
// nor keeps the server's memory.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"big", "chat"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testProtocol()
			started := make(chan struct{}, 1)
			own := p.tools[name]
			call := own.call
			own.call = func(ctx context.Context, r *request, params *callParams) (*result, error) {
				started <- struct{}{}
				return call(ctx, r, params)
			}
			p.tools[name] = own
			tr, address := testServer(t, p)
			tr.writeWait = 100 * time.Millisecond
			session := begin(t, address)
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			body := fmt.Sprintf(calling, 5, name)
			if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", session, len(body), body); err != nil {
				t.Fatal(err)
			}
			<-started
			if res := roundTrip(t, address, http.MethodPost, session, listing); res.StatusCode != 200 {
				t.Errorf("another request meanwhile: %s", res.Status)
			}
			settle(t, tr, 0)
			if n, _ := io.Copy(io.Discard, conn); n >= 32<<20 {
				t.Error("all of it was sent: this test shows nothing")
			}
		})
	}
}

// settle waits until only n streams are in progress: a client has its response
// before the server has finished the request.
func settle(t *testing.T, tr *transport, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		busy := 0
		tr.mu.Lock()
		for _, s := range tr.sessions {
			busy += s.busy
		}
		tr.mu.Unlock()
		if busy == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d are in progress, want %d", busy, n)
		}
	}
}

// TestSessions: their number is limited; those in use are not evicted.
func TestSessions(t *testing.T) {
	t.Parallel()
	tr, address := testServer(t, testProtocol())
	first := begin(t, address)
	second := begin(t, address)
	stream := roundTrip(t, address, http.MethodGet, first, "") // puts it in use
	if stream.StatusCode != 200 || stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s, %v", stream.Status, stream.Header)
	}
	settle(t, tr, 1) // so the second is idle
	for range maxSessions - 1 {
		if begin(t, address) == "" {
			t.Fatal("no session")
		}
	}
	settle(t, tr, 1)
	tr.mu.Lock()
	kept := len(tr.sessions)
	for _, s := range tr.sessions {
		s.busy++
	}
	tr.mu.Unlock()
	if kept != maxSessions {
		t.Errorf("%d sessions", kept)
	}
	if res := roundTrip(t, address, http.MethodPost, first, listing); res.StatusCode != 200 {
		t.Errorf("the one in use: %s", res.Status)
	}
	if res := roundTrip(t, address, http.MethodPost, second, listing); res.StatusCode != 404 {
		t.Errorf("the least recently used one: %s", res.Status)
	}
	if res := roundTrip(t, address, http.MethodPost, "", initialize); res.StatusCode != 503 || res.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("one more: %s", res.Status)
	}
	settle(t, tr, maxSessions+1)
	tr.mu.Lock()
	for _, s := range tr.sessions {
		s.busy--
		s.ended = time.Now().Add(-sessionsIdle - time.Second)
	}
	tr.mu.Unlock()
	if begin(t, address) == "" {
		t.Error("no session")
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(tr.sessions) != 2 || tr.sessions[first] == nil {
		t.Errorf("%d sessions are left after an hour, want the new one and the one in use", len(tr.sessions))
	}
	tr.protocol.mu.Lock()
	defer tr.protocol.mu.Unlock()
	if n := len(tr.protocol.watchers); n != 2 {
		t.Errorf("%d watch for changes", n)
	}
}

// TestListChanged: a session is notified of new tools on its stream.
func TestListChanged(t *testing.T) {
	t.Parallel()
	p := testProtocol()
	_, address := testServer(t, p)
	session := begin(t, address)
	p.setTools()
	p.setTools() // pending notifications are sent once
	lines := bufio.NewReader(roundTrip(t, address, http.MethodGet, session, "").Body)
	for range 2 {
		var text string
		for range 3 {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			text += line
		}
		if text != "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n" {
			t.Errorf("%q", text)
		}
		p.setTools()
	}
}

// lineClient is an in-process client of serveLines.
type lineClient struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Scanner
	end chan error
}

func serveLines(t *testing.T, p *protocol) *lineClient {
	in, send := io.Pipe()
	receive, out := io.Pipe()
	c := &lineClient{t: t, in: send, out: bufio.NewScanner(receive), end: make(chan error, 1)}
	go func() {
		c.end <- p.serveLines(context.Background(), in, out)
		_ = out.Close()
	}()
	return c
}

func (c *lineClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *lineClient) next() jsonrpc.Message {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatal("no more messages")
	}
	m, err := jsonrpc.Parse(c.out.Bytes())
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// close closes the connection, and expects no more messages.
func (c *lineClient) close() {
	c.t.Helper()
	_ = c.in.Close()
	if c.out.Scan() {
		c.t.Errorf("at the end: %s", c.out.Text())
	}
	if err := <-c.end; err != nil {
		c.t.Error(err)
	}
}

// TestListenOverStdio: legacy clients are always notified of changes, modern ones
// if they have subscribed.
func TestListenOverStdio(t *testing.T) {
	p := testProtocol()
	now := serveLines(t, p)
	now.send(listening)
	if m := now.next(); m.Method != "notifications/subscriptions/acknowledged" || string(m.Params) != `{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"},"notifications":{"toolsListChanged":true}}` {
		t.Errorf("%+v", m)
	}
	before := serveLines(t, p)
	before.send(initialize)
	before.next()
	p.setTools()
	if m := now.next(); m.Method != "notifications/tools/list_changed" || string(m.Params) != `{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}` {
		t.Errorf("%+v", m)
	}
	if m := before.next(); m.Method != "notifications/tools/list_changed" {
		t.Errorf("%+v", m)
	}
	now.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"sub"}}`)
	now.send(listing)
	now.next() // no response to the subscription
	now.close()
	before.close()
	if len(p.watchers) != 0 {
		t.Errorf("%d watch for changes", len(p.watchers))
	}
}

// TestTooManyAtOnce: a client's concurrent requests are limited.
func TestTooManyAtOnce(t *testing.T) {
	c := serveLines(t, testProtocol())
	for id := range maxRunning {
		c.send(fmt.Sprintf(calling, id, "wait"))
	}
	c.send(listing[:len(listing)-1] + `,"id":"one more"}`)
	if m := c.next(); string(m.ID) != `"one more"` || m.Error == nil || !strings.Contains(m.Error.Message, "wait for one of them") {
		t.Errorf("%+v", m)
	}
	c.close()
}

// TestSameIDAgain: a client may reuse an ID as soon as it has the response, even
// before the server has finished the request.
func TestSameIDAgain(t *testing.T) {
	p, c := testProtocol(), newClient(nil)
	again := make(chan *jsonrpc.Error, 1)
	p.receive(t.Context(), c, []byte(listing), func(jsonrpc.Message) error {
		p.receive(t.Context(), c, []byte(listing), func(m jsonrpc.Message) error {
			again <- m.Error
			return nil
		})
		return nil
	})
	if err := <-again; err != nil {
		t.Error(err)
	}
	c.work.Wait()
}

// TestBrokenPipe: a failed write ends the connection and the running requests.
func TestBrokenPipe(t *testing.T) {
	in, send := io.Pipe()
	receive, out := io.Pipe()
	_ = receive.Close()
	end := make(chan error, 1)
	go func() { end <- testProtocol().serveLines(context.Background(), in, out) }()
	for _, line := range []string{fmt.Sprintf(calling, 5, "wait"), listing} {
		if _, err := io.WriteString(send, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-end; err == nil {
		t.Error("no error")
	}
	_ = send.Close()
}

// FuzzMessage: the response to any input over either transport is a valid message.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{initialize, listing, listening, fmt.Sprintf(calling, 1, "missing"), `[` + listing + `]`, `{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`} {
		f.Add([]byte(seed), "2026-07-28")
	}
	p := newProtocol("1", "", slog.New(slog.DiscardHandler))
	tr := newTransport(p)
	f.Fuzz(func(t *testing.T, data []byte, version string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // subscriptions do not end otherwise
		defer cancel()
		c := newClient(func() {})
		p.receive(ctx, c, data, func(m jsonrpc.Message) error {
			if line := jsonrpc.Encode(m); !json.Valid(line) || strings.ContainsRune(string(line), '\n') {
				t.Errorf("%q", line)
			}
			return nil
		})
		c.work.Wait()
		p.unwatch(c)
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(string(data)))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Mcp-Protocol-Version", version)
		res := httptest.NewRecorder()
		tr.ServeHTTP(res, req)
		if body := res.Body.Bytes(); res.Header().Get("Content-Type") == "application/json" && !json.Valid(body) {
			t.Errorf("%d %q", res.Code, body)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	p := newProtocol("1", "", slog.New(slog.DiscardHandler))
	addTool(p, "echo", func(_ context.Context, c toolCall) (*result, error) { return textf("%s", c.Arguments) })
	in, send := io.Pipe()
	receive, out := io.Pipe()
	end := make(chan error, 1)
	go func() { end <- p.serveLines(context.Background(), in, out) }()
	lines := bufio.NewReader(receive)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.WriteString(send, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`+"\n"); err != nil {
			b.Fatal(err)
		}
		if _, err := lines.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	_ = send.Close()
	if err := <-end; err != nil {
		b.Error(err)
	}
}
