//go:build unix

package tui

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
)

// TestLineCompose edits the message in the user's editor, undoes that, and copies a
// text.
func TestLineCompose(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf ' and\\nmore\\033[31m' >>\"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	copies := Command{Name: "take", Run: func(context.Context, string) (Result, error) { return Result{Copy: "größe\n", Text: "taken"}, nil }}
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{
		Session: newFakeSession(), Asker: NewAsker(), Commands: func() []Command { return []Command{copies} },
		Env: testEnv(map[string]string{"EDITOR": script, "VISUAL": ""}),
	})
	c.wait(">")
	c.send("one two\x07") // Ctrl-G
	c.wait("> one two and\n  more")
	c.send("\x1f") // Ctrl-_
	c.gone("more")
	c.wait("> one two")
	c.send("\x1f")
	c.gone("two")
	c.wait("> one")
	c.send(keyCtrlC + "/take\r")
	c.wait("taken")
	r.quit(c)
	c.see(func(v *vt.Terminal) {
		if len(v.Copied) != 1 || v.Copied[0] != "größe\n" {
			t.Errorf("copied %q", v.Copied)
		}
	})
}
