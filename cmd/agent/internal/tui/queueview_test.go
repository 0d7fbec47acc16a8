package tui

import (
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core"
)

func queueOf(u *typist, messages ...string) {
	for _, m := range messages {
		u.Queue.ready(u.Queue.add(m), core.TextInput(m))
	}
}

func TestQueueGolden(t *testing.T) {
	t.Parallel()
	goldenScreens(t, "queue", func(u *typist) {
		queueOf(u, "first\nof two lines", "second, which is so long that it does not fit on one line of a usual terminal, whatever its size may be: it is cut off at the end of the line, and never wraps onto the next one, not even at 200 columns", "third")
		u.openQueue()
		u.frame()
		u.press("down")
	})
	goldenScreens(t, "queue-waiting", func(u *typist) { queueOf(u, "first", "second") })
}

// TestQueueKeys moves, drops and edits queued messages.
func TestQueueKeys(t *testing.T) {
	t.Parallel()
	u := newTypist(t)
	queueOf(u, "one", "two", "three", "four")
	u.openQueue()
	u.frame()
	u.press("down", "K", "down", "J", "J")
	if got := u.Queue.labels(); !slices.Equal(got, []string{"two", "three", "four", "one"}) {
		t.Errorf("moved: %q", got)
	}
	u.press("up", "d")
	if got := u.Queue.labels(); !slices.Equal(got, []string{"two", "three", "one"}) {
		t.Errorf("dropped: %q", got)
	}
	u.press("enter")
	if got := u.Queue.labels(); u.pager != nil || u.editor.value() != "one" || !slices.Equal(got, []string{"two", "three"}) {
		t.Errorf("edited: the box has %q, the queue %q", u.editor.value(), got)
	}
	u.openQueue()
	u.press("enter")
	has(t, u.frameText(), "the input box has a text")
	for args, want := range map[string]string{"up": "use /queue", "drop 9": `no message "9" is queued`, "fly 1": "use /queue"} {
		if _, err := u.cmdQueue(t.Context(), args); err == nil {
			t.Errorf("/queue %s did not fail", args)
		} else {
			has(t, err.Error(), want)
		}
	}
	list := u.Queue.labels()
	if _, err := u.cmdQueue(t.Context(), "down 1"); err != nil || !slices.Equal(u.Queue.labels(), []string{list[1], list[0]}) {
		t.Errorf("/queue down 1: %q, %v", u.Queue.labels(), err)
	}
	if r, err := u.cmdQueue(t.Context(), "edit 2"); err != nil || r.Draft != list[0] {
		t.Errorf("/queue edit 2: %+v, %v", r, err)
	}
}
