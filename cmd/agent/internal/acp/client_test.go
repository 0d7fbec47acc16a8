package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
)

// Flags with which the test binary is another program.
const (
	serveFlag = "-serve-mcp"
	tailFlag  = "-tail"
)

func TestMain(m *testing.M) {
	switch {
	case slices.Contains(os.Args[1:], serveFlag):
		if err := server.ServeStdio(greeter(os.Getenv("GREETING"))); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) == 3 && os.Args[1] == tailFlag:
		code, err := acp.Tail(context.Background(), os.Args[2], os.Stdout)
		if err != nil {
			code = 99
		}
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// greeter is an MCP server with one tool.
func greeter(greeting string) *server.MCPServer {
	s := server.NewMCPServer("greeter", "1", server.WithToolCapabilities(false))
	s.AddTool(mcp.NewTool("greet", mcp.WithString("name")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(greeting + ", " + r.GetString("name", "nobody")), nil
	})
	return s
}

// checker holds lines against the schema of the protocol.
type checker struct {
	defs      map[string]*jsonschema.Schema
	params    map[string]string // definition of the params of a method
	results   map[string]string
	mu        sync.Mutex
	validator map[string]*jsonschema.Resolved
}

var loadChecker = sync.OnceValue(func() *checker {
	data, err := os.ReadFile(filepath.Join("protocol", "schema.json"))
	if err != nil {
		panic(err)
	}
	var doc struct {
		Defs map[string]*jsonschema.Schema `json:"$defs"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		panic(err)
	}
	c := &checker{defs: doc.Defs, params: map[string]string{}, results: map[string]string{}, validator: map[string]*jsonschema.Resolved{}}
	for name, d := range doc.Defs {
		method, _ := d.Extra["x-method"].(string)
		switch {
		case method == "":
		case strings.HasSuffix(name, "Response"):
			c.results[method] = name
		default:
			c.params[method] = name
		}
	}
	return c
})

// check holds a value against a definition.
func (c *checker) check(name string, raw json.RawMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.validator[name]
	if v == nil {
		var err error
		if v, err = (&jsonschema.Schema{Ref: "#/$defs/" + name, Defs: c.defs}).Resolve(nil); err != nil {
			return err
		}
		c.validator[name] = v
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	return v.Validate(value)
}

// client is an editor. Every line of the agent is held against the schema.
type client struct {
	t       *testing.T
	in      *io.PipeWriter
	out     *io.PipeReader
	served  chan error
	checker *checker
	// answer answers a request of the agent; nil answers with an error.
	answer func(method string, params json.RawMessage) any

	mu      sync.Mutex
	next    int
	sent    map[string]string // methods, by ID
	waiting map[string]chan jsonrpc.Message
	lines   []jsonrpc.Message // of the agent
	more    chan struct{}     // closed by the next line
}

// world is where the sessions of a test are.
type world struct {
	home, dir string
	provider  model.Provider
	mode      permissions.Mode
	tools     []core.Tool
	change    func(*acp.Options)
	opened    func(*acp.Opened)
}

func newWorld(t *testing.T, p model.Provider) *world {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &world{home: t.TempDir(), dir: dir, provider: p}
}

// options returns a server's options.
func (w *world) options() acp.Options {
	o := acp.Options{
		Version: "test", Home: w.home, SetupArgs: []string{"setup"}, Tail: []string{os.Args[0], tailFlag},
		Open:  w.open,
		Check: func(context.Context) error { return nil }, SignOut: func(context.Context) error { return nil },
	}
	if w.change != nil {
		w.change(&o)
	}
	return o
}

// open opens a session with two settings, whose policy takes deny rules.
func (w *world) open(ctx context.Context, r host.Open, asker core.Asker, _ acp.Do) (*acp.Opened, error) {
	if r.ID != "" {
		if _, err := store.Stat(agent.SessionsDir(w.home), r.ID); err != nil {
			return nil, err
		}
	}
	a, err := agent.Open(ctx, agent.Options{
		Dir: r.Dir, AddDirs: r.AddDirs, Home: w.home, Tools: w.tools, MCP: agent.MCPOptions{Servers: r.MCP}, Permissions: permissions.Options{Mode: w.mode},
	})
	if err != nil {
		return nil, err
	}
	if _, err := a.Ready(ctx); err != nil {
		return nil, err
	}
	s, err := a.NewSession(ctx, agent.SessionOptions{
		Provider: w.provider, Asker: asker, Resume: r.ID, ToolEnv: r.ToolEnv, SaveRules: func(context.Context, []string) error { return nil },
	})
	if err != nil {
		return nil, err
	}
	policy := a.Policy().(*permissions.Policy)
	mode := policy.Mode()
	o := &acp.Opened{
		Dir: a.Env().Info().Dir, Preview: a.Preview, Window: func() int { return 1000 },
		Cost:   func(string, string, model.Usage) (float64, bool) { return 0.5, true },
		Models: []string{"m", "n"},
		Commands: []acp.Command{{Name: "compact", Summary: "compact"}, {
			Name: "twice", Summary: "says it twice", Hint: "WORD",
			Run: func(_ context.Context, args string) (string, string, error) { return "", args + " " + args, nil },
		}},
		Reject: func(_ context.Context, rules []string) error {
			stricter, err := policy.WithDenied(rules)
			if err == nil {
				policy = stricter
				s.SetPolicy(policy.WithMode(mode))
			}
			return err
		},
	}
	o.Opened = host.Opened{Session: s, Close: a.Close, Settings: []host.Setting{
		{ID: "model", Name: "Model", Category: "model", Value: "m", Values: []string{"m", "n"}, Set: func(string) error { return nil }},
		{ID: "effort", Name: "Effort", Category: "thought_level", Values: []string{"", "high"}, Set: func(string) error { return nil }},
		{ID: "mode", Name: "Mode", Category: "mode", Value: string(mode), Values: []string{"default", "accept-edits", "bypass"}, Set: func(v string) error {
			mode = permissions.Mode(v)
			s.SetPolicy(policy.WithMode(mode))
			return nil
		}},
	}}
	if w.opened != nil {
		w.opened(o)
	}
	return o, nil
}

// connect starts a server and its client.
func (w *world) connect(t *testing.T) *client {
	t.Helper()
	in, write := io.Pipe()
	read, out := io.Pipe()
	c := &client{t: t, in: write, out: read, served: make(chan error, 1), checker: loadChecker(), sent: map[string]string{}, waiting: map[string]chan jsonrpc.Message{}, more: make(chan struct{})}
	go func() {
		err := acp.Serve(context.Background(), in, out, w.options())
		_ = out.Close()
		_ = in.Close()
		c.served <- err
	}()
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		c.read(read)
	}()
	t.Cleanup(func() {
		_ = write.Close()
		<-reading
		if err := <-c.served; err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	return c
}

// read takes the agent's lines.
func (c *client) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		m, err := jsonrpc.Parse(line)
		if err != nil || m.Version != "2.0" {
			c.t.Errorf("%v: %s", err, line)
			continue
		}
		c.take(m)
	}
}

func (c *client) take(m jsonrpc.Message) {
	c.mu.Lock()
	name := c.checker.params[m.Method]
	raw := m.Params
	var reply chan jsonrpc.Message
	if m.Method == "" {
		name, raw = c.checker.results[c.sent[string(m.ID)]], m.Result
		reply = c.waiting[string(m.ID)]
	}
	c.lines = append(c.lines, m)
	close(c.more)
	c.more = make(chan struct{})
	c.mu.Unlock()
	if m.Error == nil && name == "" {
		c.t.Errorf("a message that the protocol does not know: %+v", m)
	} else if m.Error == nil {
		if err := c.checker.check(name, raw); err != nil {
			c.t.Errorf("%s %s: %v\n%s", m.Method, name, err, raw)
		}
	}
	switch {
	case reply != nil:
		reply <- m
	case m.Method != "" && m.HasID():
		go c.reply(m)
	}
}

// reply answers a request of the agent.
func (c *client) reply(m jsonrpc.Message) {
	var result any
	if c.answer != nil {
		result = c.answer(m.Method, m.Params)
	}
	r := jsonrpc.Message{Version: "2.0", ID: m.ID}
	if result == nil {
		r.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethod, Message: "no"}
	} else {
		r.Result = jsonrpc.Encode(result)
		if err := c.checker.check(c.checker.results[m.Method], r.Result); err != nil {
			c.t.Errorf("the test answers wrongly: %v: %s", err, r.Result)
		}
	}
	c.write(jsonrpc.Encode(r))
}

// write writes a line.
func (c *client) write(line []byte) { _, _ = c.in.Write(append(line, '\n')) }

// send sends a request and returns where its response comes.
func (c *client) send(method string, params any) (id string, reply chan jsonrpc.Message) {
	reply = make(chan jsonrpc.Message, 1)
	c.mu.Lock()
	c.next++
	id = fmt.Sprint(c.next)
	c.sent[id], c.waiting[id] = method, reply
	c.mu.Unlock()
	c.write(jsonrpc.Encode(map[string]any{"jsonrpc": "2.0", "id": c.next, "method": method, "params": params}))
	return id, reply
}

func (c *client) notify(method string, params any) {
	c.write(jsonrpc.Encode(map[string]any{"jsonrpc": "2.0", "method": method, "params": params}))
}

// wait waits for a response.
func (c *client) wait(reply chan jsonrpc.Message) jsonrpc.Message {
	c.t.Helper()
	select {
	case m := <-reply:
		return m
	case <-time.After(time.Minute):
		c.t.Fatal("no response")
		return jsonrpc.Message{}
	}
}

// object is a JSON object.
type object = map[string]any

// call sends a request and returns its result.
func (c *client) call(method string, params any) object {
	c.t.Helper()
	_, reply := c.send(method, params)
	m := c.wait(reply)
	if m.Error != nil {
		c.t.Fatalf("%s: %v %s", method, m.Error, m.Error.Data)
	}
	var result object
	if err := json.Unmarshal(m.Result, &result); err != nil {
		c.t.Fatal(err)
	}
	return result
}

// fails sends a request and checks the code of its error.
func (c *client) fails(code int, method string, params any) {
	c.t.Helper()
	_, reply := c.send(method, params)
	if m := c.wait(reply); m.Error == nil || m.Error.Code != code {
		c.t.Errorf("%s %v: error %+v, want code %d", method, params, m.Error, code)
	}
}

// initialize begins, with what the client can do.
func (c *client) initialize(capabilities object) object {
	c.t.Helper()
	return c.call("initialize", object{"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": object{"name": "test", "version": "1"}})
}

// session opens a session and returns its ID.
func (c *client) session(dir string) string {
	c.t.Helper()
	return c.call("session/new", object{"cwd": dir, "mcpServers": []any{}})["sessionId"].(string)
}

func promptOf(id, text string) object {
	return object{"sessionId": id, "prompt": []any{object{"type": "text", "text": text}}}
}

// prompt sends a prompt and returns the stop reason.
func (c *client) prompt(id, text string) string {
	c.t.Helper()
	return c.call("session/prompt", promptOf(id, text))["stopReason"].(string)
}

// updates returns the updates of a kind so far.
func (c *client) updates(kind string) (list []object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.lines {
		var p struct{ Update object }
		if m.Method == "session/update" && json.Unmarshal(m.Params, &p) == nil && p.Update["sessionUpdate"] == kind {
			list = append(list, p.Update)
		}
	}
	return list
}

// requests returns the requests and notifications of a method so far.
func (c *client) requests(method string) (list []object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.lines {
		var p object
		if m.Method == method && json.Unmarshal(m.Params, &p) == nil {
			list = append(list, p)
		}
	}
	return list
}

// until waits until a condition holds.
func (c *client) until(what string, holds func() bool) {
	c.t.Helper()
	timeout := time.After(time.Minute)
	for {
		c.mu.Lock()
		more := c.more
		c.mu.Unlock()
		if holds() {
			return
		}
		select {
		case <-more:
		case <-timeout:
			c.t.Fatalf("%s: it did not come", what)
		}
	}
}

// said returns the text of the message chunks of a kind.
func (c *client) said(kind string) string {
	var b strings.Builder
	for _, u := range c.updates(kind) {
		content, _ := u["content"].(object)
		b.WriteString(fmt.Sprint(content["text"]))
	}
	return b.String()
}

// forget forgets the lines so far.
func (c *client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = nil
}

// kinds returns the kinds of the updates, in order.
func (c *client) kinds() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.lines {
		var p struct{ Update object }
		if m.Method == "session/update" && json.Unmarshal(m.Params, &p) == nil {
			list = append(list, fmt.Sprint(p.Update["sessionUpdate"]))
		}
	}
	return slices.Compact(list)
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}
