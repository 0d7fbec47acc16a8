package tui

import (
	"strings"

	"github.com/seed-009c0928/agent/core/event"
)

// Transcript formats a session's events as plain lines, like the interactive
// session on a plain terminal does. It is not safe for concurrent use.
type Transcript struct{ scene *scene }

// NewTranscript returns a transcript of a session in dir, to which paths are
// made relative. A verbose one shows details of every tool result.
func NewTranscript(dir string, verbose bool) *Transcript {
	s := newScene(painter{}, 0, dir)
	s.verbose = verbose
	return &Transcript{s}
}

// Lines returns the lines for the next event: a tool call, a plan, an answered
// question, or a note such as a warning. Messages have none, since their text
// is the caller's to place.
func (t *Transcript) Lines(e event.Event) []string {
	switch e.Body.(type) {
	case event.MessageDelta, event.Message, event.ReasoningDelta, event.Steering:
		return nil
	}
	t.scene.kind = "" // no empty lines
	t.scene.apply(e)
	t.scene.announce(e.Call)
	return t.scene.take()
}

// announce prints the start of a call once, for screens that do not redraw.
func (s *scene) announce(id string) {
	if c := s.call(id); c != nil && !c.announced {
		c.announced = true
		s.add("tool", strings.TrimSpace("● "+c.name+" "+c.args))
	}
}
