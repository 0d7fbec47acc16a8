package acp_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/server"

	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/permissions"
)

// values returns the values of the configuration options, by their category.
func values(result object) string {
	var list []string
	for _, o := range result["configOptions"].([]any) {
		o := o.(object)
		list = append(list, fmt.Sprint(o["category"], "=", o["currentValue"]))
	}
	return strings.Join(list, " ")
}

func TestLoad(t *testing.T) {
	p := coretest.Model(
		calls("write_file", object{"file_path": "a.txt", "content": "one\ntwo\n"}), coretest.Say("Written."),
		calls("edit_file", object{"file_path": "a.txt", "old_string": "two", "new_string": "three"}), coretest.Say("Edited."),
		coretest.Say("Again."),
	)
	w := newWorld(t, p)
	first := w.connect(t)
	first.answer = choosing("allow_once")
	first.initialize(object{})
	id := first.session(w.dir)
	first.prompt(id, "write")
	first.call("session/set_mode", object{"sessionId": id, "modeId": "bypass"})
	first.call("session/set_config_option", object{"sessionId": id, "configId": "effort", "value": "high"})
	first.prompt(id, "edit")
	live := first.updates("tool_call_update")
	first.call("session/close", object{"sessionId": id})

	c := w.connect(t)
	c.initialize(object{})
	loaded := c.call("session/load", object{"sessionId": id, "cwd": w.dir, "mcpServers": []any{}})
	if got := values(loaded); got != "mode=bypass model=m thought_level=high" {
		t.Errorf("options %s", got)
	}
	if got := loaded["modes"].(object)["currentModeId"]; got != "bypass" {
		t.Errorf("mode %v", got)
	}
	if got := c.said("user_message_chunk") + c.said("agent_message_chunk"); got != "writeeditWritten.Edited." {
		t.Errorf("said %q", got)
	}
	past := c.updates("tool_call_update")
	if got, want := jsonOf(t, past[len(past)-1]["content"]), jsonOf(t, live[len(live)-1]["content"]); got != want || !strings.Contains(got, `"oldText":"one\ntwo\n"`) {
		t.Errorf("the last diff was %s, now %s", want, got)
	}
	if len(c.updates("tool_call")) != 2 || len(c.requests("session/request_permission")) > 0 {
		t.Errorf("kinds %v", c.kinds())
	}
	// A second load replaces the first, a resume shows nothing.
	c.call("session/load", object{"sessionId": id, "cwd": w.dir, "mcpServers": []any{}})
	c.call("session/close", object{"sessionId": id})
	c.forget()
	if got := values(c.call("session/resume", object{"sessionId": id, "cwd": w.dir})); got != "mode=bypass model=m thought_level=high" {
		t.Errorf("options after resume: %s", got)
	}
	if stop := c.prompt(id, "once more"); stop != "end_turn" || c.said("user_message_chunk") != "" || c.said("agent_message_chunk") != "Again." {
		t.Errorf("%s after %v", stop, c.kinds())
	}
	if u := c.updates("usage_update"); u[len(u)-1]["cost"].(object)["amount"] != 2.5 {
		t.Errorf("the cost begins anew: %v", u)
	}
}

func TestListDelete(t *testing.T) {
	turns := make([]coretest.Turn, 60)
	for i := range turns {
		turns[i] = coretest.Say("ok")
	}
	w := newWorld(t, coretest.Model(turns...))
	c := w.connect(t)
	c.initialize(object{})
	other := t.TempDir()
	elsewhere := c.session(other)
	c.prompt(elsewhere, "elsewhere")
	var ids []string
	for i := range 52 {
		id := c.session(w.dir)
		c.prompt(id, fmt.Sprint("number ", i))
		c.call("session/close", object{"sessionId": id})
		ids = append(ids, id)
	}
	var found []string
	for cursor := any(nil); ; {
		r := object{"cwd": w.dir}
		if cursor != nil {
			r["cursor"] = cursor
		}
		page := c.call("session/list", r)
		for _, s := range page["sessions"].([]any) {
			s := s.(object)
			if s["cwd"] != w.dir || !strings.HasPrefix(s["title"].(string), "number ") {
				t.Errorf("listed %v", s)
			}
			found = append(found, s["sessionId"].(string))
		}
		if cursor = page["nextCursor"]; cursor == nil {
			break
		}
	}
	slices.Sort(found)
	slices.Sort(ids)
	if !slices.Equal(found, ids) {
		t.Errorf("%d of %d sessions are listed", len(found), len(ids))
	}
	c.fails(-32602, "session/list", object{"cursor": "nonsense"})
	c.call("session/delete", object{"sessionId": ids[0]})
	c.call("session/delete", object{"sessionId": ids[0]})    // is deleted already
	c.call("session/delete", object{"sessionId": elsewhere}) // is open
	if list := c.call("session/list", object{})["sessions"].([]any); len(list) != 50 {
		t.Errorf("%d sessions on the first page", len(list))
	}
	c.fails(-32002, "session/load", object{"sessionId": ids[0], "cwd": w.dir, "mcpServers": []any{}})
	c.fails(-32002, "session/prompt", promptOf(elsewhere, "x"))
	c.fails(-32002, "session/close", object{"sessionId": elsewhere})
}

