package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// pause is the time without typing before a letter can answer a question, so that a
// question that appears while the user types is not answered by accident.
const pause = 300 * time.Millisecond

// slips tells answers from text that the user was typing when a question came.
type slips struct {
	typed    time.Time // when the user last typed text
	answered time.Time // when a letter last answered a question
	letter   string    // that letter
	stray    bool      // the comment was begun by such text, without a pause since
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
	if msg.Text != "" {
		l.slips.typed = l.scene.now()
	}
}

// strayKey takes a letter that is no answer: what the user types becomes the comment
// of the question, or the message if there is none. It reports whether it took it.
func (l *lineScreen) strayKey(msg tea.KeyPressMsg) bool {
	if msg.Text == "" {
		return false
	}
	known := false
	for _, o := range l.dialog.options {
		known = known || msg.Text == string(o.key)
	}
	switch {
	case msg.Text == l.slips.letter && l.recent(l.slips.answered): // held, or pressed twice
		l.slips.answered = l.scene.now()
	case known && !l.recent(l.slips.typed):
		return false
	case l.dialog.comments():
		l.slips.stray = true
		l.dialog.explaining = true
		l.syncDialog()
		l.typeKey(l.typed, msg)
	default:
		l.typeKey(l.editor, msg)
	}
	return true
}

// strayEnter reports whether Enter ends a comment that nobody meant to begin.
func (l *lineScreen) strayEnter() bool {
	l.slips.stray = l.slips.stray && l.recent(l.slips.typed)
	return l.slips.stray
}

// comments reports whether an answer can have a comment.
func (d *dialog) comments() bool {
	for _, o := range d.options {
		if o.reason {
			return true
		}
	}
	return false
}
