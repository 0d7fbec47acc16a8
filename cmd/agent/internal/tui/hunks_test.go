package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/preview"
)

// twoHunks is a change of two places and a new file.
func twoHunks() []preview.Change {
	var before strings.Builder
	for i := range 30 {
		fmt.Fprintf(&before, "\tline %d := \"value\"\n", i)
	}
	after := strings.NewReplacer("line 2 ", "two ", "line 25 ", "twenty-five ").Replace(before.String())
	return []preview.Change{
		{Path: "/w/main.go", At: "/w/main.go", Before: []byte(before.String()), After: []byte(after)},
		{Path: "/w/new.txt", At: "/w/new.txt", After: []byte("new\n")},
	}
}

// reviewed asks a question with a review.
func (u *typist) reviewed(r *Review) <-chan core.Answer {
	u.Asker.Review = func(context.Context, core.Question) *Review { return r }
	return u.asks(core.Question{
		Kind: core.QuestionPermission, Title: "Write main.go and new.txt?", Detail: "mode default asks before writing files",
		Choices: []core.Choice{core.ChoiceOnce, core.ChoiceSession, core.ChoiceDeny}, Offers: []core.Offer{{Rules: []string{"edit_file(./main.go)"}}},
	})
}

func TestHunksGolden(t *testing.T) {
	t.Parallel()
	goldenScreens(t, "hunks", func(u *typist) {
		u.reviewed(&Review{Changes: twoHunks(), Amend: func([]preview.Change) {}})
		u.press("h")
		u.frame()
		u.press("down", "space")
	})
	goldenScreens(t, "question-review", func(u *typist) {
		u.reviewed(&Review{Changes: twoHunks(), Amend: func([]preview.Change) {}})
	})
	goldenScreens(t, "question-comment", func(u *typist) {
		u.asks(permission("Run `make install`?"))
		u.press("r", "n", "o")
	})
}

// TestHunksKeys takes one of three hunks.
func TestHunksKeys(t *testing.T) {
	t.Parallel()
	u := newTypist(t)
	var amended []preview.Change
	answers := u.reviewed(&Review{Changes: twoHunks(), Amend: func(c []preview.Change) { amended = c }})
	has(t, u.frameText(), "h take some of the changes")
	u.press("h")
	has(t, u.frameText(), "[x] hunk 1 of 2", "[x] hunk 2 of 2")
	u.press("a", "enter")
	has(t, u.frameText(), "[ ] hunk 1 of 2", "nothing is taken")
	u.press("down", " ", "enter")
	if u.pager != nil {
		t.Fatal("the choice is open")
	}
	text := u.frameText()
	has(t, text, "twenty-five", "+1 −1")
	lacks(t, text, "+    two ", "new file")
	u.press("y")
	if a := <-answers; a.Choice != core.ChoiceOnce {
		t.Errorf("answered %q", a.Choice)
	}
	if len(amended) != 2 || strings.Contains(string(amended[0].After), "two := ") || !strings.Contains(string(amended[0].After), "twenty-five :=") || amended[1].After != nil {
		t.Errorf("the call was changed to %q", amended)
	}
}