func TestOptions(t *testing.T) {
	w := newWorld(t, coretest.Model())
	c := w.connect(t)
	c.initialize(object{})
	made := c.call("session/new", object{"cwd": w.dir, "mcpServers": []any{}})
	if got := values(made); got != "mode=default model=m thought_level=" {
		t.Errorf("options %s", got)
	}
	id := made["sessionId"].(string)
	if got := values(c.call("session/set_config_option", object{"sessionId": id, "configId": "model", "value": "n"})); !strings.Contains(got, "model=n") {
		t.Errorf("options %s", got)
	}
	c.call("session/set_mode", object{"sessionId": id, "modeId": "accept-edits"})
	c.until("the updates", func() bool {
		return len(c.updates("current_mode_update")) == 1 && len(c.updates("config_option_update")) == 2
	})
	c.fails(-32602, "session/set_config_option", object{"sessionId": id, "configId": "model", "value": "z"})
	c.fails(-32602, "session/set_config_option", object{"sessionId": id, "configId": "colour", "value": "m"})
	c.fails(-32602, "session/set_config_option", object{"sessionId": id, "configId": "model", "type": "boolean", "value": true})
	c.fails(-32602, "session/set_mode", object{"sessionId": id, "modeId": "z"})
}

func TestContent(t *testing.T) {
	var got model.Parts
	w := newWorld(t, coretest.Model(coretest.Turn{Text: "Seen.", Hook: func(r *model.Request) { got = r.Messages[len(r.Messages)-1].Parts }}))
	c := w.connect(t)
	c.initialize(object{})
	id := c.session(w.dir)
	prompt := func(blocks ...any) object { return object{"sessionId": id, "prompt": blocks} }
	c.call("session/prompt", prompt(
		object{"type": "text", "text": "Look:"},
		object{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
		object{"type": "resource_link", "name": "a.txt", "uri": "file:///w/a%20b.txt#L3:5"},
		object{"type": "resource", "resource": object{"uri": "file:///w/c.txt", "text": "the content"}},
		object{"type": "resource", "resource": object{"uri": "file:///w/d.png", "mimeType": "image/png", "blob": "iVBORw0KGgo="}},
	))
	images := 0
	for _, p := range got {
		if img, ok := p.(model.Image); ok && len(img.Data) == 8 {
			images++
		}
	}
	if text := got.Text(); images != 2 || !strings.Contains(text, "Look:") || !strings.Contains(text, "@/w/a b.txt#L3:5") || !strings.Contains(text, "the content") || !strings.Contains(text, "file:///w/c.txt") {
		t.Errorf("%d images, text %q", images, text)
	}
	c.call("session/close", object{"sessionId": id})
	c.forget()
	c.call("session/load", object{"sessionId": id, "cwd": w.dir, "mcpServers": []any{}})
	if u := c.updates("user_message_chunk"); len(u) < 3 || strings.Contains(jsonOf(t, u), "<context") || strings.Count(jsonOf(t, u), "iVBORw0KGgo=") != 2 {
		t.Errorf("replayed %s", jsonOf(t, u))
	}
	c.fails(-32602, "session/prompt", prompt())
	c.fails(-32602, "session/prompt", prompt(object{"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}))
	c.fails(-32602, "session/prompt", prompt(object{"type": "image", "mimeType": "image/png", "data": "?"}))
	c.fails(-32602, "session/prompt", object{"sessionId": id, "prompt": "text"})
}

func TestPlanAndCommands(t *testing.T) {
	var asked string
	plan := object{"plan": []any{object{"step": "look", "status": "in_progress"}, object{"step": "do", "status": "pending"}}}
	p := coretest.Model(calls("update_plan", plan), coretest.Say("Planned."),
		coretest.Turn{Text: "Said.", Hook: func(r *model.Request) { asked = r.Messages[len(r.Messages)-1].Parts.Text() }}, coretest.Say("A summary."))
	w := newWorld(t, p)
	c := w.connect(t)
	c.initialize(object{"session": object{"compaction": object{}, "notices": object{}}})
	id := c.session(w.dir)
	c.prompt(id, "plan")
	if u := c.updates("plan"); len(u) != 1 || u[0]["entries"].([]any)[0].(object)["status"] != "in_progress" {
		t.Errorf("plans %v", u)
	}
	if stop := c.prompt(id, "/twice yes"); stop != "end_turn" || !strings.HasPrefix(asked, "yes yes") {
		t.Errorf("the model was asked %q", asked)
	}
	if stop := c.prompt(id, "/compact the plan"); stop != "end_turn" || len(c.updates("compaction_update")) != 1 {
		t.Errorf("%s after %v", stop, c.kinds())
	}
}

func TestClientServers(t *testing.T) {
	web := httptest.NewServer(server.NewStreamableHTTPServer(greeter("Bonjour")))
	t.Cleanup(web.Close)
	p := coretest.Model(
		coretest.CallTools(model.ToolCall{Name: "my-own__greet", Args: `{"name":"Ann"}`}, model.ToolCall{Name: "editor-web__greet", Args: `{"name":"Bob"}`}), coretest.Say("Done."),
	)
	w := newWorld(t, p)
	c := w.connect(t)
	c.answer = choosing("allow_once")
	c.initialize(object{})
	id := c.call("session/new", object{"cwd": w.dir, "mcpServers": []any{
		object{"name": "my own", "command": os.Args[0], "args": []any{serveFlag}, "env": []any{object{"name": "GREETING", "value": "Hi ${HOME} $(date)"}}},
		object{"type": "http", "name": "web", "url": web.URL, "headers": []any{}},
	}})["sessionId"].(string)
	c.prompt(id, "greet")
	if got := jsonOf(t, c.updates("tool_call_update")); !strings.Contains(got, "Hi ${HOME} $(date), Ann") || !strings.Contains(got, "Bonjour, Bob") {
		t.Errorf("results %s", got)
	}
	c.fails(-32602, "session/new", object{"cwd": w.dir, "mcpServers": []any{object{"type": "carrier-pigeon", "name": "x"}}})
}

func TestDirectories(t *testing.T) {
	other, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "b.txt"), []byte("over there\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, coretest.Model(calls("read_file", object{"file_path": filepath.Join(other, "b.txt")}), coretest.Say("Read.")))
	c := w.connect(t)
	c.initialize(object{})
	id := c.call("session/new", object{"cwd": w.dir, "mcpServers": []any{}, "additionalDirectories": []any{other}})["sessionId"].(string)
	c.prompt(id, "read")
	if got := jsonOf(t, c.updates("tool_call_update")); !strings.Contains(got, "over there") || len(c.requests("session/request_permission")) > 0 {
		t.Errorf("results %s", got)
	}
	c.fails(-32602, "session/new", object{"cwd": w.dir, "mcpServers": []any{}, "additionalDirectories": []any{"relative"}})
	c.fails(-32602, "session/new", object{"cwd": "relative", "mcpServers": []any{}})
}

// TestFiles: tools read and write through the client; the agent itself does not.
func TestFiles(t *testing.T) {
	w := newWorld(t, coretest.Model(calls("read_file", object{"file_path": "a.txt"}),
		calls("edit_file", object{"file_path": "a.txt", "old_string": "unsaved", "new_string": "saved"}), coretest.Say("Done.")))
	w.mode = permissions.ModeBypass
	path := filepath.Join(w.dir, "a.txt")
	for name, text := range map[string]string{path: "on disk\n", filepath.Join(w.dir, "AGENTS.md"): "Be brief.\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := w.connect(t)
	c.answer = func(method string, params json.RawMessage) any {
		var p struct{ Path, Content string }
		if json.Unmarshal(params, &p) != nil || p.Path != path {
			return nil
		}
		if method == "fs/read_text_file" {
			return object{"content": "unsaved\n"}
		}
		if err := os.WriteFile(p.Path, []byte(p.Content), 0o600); err != nil {
			t.Error(err)
		}
		return object{}
	}
	c.initialize(object{"fs": object{"readTextFile": true, "writeTextFile": true}})
	id := c.session(w.dir)
	c.prompt(id, "edit")
	if data, err := os.ReadFile(path); string(data) != "saved\n" {
		t.Errorf("the file: %q, %v", data, err)
	}
	if got := c.requests("fs/write_text_file"); len(got) != 1 || got[0]["content"] != "saved\n" {
		t.Errorf("written %v", got)
	}
	for _, r := range c.requests("fs/read_text_file") {
		if r["path"] != path {
			t.Errorf("the agent read %v through the client", r["path"])
		}
	}
	if u := c.updates("tool_call_update"); !strings.Contains(jsonOf(t, u), `"oldText":"unsaved\n"`) {
		t.Errorf("updates %s", jsonOf(t, u))
	}
}
