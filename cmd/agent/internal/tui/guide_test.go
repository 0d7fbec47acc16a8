package tui

import (
	"context"
	"errors"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestGuideInterrupted: Ctrl-C at a list ends the guide, not only the list.
func TestGuideInterrupted(t *testing.T) {
	u := newTypist(t)
	posted := make(chan any, 8)
	u.post = func(msg any) { posted <- msg }
	u.steps = func(ctx context.Context, _ func(string)) error {
		_, err := u.Asker.Choose(ctx, List{Title: "Which?", Items: []Item{{Label: "one"}}})
		return err
	}
	u.guide()
	eventually(t, func() string { return "no list" }, func() bool { return u.Asker.front() != nil })
	u.Update(askMsg{})
	u.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	for !u.quitting {
		u.Update(<-posted)
	}
	if !errors.Is(u.err, context.Canceled) {
		t.Errorf("it ended with %v", u.err)
	}
}
