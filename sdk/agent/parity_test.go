package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/anthropic"
	"github.com/seed-009c0928/agent/core/model/gemini"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/openai"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/core/profile"
	"github.com/seed-009c0928/agent/core/tools"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// column is a provider of the parity matrix with its profile.
type column struct {
	profile string
	api     modeltest.API
	open    func(wire.Config) (model.Provider, error)
	model   string
	effort  map[model.Effort]string // what a request says for it
}

func columns() []column {
	return []column{
		{
			profile.NameOpenAI, modeltest.Responses, func(c wire.Config) (model.Provider, error) { return openai.New(openai.Config{Config: c}) }, "gpt-5.2-codex",
			map[model.Effort]string{model.EffortLow: `"effort":"low"`, model.EffortHigh: `"effort":"high"`},
		},
		{
			profile.NameAnthropic, modeltest.Messages, func(c wire.Config) (model.Provider, error) { return anthropic.New(anthropic.Config{Config: c}) }, "claude-sonnet-4-5",
			map[model.Effort]string{model.EffortLow: `"budget_tokens":`, model.EffortHigh: `"budget_tokens":`},
		},
		{
			profile.NameGemini, modeltest.Gemini, func(c wire.Config) (model.Provider, error) { return gemini.New(gemini.Config{Config: c}) }, "gemini-2.5-pro",
			map[model.Effort]string{model.EffortLow: `"thinkingConfig":`, model.EffortHigh: `"thinkingConfig":`},
		},
	}
}

// cell is one case for one provider.
type cell struct {
	*testing.T
	column
	dir    string
	files  map[string]string
	opts   agent.SessionOptions
	hooked func(s *agent.Session) // after a glob

	mu       sync.Mutex
	requests []string // bodies
	calls    int
}

// tool is a call of a tool.
func (c *cell) tool(name string, args map[string]any) modeltest.Call {
	c.calls++
	text, err := json.Marshal(args)
	if err != nil {
		c.Fatal(err)
	}
	return modeltest.Call{ID: fmt.Sprintf("call_%d", c.calls), Name: name, Args: []string{string(text)}}
}

// create, edit and read are in the edit format of the provider's models.
func (c *cell) create(path, text string) modeltest.Call {
	if c.profile == profile.NameOpenAI {
		return c.tool("apply_patch", map[string]any{"patch": "*** Begin Patch\n*** Add File: " + path + "\n+" + strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\n+"), "+") + "*** End Patch\n"})
	}
	return c.tool("write_file", map[string]any{"file_path": path, "content": text})
}

func (c *cell) edit(path, from, to string) modeltest.Call {
	if c.profile == profile.NameOpenAI {
		return c.tool("apply_patch", map[string]any{"patch": "*** Begin Patch\n*** Update File: " + path + "\n@@\n-" + from + "\n+" + to + "\n*** End Patch\n"})
	}
	return c.tool("edit_file", map[string]any{"file_path": path, "old_string": from, "new_string": to})
}

func (c *cell) read(path string) modeltest.Call {
	return c.tool("read_file", map[string]any{"file_path": path})
}

func calling(calls ...modeltest.Call) modeltest.Turn { return modeltest.Turn{Calls: calls} }

func saying(text string) modeltest.Turn { return modeltest.Turn{Text: []string{text}} }

// play runs one input through the turns and returns the outcome.
func (c *cell) play(turns ...modeltest.Turn) core.Outcome {
	c.Helper()
	s := c.start(turns...)
	out, err := s.Submit(c.Context(), core.TextInput("Do the task."))
	if err != nil || out.Stop != core.StopDone {
		c.Fatalf("%s, %v", out.Stop, err)
	}
	return out
}

// start opens a session with a model that plays these turns, not counting
// requests of subagents.
func (c *cell) start(turns ...modeltest.Turn) *agent.Session {
	c.Helper()
	server := modeltest.NewFunc(c.api, func(r *modeltest.Request) modeltest.Turn {
		c.mu.Lock()
		defer c.mu.Unlock()
		body := string(r.Body)
		if strings.Contains(body, "Another agent gave you this task") {
			return saying("the report of the subagent")
		}
		c.requests = append(c.requests, body)
		if len(turns) == 0 {
			return saying("nothing is left to do")
		}
		turn := turns[0]
		turns = turns[1:]
		return turn
	})
	transport := wire.NewTransport(0)
	c.Cleanup(transport.CloseIdleConnections)
	provider, err := c.open(wire.Config{BaseURL: server.Serve(c.T), APIKey: "key-1234567", Model: c.model, Transport: transport})
	if err != nil {
		c.Fatal(err)
	}
	a, dir := open(c.T, nil, c.files)
	c.dir = dir
	c.opts.Provider = provider
	if c.opts.Profile, err = profile.New(c.profile, c.profile, c.model, profile.Options{}); err != nil {
		c.Fatal(err)
	}
	var s *agent.Session
	c.opts.Hooks.AfterTool = func(_ context.Context, call model.ToolCall, _ *core.Result) {
		if call.Name == "glob" && c.hooked != nil {
			c.hooked(s)
		}
	}
	if s, err = a.NewSession(c.Context(), c.opts); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = s.Close() })
	return s
}

