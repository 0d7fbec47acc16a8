package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/scripted"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// step is a turn of a model: its text and its calls.
type step struct {
	text string
	call string
	args string
}

var repair = []step{
	{"I'll read it.", "read_file", `{"file_path": "a.txt"}`},
	{"", "edit_file", `{"file_path": "a.txt", "old_string": "teh", "new_string": "the"}`},
	{"", "grep", `{"pattern": "teh", "path": "."}`},
	{"Fixed.", "", ""},
}

// TestTheSameTaskByScriptAndWire runs one task against the scripted model and
// against the fake server, through langchaingo: the result is the same.
func TestTheSameTaskByScriptAndWire(t *testing.T) {
	script := "name: repair\nturns:\n"
	var turns []modeltest.Turn
	for i, s := range repair {
		script += fmt.Sprintf("  - text: %q\n", s.text)
		turn := modeltest.Turn{}
		if s.text != "" {
			turn.Text = strings.SplitAfter(s.text, " ")
		}
		if s.call != "" {
			script += fmt.Sprintf("    calls: [{name: %s, args: %q}]\n", s.call, s.args)
			half := len(s.args) / 2
			turn.Calls = []modeltest.Call{{ID: fmt.Sprint("call_", i), Name: s.call, Args: []string{s.args[:half], s.args[half:]}}}
		}
		turns = append(turns, turn)
	}
	parsed, err := scripted.Parse("repair", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	wire, err := langchain.Local(wire.Config{BaseURL: modeltest.NewChat(turns...).Serve(t), Model: "fake"})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for name, p := range map[string]model.Provider{"script": parsed.Provider(scripted.Options{}), "wire": wire} {
		a, dir := open(t, nil, map[string]string{"a.txt": "teh end\n"})
		s, err := a.NewSession(t.Context(), agent.SessionOptions{Provider: p})
		if err != nil {
			t.Fatal(err)
		}
		events := coretest.Collect(t, s, nil)
		out, err := s.Submit(t.Context(), core.TextInput("fix the typo"))
		if err != nil || out.Text != "Fixed." || out.Rounds != 3 {
			t.Fatalf("%s: %+v, %v", name, out, err)
		}
		_ = s.Close()
		if data, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(data) != "the end\n" {
			t.Errorf("%s: the file holds %q, %v", name, data, err)
		}
		var story []string
		for _, e := range events.Drain(t) {
			switch b := e.Body.(type) {
			case event.ToolUse:
				story = append(story, b.Name+b.Args)
			case event.ToolResult:
				story = append(story, strings.ReplaceAll(b.Content.Text(), dir, "."))
			case event.Message:
				story = append(story, string(b.Stop)+b.Content.Text())
			}
		}
		told = append(told, strings.Join(story, "\n"))
	}
	if told[0] != told[1] {
		t.Errorf("the two stories differ:\n%s\n---\n%s", told[0], told[1])
	}
}
