package display_test

import (
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
)

// TestWait follows a call that is slow, retried, and slow again.
func TestWait(t *testing.T) {
	begin := time.Unix(1000, 0)
	var w display.Wait
	for _, step := range []struct {
		at   int // seconds
		body event.Body
		want string
		then int // when it is asked, in seconds
	}{
		{0, event.User{}, "", 1},
		{0, event.LLMStart{FirstByteMS: 120_000, IdleMS: 180_000}, "", 4},
		{0, event.LLMStart{FirstByteMS: 120_000, IdleMS: 180_000}, "waiting for the model for 40 s (time-out: 2 m 00 s)", 40},
		{50, event.LLMRetry{WaitMS: 90_000}, "retrying in 1 m 20 s", 60},
		{50, event.LLMRetry{WaitMS: 90_000}, "waiting for the model for 10 s (time-out: 2 m 00 s)", 150},
		{160, event.MessageStart{}, "", 163},
		{163, event.MessageDelta{Text: "x"}, "no new text for 20 s (time-out without data: 3 m 00 s)", 183},
		{190, event.LLMEnd{}, "", 300},
	} {
		w.Apply(event.Event{Time: begin.Add(time.Duration(step.at) * time.Second), Body: step.body})
		if got := w.Text(begin.Add(time.Duration(step.then) * time.Second)); got != step.want {
			t.Errorf("%s, at %d s: %q, want %q", step.body.Type(), step.then, got, step.want)
		}
	}
}
