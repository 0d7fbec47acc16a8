package tui

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

func conversation() []event.Event {
	return []event.Event{
		{Body: event.User{Content: model.TextParts("Change it.")}},
		{Call: "1", Body: event.ToolUse{Name: "edit_file", Args: `{"file_path":"/w/a.go"}`}},
		{Call: "1", Body: event.ToolResult{Name: "edit_file", Content: model.TextParts("edited"), Meta: map[string]json.RawMessage{"diff": json.RawMessage(quoted("@@ -1,2 +1,2 @@\n context\n-old\n+new\n"))}}},
		{Body: event.Question{QID: "q", Kind: "permission", Title: "Run make?"}},
		{Body: event.Answer{QID: "q", Choice: "once"}},
		{Call: "2", Body: event.ToolUse{Name: "shell", Args: `{"command":"make"}`}},
		{Call: "2", Body: event.ToolResult{Name: "shell", Content: model.TextParts("cannot find x"), IsError: true}},
		{Body: event.Message{Content: model.TextParts("It is **changed**, and does not build.")}},
		{Body: event.User{Content: model.TextParts("Why?")}},
		{Body: event.Message{Content: model.TextParts("Because.")}},
	}
}

func TestTranscriptGolden(t *testing.T) {
	t.Parallel()
	goldenScreens(t, "transcript", func(u *typist) {
		u.openHistory(conversation())
		u.press("e")
	})
	goldenScreens(t, "transcript-folded", func(u *typist) {
		u.openHistory(conversation())
		u.press("f")
	})
}

// TestTranscriptKeys jumps, folds, copies and exports.
func TestTranscriptKeys(t *testing.T) {
	t.Parallel()
	u := newTypist(t)
	u.Dir = t.TempDir()
	u.openHistory(conversation())
	line := func() string { return ansi.Strip(u.pager.lines[max(0, u.pager.cursor)]) }
	for _, step := range []struct{ key, want string }{
		{"u", "> Why?"}, {"U", "> Change it."}, {"c", "✓ edit_file a.go · +1 −1 · 0 ms"}, {"?", "? Run make? → yes, once"}, {"e", "✗ shell make · 0 ms"}, {"C", "✓ edit_file a.go · +1 −1 · 0 ms"},
	} {
		if u.press(step.key); line() != step.want {
			t.Errorf("%s goes to %q, want %q", step.key, line(), step.want)
		}
	}
	u.press("C")
	has(t, u.frameText(), "continued from the end")
	if line() != "✓ edit_file a.go · +1 −1 · 0 ms" {
		t.Errorf("the only change is not found again, but %q", line())
	}
	for _, want := range []string{"It is changed, and does not build.", "✓ edit_file a.go · +1 −1 · 0 ms"} {
		if u.press("/", want[3:4], want[4:5], want[5:6], want[6:7], "enter"); line() != want {
			t.Errorf("the search goes to %q, want %q", line(), want)
		}
	}
	has(t, u.frameText(), "continued from the top")
	out := u.screen.out.(*safeBuffer)
	u.press("e", "y")
	has(t, out.String(), "\x1b]52;c;"+base64.StdEncoding.EncodeToString([]byte("cannot find x"))+"\a")
	has(t, u.frameText(), "copied: cannot find x", "+new")
	u.press("f")
	lacks(t, u.frameText(), "+new")
	u.press("f")
	has(t, u.frameText(), "+new")
	for range 2 {
		u.press("x")
		u.Update(tea.PasteMsg{Content: "a.txt\n"})
		u.press("enter")
		data, err := os.ReadFile(filepath.Join(u.Dir, "a.txt"))
		if err != nil {
			t.Fatal(err)
		}
		has(t, string(data), "> Change it.", "+new", "cannot find x", "It is changed, and does not build.", "> Why?")
	}
	has(t, u.frameText(), "not exported: there is such a file already")
}

// TestTranscriptNarrow: on a narrow screen no row of the pager is wider than it.
func TestTranscriptNarrow(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 20, 10} {
		p := &pager{title: "The conversation so far", hint: "u c e ? jump · f fold · y copy · x export", render: func(int) []string { return []string{"one"} }}
		p.layout(width, 10)
		for _, row := range p.rows(painter{}) {
			if w := ansi.StringWidth(row); w > width {
				t.Errorf("at %d columns, a row has %d: %q", width, w, row)
			}
		}
	}
}
