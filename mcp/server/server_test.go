package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/scripted"
	"github.com/seed-009c0928/agent/mcp/server"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// script is the model of run_task.
const script = `
name: scripted
turns:
  - when: {user: "greet"}
    text: I will write the greeting.
    calls: [{name: write_file, args: {file_path: greeting.txt, content: hello}}]
  - when: {tool: write_file}
    text: The greeting is written.
`

// picture is a tool that returns an image.
func picture() core.Tool {
	return core.NewTool(core.ToolDefinition{Name: "picture", Description: "Draws.", ReadOnly: true},
		nil,
		func(context.Context, *core.Call, struct{}) (core.Result, error) {
			return core.Result{Content: []model.Part{model.Text{Text: "drawn"}, model.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\nx")}}, Structured: json.RawMessage(`{"big": 12345678901234567890}`)}, nil
		})
}

// slow is a tool that reports progress until it is cancelled.
func slow(dir string) core.Tool {
	return core.NewTool(core.ToolDefinition{Name: "slow", Description: "Takes its time.", ReadOnly: true},
		nil,
		func(ctx context.Context, c *core.Call, _ struct{}) (core.Result, error) {
			c.Progress(core.Progress{Done: 1, Total: 2, Message: "half"})
			<-ctx.Done()
			err := os.WriteFile(filepath.Join(dir, "cancelled"), nil, 0o600)
			return core.Result{}, err
		})
}

// open returns an agent with the real tools and policy, and its server.
func open(ctx context.Context, dir string) (*agent.Agent, *server.Server, error) {
	a, err := agent.Open(ctx, agent.Options{Dir: dir, Home: filepath.Join(dir, ".home"), Tools: []core.Tool{picture(), slow(dir)}})
	if err != nil {
		return nil, nil, err
	}
	s, err := a.MCPServer(agent.MCPServerOptions{
		Instructions: "Be kind.",
		Task: func(context.Context) (agent.SessionOptions, error) {
			parsed, err := scripted.Parse("script", []byte(script))
			if err != nil {
				return agent.SessionOptions{}, err
			}
			return agent.SessionOptions{Provider: parsed.Provider(scripted.Options{})}, nil
		},
	})
	return a, s, err
}

// user answers elicitations.
type user struct {
	mu     sync.Mutex
	asked  []string
	answer func(req mcp.ElicitationRequest) (mcp.ElicitationResponseAction, any)
}

// Elicit implements mcp-go's ElicitationHandler.
func (p *user) Elicit(_ context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, req.Params.Message)
	action, content := p.answer(req)
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: action, Content: content}}, nil
}

func choosing(choice string) *user {
	return &user{answer: func(mcp.ElicitationRequest) (mcp.ElicitationResponseAction, any) {
		return mcp.ElicitationResponseActionAccept, map[string]any{"choice": choice}
	}}
}

// way is a transport and a protocol version.
type way struct{ transport, version string }

func (w way) String() string { return w.transport + " " + w.version }

var ways = []way{{"stdio", "2025-11-25"}, {"stdio", "2026-07-28"}, {"http", "2025-06-18"}, {"http", "2025-11-25"}, {"http", "2026-07-28"}}

const secret = "a token that nobody guesses"

// connect starts a server in dir and returns a client of it.
func (w way) connect(t *testing.T, dir string, p *user, notify func(mcp.JSONRPCNotification)) *client.Client {
	t.Helper()
	var opts []client.ClientOption
	if p != nil {
		opts = append(opts, client.WithElicitationHandler(p))
	}
	opts = append(opts, client.WithProtocolVersion(w.version))
	var tr transport.Interface
	if w.transport == "stdio" {
		tr = transport.NewStdio(os.Args[0], append(os.Environ(), "SERVER_TEST_DIR="+dir))
	} else {
		var err error
		var more []transport.StreamableHTTPCOption
		if !mcp.IsModernProtocol(w.version) {
			//lint:ignore SA1019 clients before 2026-07-28 have it
			more = append(more, transport.WithContinuousListening())
		}
		more = append(more, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + secret}),
			transport.WithHTTPBasicClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}))
		if tr, err = transport.NewStreamableHTTP(serve(t, dir), more...); err != nil {
			t.Fatal(err)
		}
	}
	c := client.NewClient(tr, opts...)
	if notify != nil {
		c.OnNotification(notify)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var init mcp.InitializeRequest
	init.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "1"}
	res, err := c.Initialize(t.Context(), init)
	if err != nil {
		t.Fatal(err)
	}
	if res.ProtocolVersion != w.version || res.ServerInfo.Name != "agent" || res.Instructions != "Be kind." {
		t.Errorf("%+v", res)
	}
	return c
}

