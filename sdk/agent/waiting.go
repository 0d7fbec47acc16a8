package agent

import (
	"slices"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// waiting are the inputs of a session log that wait for their turn.
type waiting []core.Input

// see takes an event of the session. Those of a fork's original are not waiting in it.
func (w *waiting) see(session string, e event.Event) {
	if e.Session != session {
		return
	}
	switch b := e.Body.(type) {
	case event.Queued:
		if b.Run != "" {
			*w = append(*w, core.Input{Content: b.Content, Run: b.Run})
		}
	case event.User:
		w.drop(b.Run)
	case event.Result:
		w.drop(b.Run)
	}
}

func (w *waiting) drop(run string) {
	*w = slices.DeleteFunc(*w, func(in core.Input) bool { return in.Run == run })
}

// Waiting returns the inputs of [core.Session.Enqueue] that had not been submitted when
// the process of a resumed session ended.
func (s *Session) Waiting() []core.Input { return slices.Clone(s.waiting) }
