package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// slow is a tool that says when it runs, and ends when it is released.
type slow struct {
	began, release chan struct{}
	ran            int
}

func (s *slow) tool() core.Tool {
	return core.NewTool(core.ToolDefinition{Name: "work"}, nil, func(ctx context.Context, _ *core.Call, _ struct{}) (core.Result, error) {
		s.ran++
		close(s.began)
		select {
		case <-s.release:
			return core.TextResult("did work"), nil
		case <-ctx.Done():
			return core.Result{}, ctx.Err()
		}
	})
}

// begin submits an input, and returns what it comes to.
func (r *rig) begin(t *testing.T, text string) (wait func() (core.Outcome, error)) {
	t.Helper()
	work, err := r.Start(t.Context(), core.TextInput(text))
	if err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		core.Outcome
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		out, err := work()
		done <- outcome{out, err}
	}()
	return func() (core.Outcome, error) {
		o := <-done
		return o.Outcome, o.err
	}
}

func TestDetachWaitsForEffects(t *testing.T) {
	t.Parallel()
	ran := map[string]int{}
	other := counting("other", false, ran)
	tool := &slow{began: make(chan struct{}), release: make(chan struct{})}
	two := coretest.CallTools(model.ToolCall{ID: "1", Name: "work", Args: "{}"}, model.ToolCall{ID: "2", Name: "other", Args: "{}"})
	r := newRig(t, withTools(tool.tool(), other), two)
	wait := r.begin(t, "go")
	<-tool.began
	detached := make(chan error, 1)
	go func() { detached <- r.Detach(t.Context()) }()
	select {
	case <-detached:
		t.Error("it did not wait for the call")
	case <-time.After(50 * time.Millisecond): // enough for one that does not wait
	}
	close(tool.release)
	if err := <-detached; err != nil {
		t.Error(err)
	}
	if out, err := wait(); !errors.Is(err, core.ErrDetached) || !errors.Is(err, core.ErrClosed) || out.Stop != core.StopAborted {
		t.Errorf("outcome %+v, %v", out, err)
	}
	if _, err := r.Submit(t.Context(), core.TextInput("more")); !errors.Is(err, core.ErrClosed) || r.State() != core.StateClosed {
		t.Errorf("the session takes inputs: %v, state %s", err, r.State())
	}
	r.Steer(core.TextInput("too late"))
	log := strings.Join(r.journal.Lines(), "\n")
	if strings.Contains(log, "session_end") || strings.Contains(log, "cancelled") || strings.Contains(log, "too late") || !strings.Contains(log, "did work") {
		t.Errorf("the record is %s", log)
	}
	again := newRig(t, func(c *core.Config) {
		withTools(tool.tool(), other)(c)
		c.Journal = r.journal
		c.OnOpenCall = func(o core.OpenCall) core.OpenCallAction { // of other
			if o.ID != "2" || o.Started {
				t.Errorf("open call %+v", o)
			}
			return core.RerunCall
		}
	}, coretest.Say("Done."))
	if again.State() != core.StateUnfinished {
		t.Errorf("state %s", again.State())
	}
	if out := again.submit(t, ""); out.Text != "Done." || tool.ran != 1 || ran["other"] != 1 {
		t.Errorf("outcome %+v, the tools ran %d and %d times", out, tool.ran, ran["other"])
	}
}

func TestDetachAtOnce(t *testing.T) {
	t.Parallel()
	tool := &slow{began: make(chan struct{})}
	r := newRig(t, withTools(tool.tool()), coretest.CallTools(model.ToolCall{ID: "1", Name: "work", Args: "{}"}))
	wait := r.begin(t, "go")
	<-tool.began
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Detach(over); err != nil {
		t.Error(err)
	}
	if _, err := wait(); !errors.Is(err, core.ErrDetached) {
		t.Error(err)
	}
	again := newRig(t, func(c *core.Config) {
		withTools(tool.tool())(c)
		c.Journal = r.journal
		c.OnOpenCall = func(o core.OpenCall) core.OpenCallAction {
			if !o.Started {
				t.Errorf("open call %+v", o)
			}
			return core.CancelCall
		}
	}, coretest.Say("Done."))
	if out := again.submit(t, ""); out.Text != "Done." || tool.ran != 1 {
		t.Errorf("outcome %+v, the tool ran %d times", out, tool.ran)
	}
}