// serve serves over HTTP until the test ends, and returns the address.
func serve(t *testing.T, dir string) string {
	t.Helper()
	a, s, err := open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.ServeHTTP(ctx, ln, secret) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String() + server.Path
}

func workspace(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("remember the milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// request returns a tool call.
func request(name string, args any) mcp.CallToolRequest {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = name, args
	return req
}

// call calls a tool and returns the text of the result.
func call(t *testing.T, c *client.Client, name string, args any) (string, *mcp.CallToolResult) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := c.CallTool(ctx, request(name, args))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var text []string
	for _, p := range res.Content {
		if p, ok := p.(mcp.TextContent); ok {
			text = append(text, p.Text)
		}
	}
	return strings.Join(text, "\n"), res
}

func everyWay(t *testing.T, f func(t *testing.T, w way)) {
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			f(t, w)
		})
	}
}

func TestTools(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		c := w.connect(t, workspace(t), nil, nil)
		list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			if tool.Name == "read_file" && (tool.Annotations.ReadOnlyHint == nil || !*tool.Annotations.ReadOnlyHint) {
				t.Error("read_file is not marked as reading only")
			}
		}
		for _, want := range []string{"read_file", "shell", "picture", "run_task"} {
			if !slices.Contains(names, want) {
				t.Errorf("no %s among %v", want, names)
			}
		}
		if slices.Contains(names, "spawn_agent") {
			t.Errorf("spawn_agent is among %v", names)
		}
		if text, res := call(t, c, "read_file", map[string]any{"file_path": "note.txt"}); res.IsError || !strings.Contains(text, "remember the milk") {
			t.Errorf("read_file: %s", text)
		}
		if text, res := call(t, c, "read_file", map[string]any{"path": 3}); !res.IsError || !strings.Contains(text, "Invalid arguments") {
			t.Errorf("wrong arguments: %s", text)
		}
		if text, res := call(t, c, "read_file", map[string]any{"file_path": "missing.txt"}); !res.IsError || !strings.Contains(text, "missing.txt") {
			t.Errorf("a missing file: %s", text)
		}
		_, res := call(t, c, "picture", map[string]any{})
		if len(res.Content) != 2 {
			t.Fatalf("%+v", res.Content)
		}
		img, ok := res.Content[1].(mcp.ImageContent)
		if data, err := base64.StdEncoding.DecodeString(img.Data); !ok || err != nil || !bytes.HasPrefix(data, []byte("\x89PNG")) || img.MIMEType != "image/png" {
			t.Errorf("%+v, %v", res.Content[1], err)
		}
		if string(res.RawStructuredContent) != `{"big": 12345678901234567890}` && string(res.RawStructuredContent) != `{"big":12345678901234567890}` {
			t.Errorf("structured: %s", res.RawStructuredContent)
		}
		if _, err := c.CallTool(t.Context(), request("no_such_tool", map[string]any{})); err == nil {
			t.Error("an unknown tool was called")
		}
	})
}

// TestPermissions: the policy applies; permission requests go to the client, and
// are denied at once if it does not support them.
func TestPermissions(t *testing.T) {
	write := map[string]any{"file_path": "new.txt", "content": "x"}
	everyWay(t, func(t *testing.T, w way) {
		t.Run("nobody", func(t *testing.T) {
			dir := workspace(t)
			c := w.connect(t, dir, nil, nil)
			text, res := call(t, c, "write_file", write)
			if !res.IsError || !strings.Contains(text, "non-interactive") {
				t.Errorf("%s", text)
			}
			if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil {
				t.Error("the file was written")
			}
		})
		t.Run("yes for the session", func(t *testing.T) {
			dir := workspace(t)
			p := choosing("session")
			c := w.connect(t, dir, p, nil)
			for range 2 {
				if text, res := call(t, c, "write_file", write); res.IsError {
					t.Errorf("%s", text)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "new.txt")); err != nil {
				t.Error(err)
			}
			if len(p.asked) != 1 || !strings.Contains(p.asked[0], "Write ") || !strings.Contains(p.asked[0], "new.txt") {
				t.Errorf("asked: %q", p.asked)
			}
		})
		for name, p := range map[string]*user{
			"no":             choosing("deny"),
			"not offered":    choosing("always"),
			"no such answer": choosing("please"),
			"declined": {answer: func(mcp.ElicitationRequest) (mcp.ElicitationResponseAction, any) {
				return mcp.ElicitationResponseActionDecline, nil
			}},
			"cancelled": {answer: func(mcp.ElicitationRequest) (mcp.ElicitationResponseAction, any) {
				return mcp.ElicitationResponseActionCancel, map[string]any{"choice": "once"}
			}},
		} {
			t.Run(name, func(t *testing.T) {
				dir := workspace(t)
				text, res := call(t, w.connect(t, dir, p, nil), "write_file", write)
				if !res.IsError || !strings.Contains(text, "Permission denied") {
					t.Errorf("%s", text)
				}
				if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil || len(p.asked) != 1 {
					t.Errorf("written: %v, asked %q", err == nil, p.asked)
				}
			})
		}
	})
}

