//go:build unix

package root

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// firstTime is a world whose user has no provider yet, and a key in the environment.
func firstTime(t *testing.T) (w *world, env []string) {
	t.Helper()
	w = newWorld(t, `[{text: ["yes"]}, {text: ["First answer."]}]`)
	settings := `{"providers": {"openai": {"baseUrl": "` + baseURL(t, w) + `"}}, "terminal": {"notify": "bell"}}`
	if err := os.WriteFile(filepath.Join(w.home, ".agent", "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, []string{"OPENAI_API_KEY=" + typedKey}
}

// TestFirstMinute: from no settings to an answer with three keys.
func TestFirstMinute(t *testing.T) {
	w, env := firstTime(t)
	if err := os.WriteFile(filepath.Join(w.workspace, ".mcp.json"), []byte(`{"mcpServers": {"helper": {"command": "help-me"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.onTerminalWith(env, "What now?")
	s.answer("OPENAI_API_KEY is set", "gpt\r")
	s.answer("It has MCP server helper: help-me", "")
	s.answer("or Enter to answer", "y")
	s.answer("First answer.", "/mode\r")
	s.answer("The permission mode is", "/quit\r")
	s.exits(0)
	if text := s.text(); !strings.Contains(text, "Testing") || !strings.Contains(text, "Trusted.") || strings.Contains(text, "sk-proj") {
		t.Errorf("the terminal shows:\n%s", text)
	}
	if now := s.state(); !reflect.DeepEqual(now, s.was) {
		t.Error("the terminal is not as it was")
	}
	if got := settingsText(t, w); !strings.Contains(got, `"default": "openai"`) || strings.Contains(got, typedKey) {
		t.Errorf("settings %s", got)
	}
	w.model(`[{text: ["Second answer."]}]`)
	again := w.onTerminalWith(env, "And now?")
	again.answer("Second answer.", "/quit\r")
	again.exits(0)
	if strings.Contains(again.text(), "Which model?") || strings.Contains(again.text(), "Do you trust") {
		t.Errorf("it asks again:\n%s", again.text())
	}
}

// TestFirstMinuteOtherProvider: any provider can be chosen from the list, and only its
// questions follow.
func TestFirstMinuteOtherProvider(t *testing.T) {
	w, env := firstTime(t)
	s := w.onTerminalWith(env, "What now?")
	s.answer("OPENAI_API_KEY is set", "another\r")
	s.answer("Which provider?", "openai\r")
	s.answer("Endpoint [", "\n")
	s.answer("Key [keep", "")
	s.awaitChange()
	s.answer("", "\n")
	s.answer("Model [gpt-5-mini]:", "\n")
	s.answer("or Enter to answer", "y")
	s.answer("First answer.", "/quit\r")
	s.exits(0)
	if text := s.text(); strings.Contains(text, "Providers:") || strings.Contains(text, "Try it:") {
		t.Errorf("the terminal shows:\n%s", text)
	}
	if got := settingsText(t, w); !strings.Contains(got, `"default": "openai"`) {
		t.Errorf("settings %s", got)
	}
}

// TestFirstMinuteLineByLine: on a dumb terminal the same questions are lines; a key
// that does not work is not saved, and Ctrl-C leaves nothing.
func TestFirstMinuteLineByLine(t *testing.T) {
	w, env := firstTime(t)
	w.model(`[{status: 401}, {status: 401}]`)
	before := settingsText(t, w)
	s := w.onTerminalWith(append(env, "TERM=dumb"))
	s.answer("Number or name (an empty line: none):", "1\n")
	s.answer("What to do: check the key", "")
	s.answer("failed just now; OPENAI_API_KEY is set", "\x03")
	s.exits(130)
	if got := settingsText(t, w); got != before {
		t.Errorf("settings %s", got)
	}
}
