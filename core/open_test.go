package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// counting is a tool that counts its calls.
func counting(name string, readOnly bool, ran map[string]int) core.Tool {
	return core.NewTool(core.ToolDefinition{Name: name, ReadOnly: readOnly}, nil, func(context.Context, *core.Call, struct{}) (core.Result, error) {
		ran[name]++
		return core.TextResult("did " + name), nil
	})
}

// after cuts a journal behind the n-th record of a type, as if the process had died.
func after(t *testing.T, j *coretest.MemoryJournal, kind string, n int) {
	t.Helper()
	for i, line := range j.Lines() {
		if strings.Contains(line, `"type":"`+kind+`"`) {
			if n--; n == 0 {
				j.Truncate(i + 1)
				return
			}
		}
	}
	t.Fatalf("no %s in %v", kind, j.Lines())
}

// without drops the records of a type, as if they had not been written yet.
func without(t *testing.T, j *coretest.MemoryJournal, kind string) {
	t.Helper()
	lines := j.Lines()
	j.Truncate(0)
	for _, line := range lines {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Body.Type() == kind {
			continue
		}
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenCalls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		cut          string // the last record
		decide       core.OpenCallAction
		byHost       bool
		answer       core.Choice
		reads, works int    // calls after the resume
		says         string // to the model, about work
	}{
		{name: "default", cut: "permission", reads: 1, says: "what it did is unknown"},
		{name: "default, not started", cut: "message", reads: 1, says: "not run, as the agent ended"},
		{name: "rerun", cut: "permission", byHost: true, decide: core.RerunCall, reads: 1, works: 1, says: "did work"},
		{name: "cancel", cut: "permission", byHost: true, decide: core.CancelCall, says: "what it did is unknown"},
		{name: "ask, yes", cut: "permission", byHost: true, decide: core.AskCall, answer: core.ChoiceYes, reads: 1, works: 1, says: "did work"},
		{name: "ask, no", cut: "permission", byHost: true, decide: core.AskCall, answer: core.ChoiceNo, says: "did not let it run again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ran := map[string]int{}
			setup := withTools(counting("read", true, ran), counting("work", false, ran))
			r := newRig(t, setup, coretest.CallTools(model.ToolCall{ID: "1", Name: "read", Args: "{}"}, model.ToolCall{ID: "2", Name: "work", Args: "{}"}), coretest.Say("Done."))
			r.submit(t, "go")
			r.ended(t)
			if tt.cut == "permission" { // of both: neither has a result
				without(t, r.journal, "tool_result")
				after(t, r.journal, "permission", 2)
			} else {
				after(t, r.journal, "message", 1)
			}
			clear(ran)
			again := newRig(t, func(c *core.Config) {
				setup(c)
				c.Journal = r.journal
				c.Asker = coretest.Asker(func(_ context.Context, q core.Question) (core.Answer, error) {
					return core.Answer{Choice: tt.answer}, nil
				})
				if tt.byHost {
					c.OnOpenCall = func(o core.OpenCall) core.OpenCallAction {
						if !o.Started || o.ReadOnly != (o.Name == "read") {
							t.Errorf("open call %+v", o)
						}
						return tt.decide
					}
				}
			}, coretest.Say("Done."))
			if again.State() != core.StateUnfinished {
				t.Errorf("state %s", again.State())
			}
			again.submit(t, "")
			got := results(again.model.Requests()[0])
			if ran["read"] != tt.reads || ran["work"] != tt.works || len(got) != 2 || !strings.Contains(got[1].Content.Text(), tt.says) {
				t.Errorf("ran %v, the model got %+v", ran, got)
			}
			if again.State() != core.StateIdle {
				t.Errorf("at the end: state %s", again.State())
			}
		})
	}
}

func TestAnAnsweredInputIsKnownAsAnswered(t *testing.T) {
	t.Parallel()
	in := core.TextInput("go")
	in.ID = "input-1"
	r := newRig(t, nil, coretest.Say("Done."))
	if _, err := r.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	r.ended(t)
	after(t, r.journal, "message", 1) // killed before it was idle
	again := newRig(t, func(c *core.Config) { c.Journal = r.journal })
	if again.State() != core.StateIdle {
		t.Errorf("state %s", again.State())
	}
	for _, in := range []core.Input{{}, in} {
		out, err := again.Submit(t.Context(), in)
		if err != nil || out.Stop != core.StopDone || out.Text != "Done." || len(again.model.Requests()) != 0 || len(again.Messages()) != 2 {
			t.Errorf("again: %+v, %v, %d requests", out, err, len(again.model.Requests()))
		}
	}
}

