package hosttest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// family has another model for the subagent whose task is "look".
type family struct {
	model.Provider
	child model.Provider
}

// Stream implements [model.Provider].
func (f family) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	if req.Messages[0].Parts.Text() == "look" {
		return f.child.Stream(ctx, req)
	}
	return f.Provider.Stream(ctx, req)
}

// subagents checks that each driver gets all events of a subagent, also one that joins
// while it works.
func subagents(t *testing.T, open Open) {
	release := make(chan struct{})
	works, started := blocked(release)
	works.Text = "Found."
	spawns := coretest.CallTools(model.ToolCall{Name: "spawn_agent", Args: `{"task":"look"}`})
	connect := open(t, family{coretest.Model(spawns, coretest.Say("Done.")), coretest.Model(works)})
	first := connect()
	reads := make(chan [2][]string, 2)
	go func() { reads <- readAll(t, first) }()
	do(t, first, input("run", "go", ""))
	<-started
	second := connect()
	go func() { reads <- readAll(t, second) }()
	close(release)
	for range 2 {
		got := <-reads
		if len(got[0]) != 1 || got[0][0] != "Done." || len(got[1]) != 1 || got[1][0] != "Found." {
			t.Errorf("answers of the session %q, of the subagent %q", got[0], got[1])
		}
	}
}

// readAll returns the answers of the session and of its subagents, and checks the order of
// the events.
func readAll(t *testing.T, d Driver) (answers [2][]string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := map[string]event.Seq{}
	done, ended := false, false
	for e, err := range d.AllEvents(ctx, 0) {
		if err != nil {
			t.Error(err)
			return answers
		}
		if e.Parent != "" && last[e.Session] == 0 && e.Seq != 1 {
			t.Errorf("the first event of a subagent is %d (%s)", e.Seq, e.Body.Type())
		}
		if e.Seq <= last[e.Session] {
			t.Errorf("event %d (%s) follows event %d", e.Seq, e.Body.Type(), last[e.Session])
		}
		last[e.Session] = e.Seq
		at := 0
		if e.Parent != "" {
			at = 1
		}
		switch b := e.Body.(type) {
		case event.Message:
			if text := b.Content.Text(); text != "" {
				answers[at] = append(answers[at], text)
			}
		case event.Idle:
			ended = ended || at == 1
		case event.Result:
			done = true
		}
		if done && ended {
			return answers
		}
	}
	t.Error("the events ended")
	return answers
}
