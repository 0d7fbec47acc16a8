package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/mcp/server"
)

const (
	hello    = `{"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "x", "version": "1"}}}`
	slowly   = `{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "slow", "arguments": {}, "_meta": {"progressToken": 9007199254740993}}}`
	harmless = `{"jsonrpc": "2.0", "id": "after", "method": "tools/list"}`
	modern   = `"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}`
)

// message is a message of the server.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

func (m message) String() string {
	data, _ := json.Marshal(m)
	return string(data)
}

// wire is a client that can send anything.
type wire struct {
	t       *testing.T
	address string
	session string
}

// dial opens a session.
func dial(t *testing.T, address string) *wire {
	w := &wire{t: t, address: address}
	res, m := w.post(hello)
	if res.StatusCode != 200 || m.Error != nil {
		t.Fatalf("%d, %v", res.StatusCode, m)
	}
	w.session = res.Header.Get("Mcp-Session-Id")
	return w
}

// do sends a request; headers are alternating names and values.
func (w *wire) do(ctx context.Context, method, body string, headers ...string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, w.address, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Content-Type", "application/json")
	if w.session != "" {
		req.Header.Set("Mcp-Session-Id", w.session)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// post sends a message and returns the last one of the response.
func (w *wire) post(body string, headers ...string) (*http.Response, message) {
	w.t.Helper()
	res := w.do(w.t.Context(), http.MethodPost, body, headers...)
	var m message
	for events := newEvents(res); ; {
		next, err := events.next()
		if err != nil {
			return res, m
		}
		m = next
	}
}

// events reads the messages of a response.
type events struct {
	lines  *bufio.Reader
	stream bool
}

func newEvents(res *http.Response) *events {
	return &events{lines: bufio.NewReader(res.Body), stream: strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")}
}

func (e *events) next() (m message, err error) {
	if !e.stream {
		return m, json.NewDecoder(e.lines).Decode(&m)
	}
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			return m, err
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return m, json.Unmarshal([]byte(data), &m)
		}
	}
}

// TestHostileHTTP: invalid requests are rejected with a reason, and do not affect
// the session.
func TestHostileHTTP(t *testing.T) {
	t.Parallel()
	w := dial(t, serve(t, workspace(t)))
	now := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Session-Id", "", "Mcp-Method", "tools/list"}
	called := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "read_file"}
	for name, tt := range map[string]struct {
		body    string
		headers []string
		status  int
		code    int
		says    string
	}{
		"fine":                {harmless, nil, 200, 0, ""},
		"nothing":             {"", nil, 400, -32700, "invalid JSON-RPC message"},
		"no JSON":             {`{"jsonrpc": "2.0", "id": 1`, nil, 400, -32700, "invalid JSON-RPC message"},
		"no object":           {`"tools/list"`, nil, 400, -32700, "expected an object"},
		"deep":                {`{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, nil, 400, -32700, "invalid JSON-RPC message"},
		"batch":               {"\n [" + harmless + "]", nil, 400, -32600, "one by one"},
		"old JSON-RPC":        {`{"id": 1, "method": "tools/list"}`, nil, 400, -32600, `expected "2.0"`},
		"id of a wrong kind":  {`{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}`, nil, 400, -32600, "id: expected"},
		"id null":             {`{"jsonrpc": "2.0", "id": null, "method": "tools/list"}`, nil, 400, -32600, "expected a request"},
		"nothing of all":      {`{"jsonrpc": "2.0", "id": 1}`, nil, 400, -32600, "expected a request"},
		"answer to nothing":   {`{"jsonrpc": "2.0", "id": 99, "result": {}}`, nil, 400, -32600, "no request is waiting"},
		"unknown method":      {`{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}`, nil, 200, -32601, "unknown method"},
		"method to come":      {`{"jsonrpc": "2.0", "id": 1, "method": "server/discover"}`, nil, 200, -32601, "unknown method"},
		"unknown tool":        {`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}`, nil, 200, -32602, `unknown tool "rm"`},
		"params of positions": {`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ["read_file"]}`, nil, 200, -32602, "params: "},
		"cursor":              {`{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "x"}}`, nil, 200, -32602, "one page"},
		"unknown state":       {`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_file", "requestState": "guessed"}}`, nil, 200, -32602, "no call is waiting"},
		"taken back: nothing": {`{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}`, nil, 202, 0, ""},
		"taken back: no id":   {`{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []}`, nil, 202, 0, ""},
		"no session":          {harmless, []string{"Mcp-Session-Id", ""}, 400, -32600, "missing header Mcp-Session-Id"},
		"unknown session":     {harmless, []string{"Mcp-Session-Id", "guessed"}, 404, -32600, "unknown or expired session"},
		"unknown version":     {harmless, []string{"Mcp-Protocol-Version", "2025-01-01"}, 400, -32022, "2026-07-28"},
		"a form":              {"a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 400, -32600, "application/json"},

		"now: fine":            {`{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {` + modern + `}}`, now, 200, 0, ""},
		"now: no _meta":        {harmless, now, 400, -32602, "_meta has no"},
		"now: no capabilities": {`{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}`, now, 400, -32602, "clientCapabilities"},
		"now: no header":       {`{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {` + modern + `}}`, nil, 400, -32020, "header Mcp-Protocol-Version is missing"},
		"now: another method":  {`{"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {` + modern + `}}`, now, 400, -32020, "Mcp-Method"},
		"now: another name":    {`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "shell", ` + modern + `}}`, called, 400, -32020, "Mcp-Name"},
		"now: another version": {strings.Replace(harmless, `"tools/list"`, `"tools/list", "params": {`+strings.Replace(modern, "2026", "2027", 1)+`}`, 1), now, 400, -32020, "2027-07-28"},
		"now: answer":          {`{"jsonrpc": "2.0", "id": 1, "result": {}}`, now, 400, -32600, "no requests of the server"},
		"now: ping":            {`{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {` + modern + `}}`, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "ping"}, 404, -32601, "unknown method"},
		"to come":              {strings.Replace(harmless, `"tools/list"`, `"tools/list", "params": {`+strings.Replace(modern, "2026", "2027", 1)+`}`, 1), []string{"Mcp-Protocol-Version", "2027-07-28", "Mcp-Method", "tools/list"}, 400, -32022, "2026-07-28"},
	} {
		t.Run(name, func(t *testing.T) {
			res, m := w.post(tt.body, tt.headers...)
			code, says := 0, ""
			if m.Error != nil {
				code, says = m.Error.Code, m.Error.Message
			}
			if res.StatusCode != tt.status || code != tt.code || !strings.Contains(says, tt.says) {
				t.Errorf("%d, %v; want %d, %d, %q", res.StatusCode, m, tt.status, tt.code, tt.says)
			}
		})
	}
	for _, tt := range []struct {
		method, session, version string
		want                     int
	}{
		{"GET", "guessed", "", 404},
		{"GET", "", "2026-07-28", 405},
		{"GET", w.session, "1999-01-01", 400},
		{"PUT", w.session, "", 405},
		{"HEAD", w.session, "", 405},
		{"DELETE", "guessed", "", 404},
		{"DELETE", w.session, "2026-07-28", 405},
		{"DELETE", w.session, "", 200},
		{"DELETE", w.session, "", 404},
		{"GET", w.session, "", 404},
	} {
		if res := w.do(t.Context(), tt.method, "", "Mcp-Session-Id", tt.session, "Mcp-Protocol-Version", tt.version); res.StatusCode != tt.want {
			t.Errorf("%s of %q, version %q: %d, want %d", tt.method, tt.session, tt.version, res.StatusCode, tt.want)
		}
	}
	if res, m := w.post(harmless); res.StatusCode != 404 {
		t.Errorf("after DELETE: %d, %v", res.StatusCode, m)
	}
}