func TestAnInputIsTakenOnce(t *testing.T) {
	t.Parallel()
	in := core.TextInput("go")
	in.ID = "input-1"
	r := newRig(t, nil, coretest.Turn{Err: &model.Error{Code: model.CodeRateLimited, Message: "slow down"}}, coretest.Say("Done."))
	if _, err := r.Submit(t.Context(), in); err == nil {
		t.Fatal("the model's error is missing")
	}
	if out, err := r.Submit(t.Context(), in); err != nil || out.Text != "Done." || len(r.Messages()) != 2 {
		t.Errorf("again: %+v, %v, messages %v", out, err, r.Messages())
	}
}

func TestKilledBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, coretest.Say("Done."))
	r.submit(t, "go")
	r.ended(t)
	after(t, r.journal, "user", 1)
	again := newRig(t, func(c *core.Config) { c.Journal = r.journal }, coretest.Say("Here."))
	if again.State() != core.StateUnfinished {
		t.Errorf("state %s", again.State())
	}
	if out := again.submit(t, ""); out.Text != "Here." || again.State() != core.StateIdle {
		t.Errorf("continued: %+v, state %s", out, again.State())
	}
}

// fenced is a journal that another process takes over.
type fenced struct {
	coretest.MemoryJournal
	lost atomic.Bool
}

func (j *fenced) Append(ctx context.Context, e event.Event) error {
	if j.lost.Load() {
		return core.ErrFenced
	}
	return j.MemoryJournal.Append(ctx, e)
}

func TestAFencedSessionEnds(t *testing.T) {
	t.Parallel()
	for _, optional := range []bool{false, true} {
		ran := map[string]int{}
		j := &fenced{}
		lose := core.NewTool(core.ToolDefinition{Name: "lose", ReadOnly: true}, nil, func(context.Context, *core.Call, struct{}) (core.Result, error) {
			j.lost.Store(true)
			return core.TextResult("lost"), nil
		})
		hang := core.NewTool(core.ToolDefinition{Name: "hang", ReadOnly: true}, nil, func(ctx context.Context, _ *core.Call, _ struct{}) (core.Result, error) {
			<-ctx.Done() // as the result of the other call is not recorded
			return core.Result{}, ctx.Err()
		})
		r := newRig(t, func(c *core.Config) {
			c.Tools, c.Journal, c.JournalOptional = core.StaticTools(lose, hang, counting("work", false, ran)), j, optional
		}, coretest.CallTools(model.ToolCall{ID: "1", Name: "lose", Args: "{}"}, model.ToolCall{ID: "2", Name: "hang", Args: "{}"}, model.ToolCall{ID: "3", Name: "work", Args: "{}"}))
		out, err := r.Submit(t.Context(), core.TextInput("go"))
		if out.Stop != core.StopAborted || !errors.Is(err, core.ErrFenced) || r.State() != core.StateClosed || len(ran) != 0 {
			t.Errorf("optional %t: %+v, error %v, state %s, ran %v", optional, out, err, r.State(), ran)
		}
		if _, err := r.Submit(t.Context(), core.TextInput("go")); !errors.Is(err, core.ErrClosed) {
			t.Errorf("another input: %v", err)
		}
	}
}

// TestAFenceBetweenInputs: an idle session learns of it with the next input.
func TestAFenceBetweenInputs(t *testing.T) {
	t.Parallel()
	j := &fenced{}
	r := newRig(t, func(c *core.Config) { c.Journal = j }, coretest.Say("Done."))
	r.submit(t, "go")
	j.lost.Store(true)
	r.Note(t.Context(), event.Host{Name: "example.com/ticket", Data: json.RawMessage(`{"id":1}`)})
	if _, err := r.Submit(t.Context(), core.TextInput("go")); !errors.Is(err, core.ErrFenced) || r.State() != core.StateClosed {
		t.Errorf("error %v, state %s", err, r.State())
	}
}
