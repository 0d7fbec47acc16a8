//go:build unix

package root

import (
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
