//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestInteractiveSession takes the command as a person has it: a prompt, a
// question answered "always", commands, a file, and going on the next time.
func TestInteractiveSession(t *testing.T) {
	w := newWorld(t, `[
		{calls: [{name: shell, args: {command: "echo one"}}]},
		{text: ["First answer."]},
		{text: ["Second answer."]}]`)
	if err := os.WriteFile(filepath.Join(w.workspace, "notes.txt"), []byte("remember the milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.onTerminal("Please begin")
	if err := pty.Setsize(s.master, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	was := s.state()
	s.answer("always; adds the rule shell(echo one)", "a")
	s.answer("First answer.", "look at @notes.txt\r")
	s.answer("Second answer.", "/cost\r")
	s.answer("3 model calls", "/quit\r")
	s.exits(0)
	if !reflect.DeepEqual(was, s.state()) {
		t.Error("the terminal is not as it was")
	}
	requests := w.chat.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "remember the milk") || !strings.Contains(last, "Please begin") {
		t.Errorf("the model did not get the file or the first prompt: %s", last)
	}
	settings, err := os.ReadFile(filepath.Join(w.home, ".agent", "settings.json"))
	if err != nil || !strings.Contains(string(settings), "shell(echo one)") {
		t.Errorf("the rule is not in the settings: %s, %v", settings, err)
	}

	// The next time: the rule holds, and the conversation goes on.
	w.model(`[{calls: [{name: shell, args: {command: "echo one"}}]}, {text: ["Third answer."]}]`)
	again := w.onTerminal("-c")
	again.answer("resumed session", "once more\r")
	again.answer("Third answer.", "\x04") // Ctrl-D
	again.exits(0)
	if strings.Contains(again.text(), "Allow shell") {
		t.Error("the second session asked in spite of the rule")
	}
	requests = w.chat.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "First answer.") || !strings.Contains(last, "once more") {
		t.Errorf("the resumed session sent %s", last)
	}
}

// TestInteractiveWithoutAModel: nothing is configured and no server runs, and
// still there is something to do.
func TestInteractiveWithoutAModel(t *testing.T) {
	w := newWorld(t, `[{text: ["never"]}]`)
	w.stop() // the model's server is gone
	s := w.onTerminal("hello")
	if err := pty.Setsize(s.master, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	s.answer("agent providers setup", "/quit\r")
	s.exits(0)
	if !strings.Contains(s.text(), "agent demo") {
		t.Errorf("there is no word of the demo:\n%s", s.text())
	}
}