// request is the n-th request's body, from 0.
func (c *cell) request(n int) string {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if n >= len(c.requests) {
		c.Fatalf("there are %d requests, want more than %d", len(c.requests), n)
	}
	return c.requests[n]
}

func (c *cell) gets(n int, texts ...string) {
	c.Helper()
	for _, text := range texts {
		if body := c.request(n); !strings.Contains(body, text) {
			c.Errorf("request %d does not say %q:\n%.3000s", n, text, body[max(0, len(body)-3000):])
		}
	}
}

func (c *cell) holds(path, want string) {
	c.Helper()
	got, err := os.ReadFile(filepath.Join(c.dir, path))
	if err != nil || string(got) != want {
		c.Errorf("%s is %q, %v; want %q", path, got, err, want)
	}
}

// TestParityMatrix runs every case with every provider, over the wire.
func TestParityMatrix(t *testing.T) {
	cases := []struct {
		name string
		run  func(c *cell)
	}{
		{"SimpleFileCreation", func(c *cell) {
			c.play(calling(c.create("hello.py", "print('Hello')\n")), saying("done"))
			c.holds("hello.py", "print('Hello')\n")
		}},
		{"ReadThenEdit", func(c *cell) {
			c.files = map[string]string{"a.txt": "one\ntwo\n"}
			c.play(calling(c.read("a.txt")), calling(c.edit("a.txt", "two", "2")), saying("done"))
			c.gets(1, "2 | two")
			c.holds("a.txt", "one\n2\n")
		}},
		{"MultiFileEdit", func(c *cell) {
			c.files = map[string]string{"a.txt": "one\n", "b.txt": "two\n"}
			c.play(calling(c.read("a.txt"), c.read("b.txt")), calling(c.edit("a.txt", "one", "1"), c.edit("b.txt", "two", "2")), saying("done"))
			c.holds("a.txt", "1\n")
			c.holds("b.txt", "2\n")
		}},
		{"ShellCommand", func(c *cell) {
			c.play(calling(c.tool("shell", map[string]any{"command": "echo from the shell"})), saying("done"))
			c.gets(1, "from the shell", "[exit code 0")
		}},
		{"ShellTimeout", func(c *cell) {
			c.play(calling(c.tool("shell", map[string]any{"command": "echo before; sleep 30", "timeout_ms": 1500})), saying("done"))
			c.gets(1, "before", "Command timed out after 1500ms")
		}},
		{"GrepAndGlob", func(c *cell) {
			c.files = map[string]string{"src/a.go": "package needle\n", "b.txt": "x\n"}
			c.play(calling(c.tool("grep", map[string]any{"pattern": "needle"}), c.tool("glob", map[string]any{"pattern": "**/*.txt"})), saying("done"))
			c.gets(1, "src/a.go:1", "b.txt")
		}},
		{"MultiStep", func(c *cell) {
			c.files = map[string]string{"a.txt": "fault here\n"}
			c.play(calling(c.tool("grep", map[string]any{"pattern": "fault"})), calling(c.read("a.txt")), calling(c.edit("a.txt", "fault here", "repaired")),
				calling(c.tool("shell", map[string]any{"command": "cat a.txt"})), saying("done"))
			c.gets(4, "repaired")
			c.holds("a.txt", "repaired\n")
		}},
		{"Truncation", func(c *cell) {
			c.files = map[string]string{"big.txt": strings.Repeat("a long line of a large file\n", 20_000)}
			c.play(calling(c.read("big.txt")), saying("done"))
			c.gets(1, "[WARNING: Tool output was truncated.")
			if n := len(c.request(1)); n > 120_000 {
				c.Errorf("the request has %d bytes", n)
			}
		}},
		{"ParallelCalls", func(c *cell) {
			c.files = map[string]string{"a.txt": "alpha\n", "b.txt": "beta\n", "c.txt": "gamma\n"}
			c.play(calling(c.read("a.txt"), c.read("b.txt"), c.read("c.txt")), saying("done"))
			body := c.request(1)
			if a, b, g := strings.Index(body, "1 | alpha"), strings.Index(body, "1 | beta"), strings.Index(body, "1 | gamma"); a < 0 || b < a || g < b {
				c.Errorf("results at %d, %d, %d", a, b, g)
			}
		}},
		{"Steering", func(c *cell) {
			c.files = map[string]string{"b.txt": "x\n"}
			c.hooked = func(s *agent.Session) {
				s.Steer(core.TextInput("Use tabs instead."))
				s.Notify("The build has ended.")
			}
			c.play(calling(c.tool("glob", map[string]any{"pattern": "*"})), saying("done"))
			c.gets(1, "Use tabs instead.")
			c.gets(1, "The build has ended.")
		}},
		{"ReasoningEffort", func(c *cell) {
			c.opts.Request.Effort = model.EffortLow
			s := c.start(saying("one"), saying("two"))
			for _, effort := range []model.Effort{model.EffortLow, model.EffortHigh} {
				s.SetRequest(core.RequestOptions{Effort: effort})
				if _, err := s.Submit(c.Context(), core.TextInput("go")); err != nil {
					c.Fatal(err)
				}
			}
			c.gets(0, c.effort[model.EffortLow])
			c.gets(1, c.effort[model.EffortHigh])
			said := func(n int) string { // the effort and a little more
				_, after, _ := strings.Cut(c.request(n), strings.TrimSuffix(c.effort[model.EffortLow], `"low"`))
				return after[:min(len(after), 60)]
			}
			if said(0) == said(1) {
				c.Errorf("the change is not in the request: %s", said(1))
			}
		}},
		{"Subagent", func(c *cell) {
			c.play(calling(c.tool("spawn_agent", map[string]any{"task": "look"})), calling(c.tool("wait", map[string]any{"agent_id": "agent-1"})), saying("done"))
			c.gets(1, "agent-1")
			c.gets(2, "the report of the subagent")
		}},
		{"LoopDetection", func(c *cell) {
			var turns []modeltest.Turn
			for range 10 {
				turns = append(turns, calling(c.tool("shell", map[string]any{"command": "true"})))
			}
			c.play(append(turns, saying("done"))...)
			c.gets(10, "Loop detected")
		}},
		{"ErrorRecovery", func(c *cell) {
			c.files = map[string]string{"right.txt": "found\n"}
			c.play(calling(c.read("wrong.txt")), calling(c.read("right.txt")), saying("done"))
			c.gets(1, "File not found")
			c.gets(2, "1 | found")
		}},
		{"EditingFormat", func(c *cell) {
			c.play(saying("done"))
			body := c.request(0)
			patches, edits := strings.Contains(body, `"name":"apply_patch"`), strings.Contains(body, `"name":"edit_file"`)
			if wanted := c.profile == profile.NameOpenAI; patches != wanted || edits == wanted {
				c.Errorf("apply_patch %v, edit_file %v", patches, edits)
			}
			all, err := tools.Builtin(tools.Options{}).Tools(c.Context())
			if err != nil {
				c.Fatal(err)
			}
			for _, tool := range all {
				name := tool.Definition().Name
				if has := strings.Contains(body, `"name":"`+name+`"`); has != profile.HasTool(c.profile, tool.Definition()) {
					c.Errorf("%s in the request: %v", name, has)
				}
			}
		}},
	}
	if len(cases) != 15 {
		t.Fatalf("%d cases, want the 15 of 9.12", len(cases))
	}
	for _, col := range columns() {
		for _, tt := range cases {
			t.Run(tt.name+"/"+col.profile, func(t *testing.T) {
				tt.run(&cell{T: t, column: col})
			})
		}
	}
}
