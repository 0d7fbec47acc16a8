package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/mcp"
)

// scriptedServer returns a server that is this test binary; see scripted.
func scriptedServer(t testing.TB, mode string) mcp.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Server{Command: self, Env: map[string]string{modeEnv: mode, "GORACE": "atexit_sleep_ms=0"}}
}

func supervisor(t testing.TB) *proc.Supervisor {
	t.Helper()
	s := proc.NewSupervisor(proc.Options{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// connect connects to a server until the test ends.
func connect(t testing.TB, s mcp.Server, o mcp.ConnectOptions) *mcp.Conn {
	t.Helper()
	if o.Supervisor == nil {
		o.Supervisor = supervisor(t)
	}
	c, err := mcp.Connect(t.Context(), "test", s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// old skips probing for the modern protocol.
var old = mcp.ConnectOptions{Known: mcp.Known{Protocol: "2025-11-25"}}

func oldWith(o mcp.ConnectOptions) mcp.ConnectOptions {
	o.Known = old.Known
	return o
}

// call calls a tool and returns the text of its result.
func call(t testing.TB, c *mcp.Conn, tool, args string, caller mcp.Caller) (mcp.CallResult, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return c.Call(ctx, mcp.ToolInfo{Name: tool}, json.RawMessage(args), caller)
}

func TestCall(t *testing.T) {
	c := connect(t, scriptedServer(t, ""), mcp.ConnectOptions{})
	if got := c.Info(); got.Name != "scripted" || got.Protocol != "2025-11-25" || got.Instructions != "Be kind." || !got.Subscribe || !got.Tasks {
		t.Errorf("Info = %+v", got)
	}
	tools, err := c.Tools(t.Context())
	if err != nil || len(tools) != 3 {
		t.Fatalf("Tools = %+v, %v", tools, err)
	}
	if string(tools[1].Schema) != oddSchema {
		t.Errorf("the schema is not what the server sent:\n%s\n%s", tools[1].Schema, oddSchema)
	}
	got, err := call(t, c, "echo", `{"text":"hello <&>"}`, mcp.Caller{})
	if err != nil || got.Text() != "hello <&>" {
		t.Errorf("echo = %+v, %v", got, err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

func TestResults(t *testing.T) {
	c := connect(t, scriptedServer(t, ""), old)
	for tool, want := range map[string]string{
		"unknown":    `ok|[content of unknown type] {"type":"hologram","x":1}|[content of unknown type] 7|[content of unknown type] null`,
		"nocontent":  `{"n":9007199254740993}`,
		"structured": `{"n":9007199254740993,"z":1,"a":2}`,
		"failed":     "no such user",
		"image":      "image image/png 8|[image image/svg+xml: unsupported type]|[image image/png: invalid data]|[audio audio/wav, 3 bytes: not supported]",
		"resources":  "[resource test://a]\ninside|[resource test://b, application/zip, about 3 bytes of binary data]|[resource test://c, c]",
		"control":    "a]0;ownedbc",
		"twice":      "one",
		"nothing":    "",
	} {
		got, err := call(t, c, tool, `{}`, mcp.Caller{})
		var parts []string
		for _, p := range got.Content {
			switch p := p.(type) {
			case model.Text:
				parts = append(parts, p.Text)
			case model.Image:
				parts = append(parts, "image "+p.MediaType+" "+string(rune('0'+len(p.Data))))
			}
		}
		if text := strings.Join(parts, "|"); err != nil || text != want || got.IsError != (tool == "failed") {
			t.Errorf("%s = %q (error %v), %v; want %q", tool, text, got.IsError, err, want)
		}
	}
	if _, err := call(t, c, "notresult", `{}`, mcp.Caller{}); err == nil || !strings.Contains(err.Error(), "invalid result") {
		t.Errorf("notresult: %v", err)
	}
}

func TestTask(t *testing.T) {
	c := connect(t, scriptedServer(t, ""), old)
	tool := mcp.ToolInfo{Name: "create"}
	tool.Execution.Task = "required"
	got, err := c.Call(t.Context(), tool, json.RawMessage(`{}`), mcp.Caller{})
	if err != nil || got.Text() != "from a task" {
		t.Errorf("Call = %+v, %v", got, err)
	}
}

func TestProgressKeepsACallAlive(t *testing.T) {
	t.Parallel()
	s := scriptedServer(t, "")
	s.CallTimeout = 400 // less than the whole call takes, more than a step
	c := connect(t, s, old)
	var seen []core.Progress
	got, err := call(t, c, "slow", `{"n":16}`, mcp.Caller{Progress: func(p core.Progress) { seen = append(seen, p) }})
	if err != nil || got.Text() != "done" {
		t.Fatalf("slow = %+v, %v", got, err)
	}
	if len(seen) == 0 || seen[len(seen)-1].Total != 16 || seen[0].Message != "step" {
		t.Errorf("progress %+v", seen)
	}
	s.CallTimeout = 2000
	c = connect(t, s, old)
	if _, err := call(t, c, "hang", `{}`, mcp.Caller{}); err == nil || !strings.Contains(err.Error(), "longer than 2s (callTimeoutMs)") {
		t.Errorf("a call that hangs: %v", err)
	}
	if got, err := call(t, c, "echo", `{"text":"still there"}`, mcp.Caller{}); err != nil || got.Text() != "still there" {
		t.Errorf("after a call that hung: %+v, %v", got, err)
	}
}

func TestResourcesAndPrompts(t *testing.T) {
	told := make(chan mcp.Notice, 10)
	c := connect(t, scriptedServer(t, ""), oldWith(mcp.ConnectOptions{Notify: func(_ context.Context, n mcp.Notice) { told <- n }}))
	ctx := t.Context()
	if list, err := c.Resources(ctx); err != nil || len(list) != 2 || list[0].URI != "test://a" {
		t.Errorf("Resources = %+v, %v", list, err)
	}
	if list, err := c.ResourceTemplates(ctx); err != nil || len(list) != 1 || list[0].Template != "test://{id}" {
		t.Errorf("ResourceTemplates = %+v, %v", list, err)
	}
	if r, err := c.ReadResource(ctx, "test://a", mcp.Caller{}); err != nil || r.Text() != "[resource test://a]\nwhat a holds" {
		t.Errorf("ReadResource = %+v, %v", r, err)
	}
	if list, err := c.Prompts(ctx); err != nil || len(list) != 1 || !list[0].Arguments[0].Required {
		t.Errorf("Prompts = %+v, %v", list, err)
	}
	if r, err := c.GetPrompt(ctx, "greet", map[string]string{"who": "Ada"}, mcp.Caller{}); err != nil || r.Text() != "Greet them." {
		t.Errorf("GetPrompt = %+v, %v", r, err)
	}
	if values, err := c.CompletePrompt(ctx, "greet", "who", "A", nil); err != nil || !slices.Equal(values, []string{"Ada", "Alan"}) {
		t.Errorf("CompletePrompt = %v, %v", values, err)
	}
	if err := c.Subscribe(ctx, "test://a"); err != nil {
		t.Errorf("Subscribe: %v", err)
	}
	if err := c.SetLogLevel(ctx, "warning"); err != nil {
		t.Errorf("SetLogLevel: %v", err)
	}
	if _, err := call(t, c, "updated", `{}`, mcp.Caller{}); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-told:
		if n != (mcp.Notice{Kind: mcp.ResourceUpdated, Text: "test://a"}) {
			t.Errorf("notice %+v", n)
		}
	case <-time.After(time.Minute):
		t.Error("no notice of the update")
	}
}

// answering is a caller that gives one answer to all questions.
func answering(a core.Answer, asked *[]core.Question) mcp.Caller {
	return mcp.Caller{Ask: func(_ context.Context, q core.Question) (core.Answer, error) {
		*asked = append(*asked, q)
		return a, nil
	}}
}

func ask(request string) string { return string(jsonrpc.Encode(map[string]any{"text": request})) }

func TestElicitation(t *testing.T) {
	c := connect(t, scriptedServer(t, ""), old)
	form := ask(`"method":"elicitation/create","params":{"message":"Who \u202eare you?\nPlease say.","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":7}},"required":["name"]}}`)
	var asked []core.Question
	yes := core.Answer{Choice: core.ChoiceYes, Values: json.RawMessage(`{"name":"Ada","evil":1}`)}
	got, err := call(t, c, "ask", form, answering(yes, &asked))
	if err != nil || got.Text() != `{"action":"accept","content":{"age":7,"name":"Ada"}}` {
		t.Errorf("accepted: %q, %v", got.Text(), err)
	}
	if len(asked) != 1 || asked[0].Title != "The MCP server test asks: Who are you?" || asked[0].Detail != "Please say." || asked[0].Kind != core.QuestionForm {
		t.Errorf("asked %+v", asked)
	}
	for name, caller := range map[string]mcp.Caller{"nobody": {}, "no": answering(core.Answer{Choice: core.ChoiceNo}, &asked), "nothing": answering(core.Answer{}, &asked)} {
		if got, err := call(t, c, "ask", form, caller); err != nil || got.Text() != `{"action":"decline"}` {
			t.Errorf("%s: %q, %v", name, got.Text(), err)
		}
	}
	wrong := core.Answer{Choice: core.ChoiceYes, Values: json.RawMessage(`{"age":1}`)}
	if got, err := call(t, c, "ask", form, answering(wrong, &asked)); err != nil || !strings.Contains(got.Text(), "error: the answer does not match the form") {
		t.Errorf("a wrong answer: %q, %v", got.Text(), err)
	}
	for url, want := range map[string]string{
		"https://example.com/x": "accept", "http://localhost:1/x": "accept", "http://example.com/x": "decline",
		"javascript:alert(1)": "decline", "file:///etc/passwd": "decline", "https://u:p@example.com": "decline",
	} {
		request := ask(`"method":"elicitation/create","params":{"mode":"url","elicitationId":"e","message":"Sign in","url":"` + url + `"}`)
		if got, err := call(t, c, "ask", request, answering(core.Answer{Choice: core.ChoiceYes}, &asked)); err != nil || got.Text() != `{"action":"`+want+`"}` {
			t.Errorf("%s: %q, %v; want %s", url, got.Text(), err, want)
		}
	}
	if got, err := call(t, connect(t, scriptedServer(t, ""), old), "open", `{}`, answering(core.Answer{Choice: core.ChoiceYes}, &asked)); err != nil || got.Text() != "opened" {
		t.Errorf("a call that wants a page opened first: %q, %v", got.Text(), err)
	}
}

func TestRoots(t *testing.T) {
	c := connect(t, scriptedServer(t, ""), oldWith(mcp.ConnectOptions{Roots: []string{"/work dir"}}))
	got, err := call(t, c, "ask", ask(`"method":"roots/list"`), mcp.Caller{})
	if err != nil || got.Text() != `{"roots":[{"uri":"file:///work%20dir","name":"work dir"}]}` {
		t.Errorf("roots/list: %q, %v", got.Text(), err)
	}
}