// TestOversizedBody: a body over the limit is rejected with a reason.
func TestOversizedBody(t *testing.T) {
	t.Parallel()
	w := dial(t, serve(t, workspace(t)))
	big := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": %q}}`, strings.Repeat("x", 16<<20))
	if res, m := w.post(big); res.StatusCode != http.StatusRequestEntityTooLarge || m.Error == nil || !strings.Contains(m.Error.Message, "too large") {
		t.Errorf("%d, %v", res.StatusCode, m)
	}
	if res, m := w.post(harmless); res.StatusCode != 200 || m.Error != nil {
		t.Errorf("the next one: %d, %v", res.StatusCode, m)
	}
}

// awaitFile waits for the file that the tool slow writes when cancelled.
func awaitFile(t *testing.T, dir string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "cancelled")); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the tool was not told")
		}
	}
}

// TestClientGoesAway: a call ends when its client disconnects, and with its
// session.
func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(w *wire, hangUp func()){
		"hangs up": func(_ *wire, hangUp func()) { hangUp() },
		"DELETE":   func(w *wire, _ func()) { w.do(w.t.Context(), http.MethodDelete, "") },
		"cancelled": func(w *wire, _ func()) {
			w.post(`{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": "enough"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := workspace(t)
			w := dial(t, serve(t, dir))
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			events := newEvents(w.do(ctx, http.MethodPost, slowly))
			m, err := events.next()
			if err != nil || m.Method != "notifications/progress" || !strings.Contains(string(m.Params), `"progressToken":9007199254740993`) {
				t.Fatalf("%v, %v", m, err)
			}
			leave(w, hangUp)
			awaitFile(t, dir)
			if name == "hangs up" {
				return
			}
			if m, err := events.next(); err != nil || m.Error == nil || m.Error.Code != -32800 {
				t.Errorf("the answer: %v, %v", m, err)
			}
		})
	}
}

// TestDuplicateID: request IDs are unique among the running requests of a session,
// but need not be without one.
func TestDuplicateID(t *testing.T) {
	t.Parallel()
	w := dial(t, serve(t, workspace(t)))
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	first := newEvents(w.do(ctx, http.MethodPost, slowly))
	if m, err := first.next(); err != nil {
		t.Fatalf("%v, %v", m, err)
	}
	list := strings.Replace(harmless, `"after"`, "7", 1)
	if res, m := w.post(list); res.StatusCode != 200 || m.Error == nil || m.Error.Code != -32600 || !strings.Contains(m.Error.Message, "another ID") {
		t.Errorf("%d, %v", res.StatusCode, m)
	}
	if _, m := dial(t, w.address).post(list); m.Error != nil {
		t.Errorf("in another session: %v", m)
	}
	now := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {%s}}`, modern)
	if _, m := w.post(now, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"); m.Error != nil {
		t.Errorf("without a session: %v", m)
	}
}

// TestQuestionCancelled: the client is told when a question is cancelled.
func TestQuestionCancelled(t *testing.T) {
	t.Parallel()
	w := dial(t, serve(t, workspace(t)))
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	events := newEvents(w.do(ctx, http.MethodPost, `{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "write_file", "arguments": {"file_path": "x", "content": "x"}}}`))
	asked, err := events.next()
	if err != nil || asked.Method != "elicitation/create" {
		t.Fatalf("%v, %v", asked, err)
	}
	w.post(`{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 8}}`)
	if m, err := events.next(); err != nil || m.Method != "notifications/cancelled" || !strings.Contains(string(m.Params), `"requestId":`+string(asked.ID)) {
		t.Errorf("%v, %v", m, err)
	}
	late := fmt.Sprintf(`{"jsonrpc": "2.0", "id": %s, "result": {"action": "accept", "content": {"choice": "once"}}}`, asked.ID)
	if res, m := w.post(late); res.StatusCode != 400 {
		t.Errorf("a late answer: %d, %v", res.StatusCode, m)
	}
}

// process is a server over stdio.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	all    *json.Decoder // of out
	stderr *bytes.Buffer
	dir    string
}

