package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-009c0928/agent/core"
)

// typist types on a screen that shows a question, with a clock of its own.
type typist struct {
	*lineScreen
	t     *testing.T
	clock time.Time
}

func newTypist(t *testing.T) *typist {
	h := newHost(t.Context(), Options{Session: newFakeSession(), Asker: NewAsker()})
	h.post = func(any) {}
	t.Cleanup(func() {
		h.Asker.bind(false)
		h.close()
	})
	u := &typist{t: t, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), lineScreen: &lineScreen{
		driver: newDriver(h, newScene(painter{}, 80, "/w")), screen: &screen{out: &safeBuffer{}, width: 80, height: 24}, editor: newEditor(painter{}, nil), at: -1,
	}}
	u.scene.now = func() time.Time { return u.clock }
	u.Asker.bind(true)
	return u
}

// asks shows a question, and returns where its answer comes.
func (u *typist) asks(q core.Question) <-chan core.Answer {
	u.t.Helper()
	answers := make(chan core.Answer, 1)
	go func() {
		a, _ := u.Asker.Ask(context.Background(), q)
		answers <- a
	}()
	eventually(u.t, func() string { return "no question" }, func() bool { return u.Asker.front() != nil && u.Asker.front().Title == q.Title })
	u.Update(askMsg{})
	return answers
}

// types types text, with a time between two letters.
func (u *typist) types(text string, between time.Duration) {
	for _, r := range text {
		switch r {
		case '\r':
			u.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		default:
			u.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
		u.clock = u.clock.Add(between)
	}
}

func (u *typist) screenText() string {
	rows, _, _ := u.region()
	return strings.Join(rows, "\n")
}

func permission(title string) core.Question {
	return core.Question{Kind: core.QuestionPermission, Title: title, Choices: []core.Choice{core.ChoiceOnce, core.ChoiceSession, core.ChoiceDeny}}
}

// TestSlips: what the user types when a question appears does not answer it.
func TestSlips(t *testing.T) {
	t.Parallel()
	t.Run("a message goes on", func(t *testing.T) {
		u := newTypist(t)
		u.types("please sa", 100*time.Millisecond)
		answers := u.asks(permission("Run it?"))
		u.types("y yes", 299*time.Millisecond)
		has(t, u.screenText(), "? Run it?", "pause typing to answer", "(unsent: please say yes")
		u.clock = u.clock.Add(pause)
		u.types("y", 0)
		if a := <-answers; a.Choice != core.ChoiceOnce {
			t.Errorf("after a pause, y answered %q", a.Choice)
		}
		if got := u.editor.value(); got != "please say yes" {
			t.Errorf("the message is %q", got)
		}
	})
	t.Run("text is a comment", func(t *testing.T) {
		u := newTypist(t)
		answers := u.asks(permission("Run it?"))
		u.types("use yarn\r", 120*time.Millisecond)
		has(t, u.screenText(), "Reason?", "> use yarn", "pause typing, then Enter")
		u.clock = u.clock.Add(pause)
		u.types("\r", 0)
		if a := <-answers; a.Choice != core.ChoiceDeny || a.Reason != "use yarn" {
			t.Errorf("the answer is %+v", a)
		}
	})
	t.Run("a key that is held", func(t *testing.T) {
		u := newTypist(t)
		first := u.asks(permission("First?"))
		u.types("y", 30*time.Millisecond)
		if a := <-first; a.Choice != core.ChoiceOnce {
			t.Fatalf("y answered %q", a.Choice)
		}
		second := u.asks(permission("Second?"))
		u.types("yyyyyyyyyyyyyyyyyyyy", 30*time.Millisecond)
		has(t, u.screenText(), "? Second?", "press a key")
		u.clock = u.clock.Add(pause)
		u.types("n", 0)
		if a := <-second; a.Choice != core.ChoiceDeny {
			t.Errorf("the second question was answered %q", a.Choice)
		}
	})
	t.Run("a question without a comment", func(t *testing.T) {
		u := newTypist(t)
		answers := u.asks(core.Question{Kind: core.QuestionConfirm, Title: "Sure?", Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo}})
		u.types("keyn", 50*time.Millisecond)
		has(t, u.screenText(), "? Sure?", "(unsent: keyn")
		u.clock = u.clock.Add(pause)
		u.types("n", 0)
		if a := <-answers; a.Choice != core.ChoiceNo {
			t.Errorf("the answer is %q", a.Choice)
		}
	})
}

// TestSuggestionsArriveLate: a choice among the files for a word stays when those
// for the longer word arrive.
func TestSuggestionsArriveLate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ late, want string }{
		{"@main.go @main_test.go", "› @main_test.go"},
		{"@main_test.go @main.go", "› @main_test.go"},
		{"@mail.go", "› @mail.go"},
	} {
		u := newTypist(t)
		u.Complete = func(string) []string { return nil }
		u.types("see @m", pause)
		u.Update(suggestMsg{"@m", []string{"@main.go", "@main_test.go", "@mail.go"}})
		u.types("a", pause)
		u.Update(tea.KeyPressMsg{Code: tea.KeyDown})
		has(t, u.screenText(), "> see @ma", "› @main_test.go")
		u.Update(suggestMsg{"@ma", strings.Fields(tt.late)})
		has(t, u.screenText(), tt.want)
		u.Update(tea.KeyPressMsg{Code: tea.KeyTab})
		has(t, u.screenText(), "> see "+strings.TrimPrefix(tt.want, "› "))
	}
}
