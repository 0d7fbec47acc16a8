package tui

import (
	"context"
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestDrop: what stands for files becomes mentions, and can be undone; other text and
// what is pasted into a list stays as it is.
func TestDrop(t *testing.T) {
	u := newTypist(t)
	u.Dropped = func(text string) (string, bool) { return "@a.png ", text == "/w/a.png" }
	u.Update(tea.PasteMsg{Content: "/w/a.png"})
	u.Update(tea.PasteMsg{Content: "and"})
	u.Update(tea.PasteMsg{Content: "/w/a.png"})
	if got := u.editor.text(); got != "@a.png and @a.png " {
		t.Errorf("%q", got)
	}
	u.Update(tea.KeyPressMsg{Code: '_', Mod: tea.ModCtrl})
	if got := u.editor.text(); got != "@a.png and" {
		t.Errorf("after the undo: %q", got)
	}
	u.editor.clear()
	u.Update(tea.KeyPressMsg{Code: 'k', Mod: tea.ModCtrl})
	u.Update(tea.PasteMsg{Content: "/w/a.png"})
	if u.palette == nil || u.palette.query != "/w/a.png" || !u.editor.empty() {
		t.Errorf("a list got %q", u.editor.text())
	}
}

// TestPasteImage: Ctrl+V, and the empty paste of some terminals, attach the image in
// the clipboard, or say why not.
func TestPasteImage(t *testing.T) {
	for _, how := range []tea.Msg{tea.KeyPressMsg{Code: 'v', Mod: tea.ModCtrl}, tea.PasteMsg{}} {
		u := newTypist(t)
		posted := make(chan any, 1)
		u.post = func(msg any) { posted <- msg }
		why := error(nil)
		u.PasteImage = func(context.Context) (string, error) { return "@pasted-1.png ", why }
		u.Update(how)
		u.Update(<-posted)
		if got := u.editor.text(); got != "@pasted-1.png " {
			t.Errorf("%T: %q", how, got)
		}
		why = errors.New("the clipboard has no image")
		u.Update(how)
		u.Update(<-posted)
		if got := u.screen.out.(*safeBuffer).String(); u.editor.text() != "@pasted-1.png " || !strings.Contains(got, "Nothing pasted: the clipboard has no image") {
			t.Errorf("%T: %q", how, got)
		}
	}
}
