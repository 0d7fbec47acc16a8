package acp_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/permissions"
)

func TestElicitation(t *testing.T) {
	question := calls("ask_user", object{"question": "Which colour?", "options": []any{"red", "blue"}})
	for name, tt := range map[string]struct {
		capabilities object
		answer       func(string, json.RawMessage) any
		want         string
	}{
		"form": {object{"elicitation": object{"form": object{}}}, func(method string, params json.RawMessage) any {
			if method != "elicitation/create" || !strings.Contains(string(params), `"enum":["red","blue","something else"]`) {
				return nil
			}
			return object{"action": "accept", "content": object{"answer": "blue"}}
		}, "The user answers: blue"},
		"declined": {object{"elicitation": object{"form": object{}}}, func(string, json.RawMessage) any { return object{"action": "decline"} }, "did not answer"},
		"choice":   {object{}, choosing("allow_once"), "The user answers: red"},
		"refused":  {object{}, nil, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, coretest.Model(question, coretest.Say("Asked.")))
			c := w.connect(t)
			c.answer = tt.answer
			c.initialize(tt.capabilities)
			id := c.session(w.dir)
			c.prompt(id, "ask")
			if got := jsonOf(t, c.updates("tool_call_update")); !strings.Contains(got, tt.want) {
				t.Errorf("results %s", got)
			}
			call := c.updates("tool_call")[0]["toolCallId"]
			for _, r := range c.requests("elicitation/create") {
				if r["sessionId"] != id || r["toolCallId"] != call {
					t.Errorf("the form %v is not of call %v", r, call)
				}
			}
		})
	}
}

// pageTool asks to open a page.
func pageTool() core.Tool {
	return core.NewTool(core.ToolDefinition{Name: "page", ReadOnly: true}, nil, func(ctx context.Context, c *core.Call, _ struct{}) (core.Result, error) {
		a, err := c.Ask(ctx, core.Question{Kind: core.QuestionURL, Title: "Sign in", URL: "https://example.test/sign-in", Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo}})
		return core.TextResult("the answer is " + string(a.Choice)), err
	})
}

func TestURL(t *testing.T) {
	for name, tt := range map[string]struct {
		capabilities object
		answer       func(string, json.RawMessage) any
		completed    int
	}{
		"elicitation": {object{"elicitation": object{"url": object{}}}, func(method string, _ json.RawMessage) any {
			if method != "elicitation/create" {
				return nil
			}
			return object{"action": "accept"}
		}, 1},
		"old client": {object{}, choosing("allow_once"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, coretest.Model(calls("page", object{}), coretest.Say("Done.")))
			w.tools = []core.Tool{pageTool()}
			c := w.connect(t)
			c.answer = tt.answer
			c.initialize(tt.capabilities)
			c.prompt(c.session(w.dir), "sign in")
			if got := jsonOf(t, c.updates("tool_call_update")); !strings.Contains(got, "the answer is yes") {
				t.Errorf("results %s", got)
			}
			if got := jsonOf(t, append(c.requests("elicitation/create"), c.requests("session/request_permission")...)); !strings.Contains(got, "https://example.test/sign-in") {
				t.Errorf("asked %s", got)
			}
			if n := len(c.requests("elicitation/complete")); n != tt.completed {
				t.Errorf("%d elicitations are complete", n)
			}
		})
	}
}

func TestRejectAlways(t *testing.T) {
	write := calls("write_file", object{"file_path": "a.txt", "content": "new\n"})
	w := newWorld(t, coretest.Model(write, write, coretest.Say("No.")))
	c := w.connect(t)
	c.answer = choosing("reject_always")
	c.initialize(object{})
	c.prompt(c.session(w.dir), "write twice")
	if n := len(c.requests("session/request_permission")); n != 1 {
		t.Errorf("%d permission requests, want one: the answer is remembered", n)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "a.txt")); err == nil {
		t.Error("the file was written")
	}
}