func spawn(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0]), stderr: &bytes.Buffer{}, dir: workspace(t)}
	p.cmd.Env = append(os.Environ(), "SERVER_TEST_DIR="+p.dir)
	p.cmd.Stderr = p.stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	p.all = json.NewDecoder(p.out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) send(lines ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n"); err != nil {
		p.t.Fatalf("%v; stderr: %s", err, p.stderr)
	}
}

func (p *process) next() message {
	p.t.Helper()
	var m message
	if err := p.all.Decode(&m); err != nil {
		p.t.Fatalf("%v; stderr: %s", err, p.stderr)
	}
	return m
}

// ends waits for a clean exit.
func (p *process) ends() {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil || !strings.Contains(p.stderr.String(), "closed: <nil>, agent: <nil>") {
		p.t.Errorf("%v; stderr: %s", err, p.stderr)
	}
}

// TestHostileStdio: invalid lines are answered with a reason, and later ones are
// served. Both protocols share the connection.
func TestHostileStdio(t *testing.T) {
	t.Parallel()
	p := spawn(t)
	p.send(hello)
	if m := p.next(); string(m.ID) != `"hello"` || m.Error != nil {
		t.Fatal(m)
	}
	for _, tt := range []struct {
		line, id string
		code     int
	}{
		{"garbage", "null", -32700},
		{"[" + harmless + "]", "null", -32600},
		{`{"jsonrpc": "1.0", "id": 3, "method": "ping"}`, "3", -32600},
		{`{"jsonrpc": "2.0", "id": [3], "method": "ping"}`, "null", -32600},
		{`{"jsonrpc": "2.0", "id": 4, "method": "rm -rf"}`, "4", -32601},
		{`{"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}`, "5", -32602},
		{`{"jsonrpc": "2.0", "id": 6, "method": "tools/list", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}}}`, "6", -32022},
		{`{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {` + modern + `}}`, "7", -32601},
		{strings.Repeat("x", 16<<20+1), "null", -32700},
	} {
		p.send("", " \r", tt.line)
		if m := p.next(); string(m.ID) != tt.id || m.Error == nil || m.Error.Code != tt.code {
			t.Errorf("%.60s: %v, want the error %d", tt.line, m, tt.code)
		}
	}
	// No response to messages that need none.
	p.send(`{"jsonrpc": "2.0", "id": 99, "result": {}}`, `{"jsonrpc": "2.0", "method": "notifications/unheard"}`, `{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": null}}`)
	p.send(slowly)
	if m := p.next(); m.Method != "notifications/progress" {
		t.Fatal(m)
	}
	p.send(strings.Replace(harmless, `"after"`, "7", 1))
	if m := p.next(); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("an id in use: %v", m)
	}
	p.send(`{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}`)
	awaitFile(t, p.dir)
	p.send(strings.Replace(harmless, `"tools/list"`, `"tools/list", "params": {`+modern+`}`, 1))
	if m := p.next(); string(m.ID) != `"after"` || m.Error != nil || !strings.Contains(string(m.Result), `"resultType":"complete"`) {
		t.Errorf("the next one: %v", m) // no response to the cancelled request
	}
	_ = p.in.Close()
	p.ends()
}

