//go:build unix

package root

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInteractiveHooks: hooks learn of a question, and how a session begins and ends on
// a terminal.
func TestInteractiveHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: write_file, args: {file_path: one.txt, content: one}}]}, {text: ["First answer."]},
		{text: ["Second answer."]}]`)
	dir := filepath.Join(w.home, ".claude")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	settings := `{"hooks": {
		"Notification": [{"matcher": "permission_prompt", "hooks": [{"type": "command", "command": "cat >>log.jsonl"}]},
			{"matcher": "idle_prompt", "hooks": [{"type": "command", "command": "cat >>log.jsonl"}]}],
		"PermissionRequest": [{"matcher": "Write", "hooks": [{"type": "command", "command": "cat >>log.jsonl"}]}],
		"SessionStart": [{"hooks": [{"type": "command", "command": "cat >>log.jsonl"}]}],
		"SessionEnd": [{"hooks": [{"type": "command", "command": "cat >>log.jsonl"}]}]}}`
	if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.onTerminal("Write one")
	s.answer("Write one.txt?", "y")
	s.answer("1 tool round", "")
	s.idle()
	s.answer("", "/clear\r")
	if err := await("the second session", func() bool { return strings.Count(s.text(), "· /help") == 2 }); err != nil {
		t.Fatal(err)
	}
	s.answer("", "Again\r")
	s.answer("Second answer.", "")
	s.idle()
	s.answer("", "/quit\r")
	s.exits(0)
	data, err := os.ReadFile(filepath.Join(w.workspace, "log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(data)) {
		var in map[string]string
		if err := json.Unmarshal([]byte(line), &in); err != nil && in["hook_event_name"] != "PermissionRequest" {
			t.Fatalf("%v: %s", err, line)
		}
		got = append(got, in["hook_event_name"]+" "+in["source"]+in["reason"]+in["notification_type"]+in["tool_name"])
	}
	want := "SessionStart startup, PermissionRequest Write, Notification permission_prompt, SessionEnd clear, SessionStart clear, SessionEnd prompt_input_exit"
	if g := strings.Join(got, ", "); g != want {
		t.Errorf("the hooks ran as %s, want %s", g, want)
	}
}
