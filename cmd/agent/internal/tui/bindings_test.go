package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestActionKeys: the key of each action is one that the screen knows.
func TestActionKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range actions() {
		if k, err := keyNamed(a.key); err != nil || k.String() != a.key {
			t.Errorf("%s: %s, %v", a.name, k, err)
		}
		if seen[a.name] {
			t.Errorf("two actions %s", a.name)
		}
		seen[a.name] = true
	}
}

func TestParseKeysErrors(t *testing.T) {
	for _, tt := range []struct{ key, to, want string }{
		{"x", "undo", `key "x": a character is typed: add ctrl or alt`},
		{"ctlr+g", "undo", `unknown modifier "ctlr": expected ctrl, alt or shift`},
		{"ctrl+foo", "undo", `unknown key "foo": expected a character, or one of backspace, delete,`},
		{"ctrl+x", "editer", `unknown action "editer"; did you mean "editor"?`},
		{"ctrl+x", "qqqqqqq", `expected a /command, none, or one of newline,`},
		{"ctrl+x", "/", `unknown action "/"`},
		{"ctrl+c", "undo", "ctrl+c cannot be bound"},
		{"Enter", "undo", "enter cannot be bound"},
		{"ctrl+i", "undo", "terminals do not tell it from tab"},
		{"ctrl+shift+x", "undo", "leave it out"},
	} {
		if _, err := ParseKeys(map[string]string{tt.key: tt.to}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s: %v, want %s", tt.key, tt.to, err, tt.want)
		}
	}
	if _, err := ParseKeys(map[string]string{"alt+ctrl+x": "undo", "ctrl+alt+x": "yank"}); err == nil || !strings.Contains(err.Error(), "bound twice") {
		t.Errorf("bound twice: %v", err)
	}
}

// TestBindings uses bound keys: for an action, a command, and nothing.
func TestBindings(t *testing.T) {
	u := newTypist(t)
	keys, err := ParseKeys(map[string]string{"f5": "/keys", "ctrl+x": "undo", "alt+q": "yank", "ctrl+w": "none"})
	if err != nil {
		t.Fatal(err)
	}
	u.Keys = keys
	hit := func(k tea.KeyPressMsg) { u.Update(k) }
	for _, r := range "one two" {
		hit(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	hit(tea.KeyPressMsg{Code: 'w', Mod: tea.ModCtrl}) // does nothing
	if got := u.editor.text(); got != "one two" {
		t.Fatalf("%q", got)
	}
	hit(tea.KeyPressMsg{Code: tea.KeyBackspace, Mod: tea.ModAlt})
	hit(tea.KeyPressMsg{Code: 'q', Mod: tea.ModAlt})
	hit(tea.KeyPressMsg{Code: 'q', Mod: tea.ModAlt})
	if got := u.editor.text(); got != "one twotwo" {
		t.Errorf("after two yanks: %q", got)
	}
	hit(tea.KeyPressMsg{Code: 'x', Mod: tea.ModCtrl})
	if got := u.editor.text(); got != "one two" {
		t.Errorf("after the undo: %q", got)
	}
	result, err := u.cmdKeys(t.Context(), "")
	for _, want := range []string{"| undo | ctrl+_, ctrl+x |", "| delete-word-back |  |", "| `/keys` | f5 |", "| `none` | ctrl+w |"} {
		if !strings.Contains(result.Text, want) {
			t.Errorf("%q is missing in\n%s", want, result.Text)
		}
	}
	if err != nil {
		t.Error(err)
	}
	hit(tea.KeyPressMsg{Code: tea.KeyF5})
	if len(u.jobs) != 1 {
		t.Errorf("%d commands run", len(u.jobs))
	}
}