// TestClientIsKilled: both pipes close at once, during a call, a question and a
// subscription.
func TestClientIsKilled(t *testing.T) {
	t.Parallel()
	p := spawn(t)
	p.send(hello, `{"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": true}, `+modern+`}}`)
	for range 2 {
		if m := p.next(); m.Error != nil {
			t.Fatal(m)
		}
	}
	p.send(slowly)
	if m := p.next(); m.Method != "notifications/progress" {
		t.Fatal(m)
	}
	_ = p.out.Close()
	_ = p.in.Close()
	p.ends()
	awaitFile(t, p.dir)
}

// TestClientDoesNotRead: SIGTERM ends a server whose responses are not read.
func TestClientDoesNotRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGTERM")
	}
	t.Parallel()
	p := spawn(t)
	p.send(hello)
	if m := p.next(); m.Error != nil {
		t.Fatal(m)
	}
	for i := range 100 { // each response has kilobytes, a pipe holds 64
		p.send(fmt.Sprintf(`{"jsonrpc": "2.0", "id": %d, "method": "tools/list"}`, i))
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	err := p.cmd.Wait()
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(p.stderr.String(), "closed: <nil>, agent: <nil>") {
		t.Errorf("%v; stderr: %s", err, p.stderr)
	}
}

// TestServerEnds: subscriptions and calls get a response when the server ends.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	a, s, err := open(t.Context(), workspace(t))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer s.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeHTTP(ctx, ln, secret) }()
	w := dial(t, "http://"+ln.Addr().String()+server.Path)
	call := newEvents(w.do(t.Context(), http.MethodPost, slowly))
	if m, err := call.next(); err != nil {
		t.Fatalf("%v, %v", m, err)
	}
	idle := newEvents(w.do(t.Context(), http.MethodGet, ""))
	listen := newEvents(w.do(t.Context(), http.MethodPost, `{"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": true}, `+modern+`}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"))
	if m, err := listen.next(); err != nil || m.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("%v, %v", m, err)
	}
	stop()
	if m, err := call.next(); err != nil || m.Error == nil || m.Error.Code != -32800 {
		t.Errorf("the call: %v, %v", m, err)
	}
	if m, err := listen.next(); err != nil || string(m.ID) != "9" || !strings.Contains(string(m.Result), `"io.modelcontextprotocol/subscriptionId":9`) {
		t.Errorf("the subscription: %v, %v", m, err)
	}
	if m, err := idle.next(); err == nil {
		t.Errorf("the stream: %v", m)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
