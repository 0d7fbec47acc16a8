//go:build unix

package chat

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/coretest"
)

// shown waits for news and returns what the status line shows.
func shown(t *testing.T, s *statusLine, input string) (string, bool) {
	t.Helper()
	s.show(input)
	ctx, cancel := context.WithTimeout(t.Context(), coretest.Patience)
	defer cancel()
	select {
	case <-s.changed:
	case <-ctx.Done():
		t.Fatal("the status line does not change")
	}
	return s.show(input)
}

// TestStatusLine: the user's command gets the input; the first line of its output is
// shown without what could control the terminal.
func TestStatusLine(t *testing.T) {
	got := filepath.Join(t.TempDir(), "input")
	s := newStatusLine(t.Context(), "cat >"+got+`; printf '\033[31mred\033[0m\ttext\033]0;x\007\nsecond line\n'`, func(context.Context) bool { return true })
	defer s.close()
	if text, dirty := s.show("{}"); text != "" || dirty {
		t.Errorf("at first: %q, %v", text, dirty)
	}
	text, dirty := shown(t, s, "{}")
	if strings.ContainsAny(text, "\x1b\a\n\t") || !strings.Contains(text, "red") || !strings.Contains(text, "text") || strings.Contains(text, "second") || !dirty {
		t.Errorf("%q, %v", text, dirty)
	}
	if data, err := os.ReadFile(got); err != nil || string(data) != "{}" || !json.Valid(data) {
		t.Errorf("the command got %q, %v", data, err)
	}
}

// TestStatusLineFails: a command that fails says so, and one that does not end is
// ended with the session.
func TestStatusLineFails(t *testing.T) {
	s := newStatusLine(t.Context(), "exit 3", nil)
	if text, _ := shown(t, s, ""); !strings.Contains(text, "terminal.statusLine: exit status 3") {
		t.Errorf("%q", text)
	}
	s.close()
	s = newStatusLine(t.Context(), "sleep 1000", nil)
	s.show("")
	s.close()
}
