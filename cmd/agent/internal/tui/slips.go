package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-009c0928/agent/core"
)

// pause is the time without typing before a letter can answer a question, so that a
// question that appears while the user types is not answered by accident.
const pause = 300 * time.Millisecond

// slips tells answers from text that the user was typing when a question came.
type slips struct {
	typed    time.Time       // when the user last typed text
	answered time.Time       // when a letter last answered a question
	letter   string          // that letter
	first    tea.KeyPressMsg // a letter that is no answer, until it is known to begin a text
	stray    bool            // the comment was begun by such text, without a pause since
}

// recent reports whether something happened a moment ago.
func (l *lineScreen) recent(at time.Time) bool {
	return !at.IsZero() && l.scene.now().Sub(at) < pause
}

// waitsForPause reports whether a question waits for the user to stop typing.
func (l *lineScreen) waitsForPause() bool {
	return l.dialog != nil && l.recent(l.slips.typed)
}

// drafting reports whether the user was typing a message when a question came, and
// has not paused.
func (l *lineScreen) drafting() bool {
	return l.dialog != nil && !l.editor.empty() && l.recent(l.slips.typed) && l.typed == nil
}

// typeKey gives a key to a box.
func (l *lineScreen) typeKey(box *editor, msg tea.KeyPressMsg) {
	box.key(msg)
	l.slips.first = tea.KeyPressMsg{}
	if msg.Text != "" {
		l.slips.typed = l.scene.now()
	}
}

// strayKey takes a letter that is no answer: what the user types becomes the comment
// of the question, or the message if there is none. A single letter that is no answer
// is ignored. It reports whether it took the key.
func (l *lineScreen) strayKey(msg tea.KeyPressMsg) bool {
	if msg.Text == "" {
		return false
	}
	known := slices.ContainsFunc(l.dialog.options, func(o option) bool { return msg.Text == string(o.key) })
	switch {
	case l.dialog.Kind == core.QuestionPermission && msg.Text == l.slips.letter && l.recent(l.slips.answered): // held, or pressed twice
		l.slips.answered = l.scene.now()
		return true
	case !l.recent(l.slips.typed) && known:
		return false
	case !l.recent(l.slips.typed):
		l.slips.first, l.slips.typed = msg, l.scene.now()
		return true
	}
	box := l.editor
	if l.dialog.comments() {
		l.slips.stray, l.dialog.explaining = true, true
		l.syncDialog()
		box = l.typed
	}
	if l.slips.first.Text != "" {
		box.key(l.slips.first)
	}
	l.typeKey(box, msg)
	return true
}

// strayEnter reports whether Enter ends a comment that nobody meant to begin.
func (l *lineScreen) strayEnter() bool {
	l.slips.stray = l.slips.stray && l.recent(l.slips.typed)
	return l.slips.stray
}

// comments reports whether an answer can have a comment.
func (d *dialog) comments() bool {
	return slices.ContainsFunc(d.options, func(o option) bool { return o.reason })
}