func TestDetachDuringAnswer(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{})
	r := newRig(t, nil, coretest.Turn{Text: "Half an answer", Hook: func(*model.Request) { close(reached) }, Block: make(chan struct{})})
	wait := r.begin(t, "go")
	<-reached
	if err := r.Detach(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := wait(); !errors.Is(err, core.ErrDetached) {
		t.Error(err)
	}
	if log := strings.Join(r.journal.Lines(), "\n"); strings.Contains(log, "Half") {
		t.Errorf("the record is %s", log)
	}
	again := newRig(t, func(c *core.Config) { c.Journal = r.journal }, coretest.Say("Done."))
	if out := again.submit(t, ""); out.Text != "Done." {
		t.Errorf("outcome %+v", out)
	}
}

// TestDetachKeepsQuestion: a question that is being asked is parked when the session is
// resumed, and its answer continues the call.
func TestDetachKeepsQuestion(t *testing.T) {
	t.Parallel()
	ran := map[string]int{}
	asked := make(chan struct{})
	r := newRig(t, func(c *core.Config) {
		parked(ran, nil)(c)
		c.Asker = coretest.Asker(func(ctx context.Context, _ core.Question) (core.Answer, error) {
			close(asked)
			<-ctx.Done()
			return core.Answer{}, ctx.Err()
		})
	}, parkingTurns[0])
	wait := r.begin(t, "go")
	<-asked
	if err := r.Detach(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := wait(); !errors.Is(err, core.ErrDetached) {
		t.Error(err)
	}
	again := newRig(t, parked(ran, r.journal), parkingTurns[1])
	if again.State() != core.StateParked || len(again.Pending()) != 1 || ran["a"] != 0 {
		t.Fatalf("state %s, pending %+v, ran %v", again.State(), again.Pending(), ran)
	}
	if out := answerAll(t, again.Session, core.ChoiceOnce); out.Text != "Done." || ran["a"] != 1 || ran["b"] != 1 {
		t.Errorf("outcome %+v, ran %v", out, ran)
	}
}

func TestDetachIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, coretest.Say("Done."))
	r.submit(t, "go")
	if err := errors.Join(r.Detach(t.Context()), r.Close(), r.Detach(t.Context())); err != nil {
		t.Error(err)
	}
	if last := r.events.Drain(t); last[len(last)-1].Body.Type() != "idle" {
		t.Errorf("the last event is %+v", last[len(last)-1])
	}
}

// TestSteeringSurvives: a message that was taken is added by the session that resumes,
// once, wherever the process ends.
func TestSteeringSurvives(t *testing.T) {
	t.Parallel()
	whole := newRig(t, withTools(echo), coretest.CallTools(call("echo", `{"text":"x"}`)), coretest.Say("Read."), coretest.Say("Next."))
	whole.Steer(core.TextInput("look here"))
	whole.Notify("it is noon")
	whole.submit(t, "go")
	whole.Steer(core.TextInput("and here"))
	whole.submit(t, "next")
	whole.ended(t)
	lines := whole.journal.Lines()
	for at := range lines {
		j := &coretest.MemoryJournal{}
		for _, line := range lines[:at+1] {
			var e event.Event
			if err := e.UnmarshalJSON([]byte(line)); err != nil {
				t.Fatal(err)
			}
			if err := j.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		r := newRig(t, func(c *core.Config) {
			withTools(echo)(c)
			c.Journal = j
		}, coretest.Say("Read."), coretest.Say("Read."))
		if _, err := r.Submit(t.Context(), core.Input{}); err != nil {
			t.Errorf("after record %d: %v", at+1, err)
		}
		r.submit(t, "last")
		text := ""
		for _, m := range r.Messages() {
			text += m.Parts.Text() + "\n"
		}
		record := strings.Join(lines[:at+1], "\n")
		for _, said := range []string{"look here", "it is noon", "and here"} {
			want := min(1, strings.Count(record, said))
			if got := strings.Count(text, said); got != want {
				t.Errorf("after record %d, %q is there %d times, and not %d:\n%s", at+1, said, got, want, text)
			}
		}
	}
}
