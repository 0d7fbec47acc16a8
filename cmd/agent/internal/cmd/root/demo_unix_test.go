//go:build unix

package root

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestInteractiveDemo: on a terminal the demo is a session in which the user
// answers and types. It needs no go command, and begins at once.
func TestInteractiveDemo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[]`)
	begun := time.Now()
	s := w.onTerminal("demo")
	s.answer("Call web_fetch", "")
	t.Logf("the first question came after %s", time.Since(begun))
	s.answer("", "y")
	s.answer("Run `sh slug_test.sh`", "s") // for this session
	s.answer("view in full", "y")
	s.answer("Call read_file of the MCP server neighbor", "y")
	s.answer("Nothing else was changed", "what now?\r")
	s.answer("I am only a script", "/quit\r")
	s.exits(0)
	if text := s.text(); !strings.Contains(text, "agent providers setup") || strings.Contains(text, "✗ demo-script") {
		t.Errorf("the demo ended otherwise:\n%s", text)
	}
}

// TestDemoLineByLine: the demo has the terminal that the settings ask for.
func TestDemoLineByLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[]`)
	w.settings(map[string]any{"terminal": map[string]any{"screenReader": true}})
	s := w.onTerminal("demo")
	s.answer("y: yes, once", "")
	if now := s.state(); !reflect.DeepEqual(now, s.was) {
		t.Error("the terminal's own line editing is off")
	}
	s.answer("", "\x04")
	s.exits(0)
}
