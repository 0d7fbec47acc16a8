package display

import (
	"fmt"
	"time"

	"github.com/seed-009c0928/agent/core/event"
)

// Wait follows what a session waits for: the beginning of an answer, more of it,
// or the next attempt. The zero value waits for nothing.
type Wait struct {
	limits event.LLMStart
	busy   bool
	begun  bool      // a part of the answer has arrived
	since  time.Time // of the request, or of the last part that is shown
	until  time.Time // of the next attempt
}

// Apply handles the next event of the session.
func (w *Wait) Apply(e event.Event) {
	switch b := e.Body.(type) {
	case event.LLMStart:
		*w = Wait{limits: b, busy: true, since: e.Time}
	case event.MessageStart, event.MessageDelta, event.ReasoningDelta:
		w.begun, w.since = true, e.Time
	case event.LLMRetry:
		w.until = e.Time.Add(time.Duration(b.WaitMS) * time.Millisecond)
		w.begun, w.since = false, w.until
	case event.LLMEnd, event.Idle, event.SessionEnd:
		w.busy = false
	}
}

// Left returns the time until the next attempt, 0 if there is none to wait for.
func (w *Wait) Left(now time.Time) time.Duration {
	if !w.busy {
		return 0
	}
	return max(w.until.Sub(now), 0)
}

// Silent returns the time since the request, or since the last part of the answer.
func (w *Wait) Silent(now time.Time) time.Duration { return now.Sub(w.since) }

// Text describes a wait that takes longer than usual, with its limit, or returns
// "".
func (w *Wait) Text(now time.Time) string {
	const usual = 5 * time.Second
	silent := now.Sub(w.since).Truncate(time.Second)
	switch left := w.Left(now); {
	case !w.busy:
		return ""
	case left > 0:
		return "retrying in " + Duration((left + time.Second - 1).Truncate(time.Second))
	case silent < usual:
		return ""
	case w.begun:
		return "no new text for " + Duration(silent) + limit("time-out without data", w.limits.IdleMS)
	}
	return "waiting for the model for " + Duration(silent) + limit("time-out", w.limits.FirstByteMS)
}

func limit(name string, ms int64) string {
	if ms == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", name, Duration(time.Duration(ms)*time.Millisecond))
}
