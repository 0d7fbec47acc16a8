package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/permissions"
)

// calls is an answer of the model with a tool call.
func calls(name string, args any) coretest.Turn {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return coretest.CallTools(model.ToolCall{Name: name, Args: string(text)})
}

// choosing answers permission requests with the option of a kind.
func choosing(kind string) func(string, json.RawMessage) any {
	return func(method string, params json.RawMessage) any {
		var r struct {
			Options []struct{ OptionID, Kind string }
		}
		if method != "session/request_permission" || json.Unmarshal(params, &r) != nil {
			return nil
		}
		for _, o := range r.Options {
			if o.Kind == kind {
				return object{"outcome": object{"outcome": "selected", "optionId": o.OptionID}}
			}
		}
		return object{"outcome": object{"outcome": "cancelled"}}
	}
}

func TestPrompt(t *testing.T) {
	w := newWorld(t, coretest.Model(coretest.Say("Good day.")))
	c := w.connect(t)
	info := c.initialize(object{})
	if got := info["agentInfo"].(object)["name"]; got != "agent" || info["protocolVersion"] != 1.0 {
		t.Errorf("initialize: %v", info)
	}
	id := c.session(w.dir)
	c.until("slash commands", func() bool { return len(c.updates("available_commands_update")) == 1 })
	if stop := c.prompt(id, "Hello"); stop != "end_turn" {
		t.Errorf("stop reason %s", stop)
	}
	if got := c.said("agent_message_chunk"); got != "Good day." {
		t.Errorf("said %q", got)
	}
	if u := c.updates("usage_update"); len(u) != 1 || u[0]["size"] != 1000.0 || u[0]["cost"].(object)["amount"] != 0.5 {
		t.Errorf("usage %v", u)
	}
	if u := c.updates("session_info_update"); len(u) != 1 || u[0]["title"] != "Hello" {
		t.Errorf("title %v", u)
	}
}

func TestPermission(t *testing.T) {
	write := func(name string) coretest.Turn {
		return calls("write_file", object{"file_path": name, "content": "new\n"})
	}
	w := newWorld(t, coretest.Model(write("a.txt"), coretest.Say("Done."), write("b.txt"), coretest.Say("No.")))
	c := w.connect(t)
	c.answer = choosing("allow_once")
	c.initialize(object{})
	id := c.session(w.dir)
	c.prompt(id, "write")
	if data, err := os.ReadFile(filepath.Join(w.dir, "a.txt")); string(data) != "new\n" {
		t.Fatalf("the file: %q, %v", data, err)
	}
	asked := c.requests("session/request_permission")
	if len(asked) != 1 {
		t.Fatalf("%d permission requests", len(asked))
	}
	call := c.updates("tool_call")[0]
	if asked[0]["toolCall"].(object)["toolCallId"] != call["toolCallId"] || call["kind"] != "edit" || call["locations"].([]any)[0].(object)["path"] != filepath.Join(w.dir, "a.txt") {
		t.Errorf("call %v, question %v", call, asked[0])
	}
	var kinds []string
	for _, o := range asked[0]["options"].([]any) {
		o := o.(object)
		kinds = append(kinds, o["kind"].(string))
		if always := strings.HasSuffix(o["kind"].(string), "_always"); always != strings.Contains(o["name"].(string), "fs-write(") {
			t.Errorf("option %v names no rule, or one too many", o)
		}
	}
	slices.Sort(kinds)
	if got := strings.Join(slices.Compact(kinds), " "); got != "allow_always allow_once reject_always reject_once" {
		t.Errorf("options %s", got)
	}
	last := c.updates("tool_call_update")
	if got := jsonOf(t, last[len(last)-1]["content"]); got != `[{"newText":"new\n","path":"`+filepath.Join(w.dir, "a.txt")+`","type":"diff"}]` {
		t.Errorf("content %s", got)
	}
	c.answer = choosing("reject_once")
	c.prompt(id, "again")
	if _, err := os.Stat(filepath.Join(w.dir, "b.txt")); err == nil {
		t.Error("a rejected call wrote the file")
	}
	if u := c.updates("tool_call_update"); u[len(u)-1]["status"] != "failed" {
		t.Errorf("the rejected call is %v", u[len(u)-1])
	}
}

func TestCancelBehindPrompt(t *testing.T) {
	const times = 20
	turns := make([]coretest.Turn, times)
	for i := range turns {
		turns[i] = coretest.Turn{Text: "never", Block: make(chan struct{})}
	}
	w := newWorld(t, coretest.Model(turns...))
	c := w.connect(t)
	c.initialize(object{})
	id := c.session(w.dir)
	for i := range times {
		_, reply := c.send("session/prompt", promptOf(id, "go"))
		c.notify("session/cancel", object{"sessionId": id})
		if m := c.wait(reply); m.Error != nil || !strings.Contains(string(m.Result), "cancelled") {
			t.Fatalf("prompt %d: %+v", i, m)
		}
	}
}

func TestCancelDuringCommand(t *testing.T) {
	w := newWorld(t, coretest.Model(calls("shell", object{"command": "echo started; sleep 60"}), coretest.Say("Done.")))
	w.mode = permissions.ModeBypass
	c := w.connect(t)
	c.initialize(object{})
	id := c.session(w.dir)
	_, reply := c.send("session/prompt", promptOf(id, "go"))
	c.until("output", func() bool { return strings.Contains(jsonOf(t, c.updates("tool_call_update")), "started") })
	c.notify("session/cancel", object{"sessionId": id})
	if m := c.wait(reply); !strings.Contains(string(m.Result), "cancelled") {
		t.Errorf("the prompt ends with %+v", m)
	}
}
