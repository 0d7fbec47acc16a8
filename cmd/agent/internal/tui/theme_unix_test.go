//go:build unix

package tui

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
)

// TestLineTheme: the first frame does not wait for the terminal's background; the
// answer loses no key, and colours what follows, as does a command.
func TestLineTheme(t *testing.T) {
	t.Parallel()
	s := newFakeSession()
	c := newConsole(t, 80, 24)
	themed := Command{Name: "colours", Args: "NAME", Run: func(_ context.Context, name string) (Result, error) { return Result{Theme: name}, nil }}
	r := c.start(t.Context(), Options{Session: s, Asker: NewAsker(), Commands: func() []Command { return []Command{themed} }, Env: testEnv(map[string]string{"COLORTERM": "truecolor"})})
	c.wait(">")
	c.see(func(v *vt.Terminal) {
		if !slices.Equal(v.Asked, []string{"11"}) {
			t.Errorf("asked for %q", v.Asked)
		}
	})
	c.send("ab\x1b]11;rgb:ffff/ffff/ffff\x1b\\cd")
	c.wait("> abcd")
	before := c.length()
	c.send("\x15/nothing\r")
	c.wait("unknown command /nothing")
	if got := c.since(before); !strings.Contains(got, "\x1b[38;2;207;34;46m✗") {
		t.Errorf("not red on white: %q", got)
	}
	before = c.length()
	c.send("/colours ansi\r")
	c.wait("> /colours ansi")
	c.send("/none\r")
	c.wait("unknown command /none")
	if got := c.since(before); !strings.Contains(got, "\x1b[31m✗") {
		t.Errorf("not the terminal's own red: %q", got)
	}
	r.quit(c)
}

// TestLineWithoutColours: with NO_COLOR the terminal is not asked for anything.
func TestLineWithoutColours(t *testing.T) {
	t.Parallel()
	c := newConsole(t, 80, 24)
	r := c.start(t.Context(), Options{Session: newFakeSession(), Asker: NewAsker(), Env: testEnv(map[string]string{"NO_COLOR": "1"})})
	c.wait(">")
	r.quit(c)
	c.see(func(v *vt.Terminal) {
		if len(v.Asked) > 0 || v.Styled {
			t.Errorf("asked for %q, styled %v", v.Asked, v.Styled)
		}
	})
}
