package core_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// TestRewind: after a rewind the model gets the conversation before the input and the
// next one, in this session as in a resumed one.
func TestRewind(t *testing.T) {
	turns := []coretest.Turn{
		{Calls: []model.ToolCall{call("echo", `{"text":"x"}`)}},
		coretest.Say("It is x."), coretest.Say("It is y."), coretest.Say("It is z."),
	}
	r := newRig(t, withTools(echo), turns...)
	r.submit(t, "first")
	before := r.Messages()
	r.submit(t, "second")
	inputs := r.Inputs()
	if len(inputs) != 2 {
		t.Fatalf("inputs %v", inputs)
	}
	if err := r.Rewind(t.Context(), inputs[1]); err != nil {
		t.Fatal(err)
	}
	if got := r.Messages(); len(got) != len(before) || !slices.Equal(r.Inputs(), inputs[:1]) {
		t.Errorf("%d messages, want %d; inputs %v", len(got), len(before), r.Inputs())
	}
	r.submit(t, "third")
	live := r.model.Requests()[3].Messages
	if text := sent(model.Request{Messages: live}); strings.Contains(text, "second") || !strings.Contains(text, "first") || !strings.HasSuffix(strings.TrimSpace(text), "third") {
		t.Errorf("the model got %s", text)
	}
	if err := r.Rewind(t.Context(), inputs[1]); err == nil || !strings.Contains(err.Error(), "no input") {
		t.Errorf("a rewind to an input that was taken back: %v", err)
	}
	r.ended(t)

	again := newRig(t, func(c *core.Config) { withTools(echo)(c); c.Journal = r.journal }, coretest.Say("Hello."))
	again.submit(t, "fourth")
	resumed, _ := json.Marshal(again.model.Requests()[0].Messages)
	was, _ := json.Marshal(live)
	if !strings.HasPrefix(string(resumed), strings.TrimSuffix(string(was), "]")) {
		t.Errorf("the resumed session sends\n%s\nwhich does not begin with\n%s", resumed, was)
	}
	if err := again.Rewind(t.Context(), inputs[0]); err != nil || len(again.Messages()) != 0 {
		t.Errorf("a rewind of a resumed session to its start: %v, %d messages", err, len(again.Messages()))
	}
}

func TestRewindAcrossACompaction(t *testing.T) {
	r := newRig(t, nil, coretest.Say(strings.Repeat("word ", 100)), coretest.Say(strings.Repeat("word ", 100)), coretest.Say("notes"), coretest.Say("Hello."))
	r.submit(t, "first")
	before, _ := json.Marshal(r.Messages())
	r.submit(t, "second")
	r.SetProfile(core.Profile{ContextWindow: 100})
	if err := r.Compact(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := r.Rewind(t.Context(), r.Inputs()[1]); err != nil {
		t.Fatal(err)
	}
	if after, _ := json.Marshal(r.Messages()); string(after) != string(before) {
		t.Errorf("messages %s, want %s", after, before)
	}
}

func TestRewindIsRefused(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, nil, coretest.Say("Hello."), coretest.Turn{Text: "Later.", Hook: func(*model.Request) { close(started) }, Block: release})
	r.submit(t, "first")
	done := make(chan error, 1)
	go func() {
		_, err := r.Submit(t.Context(), core.TextInput("second"))
		done <- err
	}()
	<-started
	if err := r.Rewind(t.Context(), r.Inputs()[0]); !errors.Is(err, core.ErrBusy) {
		t.Errorf("while the session works: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r.ended(t)
	if err := r.Rewind(t.Context(), 2); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a closed session: %v", err)
	}
}

// TestRewindOfAFailingJournal: what is not recorded is recorded before the next input.
func TestRewindOfAFailingJournal(t *testing.T) {
	journal := &coretest.MemoryJournal{}
	r := newRig(t, func(c *core.Config) { c.Journal = journal }, coretest.Say("Hello."), coretest.Say("Again."))
	r.submit(t, "first")
	journal.FailAfter(0)
	if err := r.Rewind(t.Context(), r.Inputs()[0]); !errors.As(err, new(*core.JournalError)) {
		t.Errorf("error %v", err)
	}
	journal.FailAfter(-1)
	r.submit(t, "second")
	kinds := map[string]int{}
	for e := range journal.Replay(t.Context(), 0) {
		kinds[e.Body.Type()]++
	}
	if kinds[event.Rewound{}.Type()] != 1 || len(r.Inputs()) != 1 {
		t.Errorf("records %v, inputs %v", kinds, r.Inputs())
	}
}