func TestCancelDuringQuestion(t *testing.T) {
	w := newWorld(t, coretest.Model(calls("write_file", object{"file_path": "a.txt", "content": "x"}), coretest.Say("No.")))
	c := w.connect(t)
	asked, release := make(chan struct{}), make(chan struct{})
	c.answer = func(string, json.RawMessage) any {
		close(asked)
		<-release
		return object{"outcome": object{"outcome": "cancelled"}}
	}
	c.initialize(object{})
	id := c.session(w.dir)
	_, reply := c.send("session/prompt", promptOf(id, "go"))
	<-asked
	c.notify("session/cancel", object{"sessionId": id})
	if m := c.wait(reply); !strings.Contains(string(m.Result), "cancelled") {
		t.Errorf("the prompt ends with %+v", m)
	}
	c.until("the withdrawal", func() bool { return len(c.requests("$/cancel_request")) == 1 })
	close(release)
}

// terminals is a client's terminals: processes with their output.
type terminals struct {
	t      *testing.T
	output strings.Builder
	cmd    *exec.Cmd
}

func (m *terminals) answer(method string, params json.RawMessage) any {
	switch method {
	case "terminal/create":
		var p struct {
			Command string
			Args    []string
		}
		if err := json.Unmarshal(params, &p); err != nil {
			m.t.Error(err)
		}
		m.cmd = exec.Command(p.Command, p.Args...)
		m.cmd.Stdout, m.cmd.Stderr = &m.output, &m.output
		if err := m.cmd.Start(); err != nil {
			m.t.Error(err)
		}
		return object{"terminalId": "t1"}
	case "terminal/wait_for_exit":
		_ = m.cmd.Wait() // its code is below
		return object{"exitCode": m.cmd.ProcessState.ExitCode()}
	case "terminal/release":
		return object{}
	}
	return nil
}

func TestTerminal(t *testing.T) {
	w := newWorld(t, coretest.Model(calls("shell", object{"command": "echo first; sleep 1; echo second; exit 3"}), coretest.Say("Done.")))
	w.mode = permissions.ModeBypass
	c := w.connect(t)
	m := &terminals{t: t}
	c.answer = m.answer
	c.initialize(object{"terminal": true})
	c.prompt(c.session(w.dir), "run")
	c.until("the release", func() bool { return len(c.requests("terminal/release")) == 1 })
	if got := m.output.String(); got != "first\nsecond\n" || m.cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("the terminal shows %q and ends with %s", got, m.cmd.ProcessState)
	}
	u := c.updates("tool_call_update")
	if last := u[len(u)-1]; jsonOf(t, last["content"]) != `[{"terminalId":"t1","type":"terminal"}]` || last["status"] != "failed" {
		t.Errorf("the call ends as %s", jsonOf(t, last))
	}
	if n := len(c.requests("terminal/kill")); n > 0 {
		t.Error("the terminal was killed")
	}
}

// TestParked: a question that was open when the process died is asked again.
func TestParked(t *testing.T) {
	write := calls("write_file", object{"file_path": "a.txt", "content": "new\n"})
	w := newWorld(t, coretest.Model(write, coretest.Say("Done.")))
	first := w.connect(t)
	died := t.TempDir() // the files as they are when it dies
	asked, release := make(chan struct{}), make(chan struct{})
	first.answer = func(string, json.RawMessage) any {
		if err := os.CopyFS(died, os.DirFS(w.home)); err != nil {
			t.Error(err)
		}
		close(asked)
		<-release
		return nil
	}
	first.initialize(object{})
	id := first.session(w.dir)
	first.send("session/prompt", promptOf(id, "write"))
	<-asked
	later := newWorld(t, coretest.Model(coretest.Say("Done.")))
	later.home, later.dir = died, w.dir
	c := later.connect(t)
	c.answer = choosing("allow_once")
	c.initialize(object{})
	c.call("session/load", object{"sessionId": id, "cwd": w.dir, "mcpServers": []any{}})
	c.until("the answer of the model", func() bool { return c.said("agent_message_chunk") == "Done." })
	if data, err := os.ReadFile(filepath.Join(w.dir, "a.txt")); string(data) != "new\n" {
		t.Errorf("the file: %q, %v", data, err)
	}
	close(release)
}