// notes collects progress notifications.
type notes struct {
	mu    sync.Mutex
	texts []string
	came  chan struct{} // buffered, 1
}

func newNotes() *notes { return &notes{came: make(chan struct{}, 1)} }

func (n *notes) take(note mcp.JSONRPCNotification) {
	if note.Method != string(mcp.MethodNotificationProgress) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.texts = append(n.texts, fmt.Sprint(note.Params.AdditionalFields["message"]))
	select {
	case n.came <- struct{}{}:
	default:
	}
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.texts)
}

func TestTask(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		dir := workspace(t)
		heard, p := newNotes(), choosing("once")
		c := w.connect(t, dir, p, heard.take)
		req := request("run_task", map[string]any{"prompt": "greet the world"})
		req.Params.Meta = &mcp.Meta{ProgressToken: "p"}
		res, err := c.CallTool(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		var report struct {
			Session, Outcome, Text string
			Rounds                 int
		}
		if err := json.Unmarshal(res.RawStructuredContent, &report); err != nil || res.IsError || report.Session == "" || report.Outcome != "done" || report.Text != "The greeting is written." || report.Rounds != 1 {
			t.Errorf("%v, %+v", err, report)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "greeting.txt")); err != nil || string(data) != "hello" {
			t.Errorf("%q, %v", data, err)
		}
		if len(p.asked) != 1 {
			t.Errorf("asked: %q", p.asked)
		}
		select {
		case <-heard.came:
			for _, text := range heard.all() {
				if !strings.Contains("I will write the greeting. write_file greeting.txt The greeting is written.", strings.Fields(text)[0]) {
					t.Errorf("progress: %q", text)
				}
			}
		case <-time.After(time.Minute):
			t.Error("no progress")
		}
		if _, res := call(t, c, "run_task", map[string]any{"prompt": " "}); !res.IsError {
			t.Error("an empty prompt was taken")
		}
		if text, res := call(t, c, "run_task", map[string]any{"prompt": "x", "session": "no-such"}); !res.IsError || !strings.Contains(text, "no-such") {
			t.Errorf("a missing session: %s", text)
		}
	})
}

// TestRecords: sessions of single calls leave no session logs, even when aborted;
// those of tasks can be resumed.
func TestRecords(t *testing.T) {
	dir := workspace(t)
	records := func(below string) []string {
		found, err := filepath.Glob(filepath.Join(dir, ".home", below, "*-*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	t.Run("calls", func(t *testing.T) {
		heard := newNotes()
		c := way{"http", "2025-11-25"}.connect(t, dir, nil, heard.take)
		if text, res := call(t, c, "read_file", map[string]any{"file_path": "note.txt"}); res.IsError {
			t.Error(text)
		}
		if len(records("sessions")) == 0 {
			t.Error("there is no record of the session that runs: this test shows nothing")
		}
		ctx, cancel := context.WithCancel(t.Context())
		req := request("slow", map[string]any{})
		req.Params.Meta = &mcp.Meta{ProgressToken: "p"}
		go func() {
			<-heard.came
			cancel()
		}()
		_, _ = c.CallTool(ctx, req)
		_, _ = call(t, c, "picture", map[string]any{})
	})
	if left := slices.Concat(records("sessions"), records("context")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	t.Run("task", func(t *testing.T) {
		c := way{"http", "2025-11-25"}.connect(t, dir, choosing("once"), nil)
		if text, res := call(t, c, "run_task", map[string]any{"prompt": "greet the world"}); res.IsError {
			t.Error(text)
		}
	})
	if !slices.ContainsFunc(records("sessions"), func(path string) bool { return filepath.Ext(path) == ".jsonl" }) {
		t.Error("the session of the task was not kept")
	}
}

// TestCancellation: a cancelled call ends its tool, and the next call works.
func TestCancellation(t *testing.T) {
	everyWay(t, func(t *testing.T, w way) {
		dir := workspace(t)
		heard := newNotes()
		c := w.connect(t, dir, nil, heard.take)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			select {
			case <-heard.came: // the call is in progress
			case <-time.After(time.Minute):
				t.Error("no progress")
			}
			cancel()
		}()
		req := request("slow", map[string]any{})
		req.Params.Meta = &mcp.Meta{ProgressToken: "p"}
		if res, err := c.CallTool(ctx, req); err == nil && !res.IsError {
			t.Error("the call succeeded")
		}
		if text, res := call(t, c, "read_file", map[string]any{"file_path": "note.txt"}); res.IsError {
			t.Errorf("the next call: %s", text)
		}
		if _, err := os.Stat(filepath.Join(dir, "cancelled")); err != nil {
			t.Errorf("the tool went on: %v", err)
		}
	})
}

// TestGuard: requests of web pages and without the token are rejected. Without the
// guard each would reach the server.
func TestGuard(t *testing.T) {
	address := serve(t, workspace(t))
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for name, tt := range map[string]struct {
		host, origin, auth, path string
		want                     int
	}{
		"a client":           {auth: "Bearer " + secret, want: 200},
		"by name":            {host: "localhost", auth: "bearer " + secret, want: 200},
		"an app of here":     {origin: "http://localhost:3000", auth: "Bearer " + secret, want: 200},
		"no token":           {want: 401},
		"another token":      {auth: "Bearer a token that nobody guesseS", want: 401},
		"password":           {auth: "Basic " + secret, want: 401},
		"web page":           {origin: "https://evil.example", auth: "Bearer " + secret, want: 403},
		"file":               {origin: "null", auth: "Bearer " + secret, want: 403},
		"DNS rebinding":      {host: "evil.example", auth: "Bearer " + secret, want: 403},
		"name with a number": {host: "127.0.0.1.evil.example", auth: "Bearer " + secret, want: 403},
		"user in the host":   {host: "localhost@evil.example", auth: "Bearer " + secret, want: 403},
		"elsewhere":          {path: "/debug", auth: "Bearer " + secret, want: 404},
	} {
		t.Run(name, func(t *testing.T) {
			to := address
			if tt.path != "" {
				to = strings.TrimSuffix(address, server.Path) + tt.path
			}
			body := `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}`
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			if tt.host != "" {
				req.Host = tt.host
			}
			for header, value := range map[string]string{"Origin": tt.origin, "Authorization": tt.auth} {
				if value != "" {
					req.Header.Set(header, value)
				}
			}
			res, err := web.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != tt.want && !(tt.want == 403 && res.StatusCode == 400) { // net/http rejects some itself
				t.Errorf("status %d, want %d", res.StatusCode, tt.want)
			}
		})
	}
}

func TestServeHTTPRefuses(t *testing.T) {
	a, s, err := open(t.Context(), workspace(t))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer s.Close()
	for address, token := range map[string]string{"127.0.0.1:0": "short", "0.0.0.0:0": secret} {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ServeHTTP(t.Context(), ln, token); err == nil {
			t.Errorf("served on %s with the token %q", address, token)
		}
	}
}

// TestStdioEnds: the end of stdin, and SIGTERM, end the server cleanly, even during
// a call.
func TestStdioEnds(t *testing.T) {
	const hello = `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}` + "\n"
	const begin = `{"jsonrpc": "2.0", "method": "notifications/initialized"}` + "\n" +
		`{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "slow", "arguments": {}, "_meta": {"progressToken": 1}}}` + "\n"
	for _, how := range []string{"end of stdin", "SIGTERM"} {
		t.Run(how, func(t *testing.T) {
			if how == "SIGTERM" && runtime.GOOS == "windows" {
				t.Skip("Windows has no SIGTERM")
			}
			dir := workspace(t)
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "SERVER_TEST_DIR="+dir)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := json.NewDecoder(out)
			until := func(text string, wanted func(method string) bool) {
				if _, err := in.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
				for {
					var m struct{ Method string }
					if err := lines.Decode(&m); err != nil {
						t.Fatalf("%v; stderr: %s", err, &said)
					}
					if wanted(m.Method) {
						return
					}
				}
			}
			until(hello, func(method string) bool { return method == "" })
			until(begin, func(method string) bool { return method == string(mcp.MethodNotificationProgress) })
			if how == "SIGTERM" {
				err = cmd.Process.Signal(syscall.SIGTERM)
			} else {
				err = in.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			err = cmd.Wait()
			if how == "end of stdin" && err != nil || !strings.Contains(said.String(), "closed: <nil>, agent: <nil>") {
				t.Errorf("%v; stderr: %s", err, &said)
			}
			if _, err := os.Stat(filepath.Join(dir, "cancelled")); err != nil {
				t.Errorf("the tool was not told: %v", err)
			}
		})
	}
}
