package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// parker parks every question.
type parker struct{}

func (parker) Ask(context.Context, core.Question) (core.Answer, error) {
	return core.Answer{}, core.ErrParked
}

// effectPolicy asks for all calls that touch something.
type effectPolicy struct{}

func (effectPolicy) Decide(_ context.Context, req core.PermissionRequest) core.Decision {
	if len(req.Accesses) == 0 {
		return core.Decision{Verdict: core.Allow}
	}
	return core.Decision{Verdict: core.Ask}
}

// effects is a tool whose calls need approval, and which counts them by their text.
func effects(ran map[string]int) core.Tool {
	return core.NewTool(core.ToolDefinition{Name: "effect"},
		func(_ context.Context, _ *core.Call, in note) ([]core.Access, error) {
			return core.UnknownAccess(in.Text), nil
		},
		func(_ context.Context, _ *core.Call, in note) (core.Result, error) {
			ran[in.Text]++
			return core.TextResult("did " + in.Text), nil
		})
}

func parked(ran map[string]int, journal *coretest.MemoryJournal) func(*core.Config) {
	return func(c *core.Config) {
		c.Tools, c.Policy, c.Asker = core.StaticTools(echo, effects(ran)), effectPolicy{}, parker{}
		if journal != nil {
			c.Journal = journal
		}
	}
}

var parkingTurns = []coretest.Turn{
	{Calls: []model.ToolCall{call("echo", `{"text":"x"}`), call("effect", `{"text":"a"}`), call("effect", `{"text":"b"}`)}},
	coretest.Say("Done."),
}

// answerAll answers the questions of a parked session until it is not.
func answerAll(t *testing.T, s *core.Session, choice core.Choice) core.Outcome {
	t.Helper()
	for {
		for _, q := range s.Pending() {
			if err := s.Answer(t.Context(), q.QID, core.Answer{Choice: choice}); err != nil {
				t.Fatal(err)
			}
		}
		out, err := s.Submit(t.Context(), core.Input{})
		if err != nil {
			t.Fatal(err)
		}
		if out.Stop != core.StopParked {
			return out
		}
	}
}

func TestParkedQuestions(t *testing.T) {
	ran := map[string]int{}
	r := newRig(t, parked(ran, nil), parkingTurns...)
	out := r.submit(t, "go")
	open := r.Pending()
	if out.Stop != core.StopParked || r.State() != core.StateParked || len(open) != 1 || open[0].Tool != "effect" || len(open[0].Accesses) != 1 || len(ran) != 0 {
		t.Fatalf("outcome %+v, state %s, pending %+v, ran %v", out, r.State(), open, ran)
	}
	if !strings.HasPrefix(open[0].QID, r.ID()+"-") {
		t.Errorf("the ID %q does not name the session", open[0].QID)
	}
	if err := r.Answer(t.Context(), "other", core.Answer{Choice: core.ChoiceOnce}); err == nil {
		t.Error("an unknown question was answered")
	}
	if err := r.Answer(t.Context(), open[0].QID, core.Answer{Choice: core.ChoiceYes}); err == nil || !strings.Contains(err.Error(), "its choices are") {
		t.Errorf("a choice that is not on offer: %v", err)
	}
	if out := r.submit(t, "another input"); out.Stop != core.StopParked || r.Pending()[0].QID != open[0].QID {
		t.Errorf("without an answer: %+v, pending %+v", out, r.Pending())
	}
	if out := answerAll(t, r.Session, core.ChoiceOnce); out.Text != "Done." || ran["a"] != 1 || ran["b"] != 1 {
		t.Errorf("outcome %+v, ran %v", out, ran)
	}
	if err := r.Answer(t.Context(), open[0].QID, core.Answer{Choice: core.ChoiceOnce}); err == nil {
		t.Error("a question was answered twice")
	}
	got := results(r.model.Requests()[1])
	if len(got) != 3 || got[1].Content.Text() != "did a" {
		t.Errorf("the model got %+v", got)
	}
	uses := 0
	for _, e := range r.ended(t) {
		if b, ok := e.Body.(event.ToolUse); ok && b.Name == "effect" {
			uses++
		}
	}
	if uses != 2 {
		t.Errorf("%d tool_use events of two calls", uses)
	}
}

func TestParkedQuestionIsDenied(t *testing.T) {
	ran := map[string]int{}
	r := newRig(t, parked(ran, nil), parkingTurns...)
	r.submit(t, "go")
	if out := answerAll(t, r.Session, core.ChoiceDeny); len(ran) != 0 || len(out.Denied) == 0 {
		t.Errorf("outcome %+v, ran %v", out, ran)
	}
}

// TestParkedSessionSurvivesEveryKill resumes a session with two questions after each of
// its records: every call runs exactly once, or is said to have been interrupted.
func TestParkedSessionSurvivesEveryKill(t *testing.T) {
	whole := newRig(t, parked(map[string]int{}, nil), parkingTurns...)
	whole.submit(t, "go")
	answerAll(t, whole.Session, core.ChoiceOnce)
	whole.ended(t)
	lines := whole.journal.Lines()
	for n := 1; n <= len(lines); n++ {
		journal, asked, done := &coretest.MemoryJournal{}, false, false
		maybe := map[string]bool{} // may have run before
		for e := range whole.journal.Replay(t.Context(), 0) {
			if len(journal.Lines()) == n {
				break
			}
			if err := journal.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.Question:
				asked = true
			case event.Permission:
				if b.Tool == "effect" {
					maybe[b.Accesses[0].Resource] = true
				}
			case event.Message:
				done = b.Content.Text() == "Done."
			}
		}
		ran := map[string]int{}
		r := newRig(t, parked(ran, journal), coretest.Say("Done."), coretest.Say("Done."))
		answerAll(t, r.Session, core.ChoiceOnce)
		for _, name := range []string{"a", "b"} {
			want := 1
			if maybe[name] || !asked || done {
				want = 0
			}
			if ran[name] != want {
				t.Errorf("killed after record %d (%.120s): effect %s ran %d times, want %d", n, lines[n-1], name, ran[name], want)
			}
		}
	}
}

// TestParkedCallsWithoutTheirSecrets: what was not recorded cannot be run again, but its
// question waits for the user.
func TestParkedCallsWithoutTheirSecrets(t *testing.T) {
	for choice, says := range map[core.Choice]string{
		core.ChoiceOnce: "Make it again", core.ChoiceSession: "Make it again", core.ChoiceDeny: "Permission denied: not now.",
	} {
		ran := map[string]int{}
		turns := []coretest.Turn{{Calls: []model.ToolCall{call("effect", `{"text":"use [redacted]"}`), call("effect", `{"text":"b"}`)}}}
		first := newRig(t, parked(ran, nil), turns...)
		first.submit(t, "go")
		asked := first.Pending()
		first.ended(t)
		for range 2 { // opening it, or an input, changes nothing
			again := newRig(t, parked(ran, first.journal))
			if out := again.submit(t, "on"); out.Stop != core.StopParked || again.State() != core.StateParked || len(again.Pending()) != 1 || again.Pending()[0].QID != asked[0].QID {
				t.Fatalf("outcome %+v, state %s, pending %v", out, again.State(), again.Pending())
			}
			again.ended(t)
		}
		answered := newRig(t, parked(ran, first.journal))
		if err := answered.Answer(t.Context(), asked[0].QID, core.Answer{Choice: choice, Reason: "not now"}); err != nil {
			t.Fatal(err)
		}
		answered.ended(t) // the process ends before the answer is used
		last := newRig(t, parked(ran, first.journal), coretest.Say("Done."))
		out := last.submit(t, "")
		if out.Stop != core.StopParked || len(last.Pending()) != 1 || last.Pending()[0].QID == asked[0].QID {
			t.Fatalf("%s: the next call: outcome %+v, pending %v", choice, out, last.Pending())
		}
		if denied := choice == core.ChoiceDeny; (len(out.Denied) == 1) != denied {
			t.Errorf("%s: denied %+v", choice, out.Denied)
		}
		answerAll(t, last.Session, core.ChoiceOnce)
		got := results(last.model.Requests()[0])
		if len(ran) != 1 || ran["b"] != 1 || len(got) != 2 || !strings.Contains(got[0].Content.Text(), says) || got[1].Content.Text() != "did b" {
			t.Errorf("%s: ran %v, the model got %+v", choice, ran, got)
		}
	}
}

// TestQuestionsOfToolsAreNotParked: a running tool cannot wait, and one that may have
// changed something cannot run again.
func TestQuestionsOfToolsAreNotParked(t *testing.T) {
	var got error
	asks := core.NewTool(core.ToolDefinition{Name: "asks"}, nil, func(ctx context.Context, c *core.Call, _ note) (core.Result, error) {
		_, got = c.Ask(ctx, core.Question{Kind: core.QuestionConfirm, Title: "Sure?"})
		return core.TextResult("asked"), nil
	})
	r := newRig(t, func(c *core.Config) { c.Tools, c.Asker = core.StaticTools(asks), parker{} },
		coretest.CallTools(model.ToolCall{Name: "asks", Args: `{"text":""}`}), coretest.Say("Done."))
	if out := r.submit(t, "go"); out.Stop != core.StopDone || !errors.Is(got, core.ErrNonInteractive) || len(r.Pending()) != 0 {
		t.Errorf("outcome %+v, error %v, pending %v", out, got, r.Pending())
	}
}

func TestParkedRequestIsTheSame(t *testing.T) {
	send := func(r *rig) string {
		text, err := json.Marshal(r.model.Requests()[len(r.model.Requests())-1].Messages)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	live := newRig(t, func(c *core.Config) {
		parked(map[string]int{}, nil)(c)
		c.Asker = coretest.Asker(func(context.Context, core.Question) (core.Answer, error) {
			return core.Answer{Choice: core.ChoiceOnce}, nil
		})
	}, parkingTurns...)
	live.submit(t, "go")
	first := newRig(t, parked(map[string]int{}, nil), parkingTurns...)
	first.submit(t, "go")
	first.ended(t)
	second := newRig(t, parked(map[string]int{}, first.journal), coretest.Say("Done."))
	answerAll(t, second.Session, core.ChoiceOnce)
	if a, b := send(live), send(second); a != b {
		t.Errorf("after a park the model gets\n%s\ninstead of\n%s", b, a)
	}
}

// formTool is a read-only tool that asks with a form.
func formTool(ran *int) core.Tool {
	return core.NewTool(core.ToolDefinition{Name: "form", ReadOnly: true}, nil, func(ctx context.Context, c *core.Call, _ struct{}) (core.Result, error) {
		*ran++
		a, err := c.Ask(ctx, core.Question{Kind: core.QuestionForm, Title: "Which?", Schema: json.RawMessage(`{"type":"object"}`)})
		return core.TextResult("chosen: " + string(a.Values)), err
	})
}

// TestToolQuestionSurvivesEveryKill: the question of a tool stays open when the process ends, and its
// answer is used by the tool when it runs again, also if it came before a kill.
func TestToolQuestionSurvivesEveryKill(t *testing.T) {
	turns := []coretest.Turn{coretest.CallTools(call("form", "{}")), coretest.Say("Done.")}
	ran := 0
	with := func(j core.Journal, asker core.Asker) func(*core.Config) {
		return func(c *core.Config) {
			c.Tools, c.Asker = core.StaticTools(formTool(&ran)), asker
			if j != nil {
				c.Journal = j
			}
		}
	}
	whole := newRig(t, with(nil, parker{}), turns...)
	if out := whole.submit(t, "go"); out.Stop != core.StopParked || len(whole.Pending()) != 1 {
		t.Fatalf("outcome %+v, pending %+v", out, whole.Pending())
	}
	values := core.Answer{Choice: core.ChoiceYes, Values: json.RawMessage(`{"answer":"blue"}`)}
	if err := whole.Answer(t.Context(), whole.Pending()[0].QID, values); err != nil {
		t.Fatal(err)
	}
	if out := whole.submit(t, ""); out.Text != "Done." {
		t.Fatalf("outcome %+v", out)
	}
	whole.ended(t)
	lines := whole.journal.Lines()
	for n := range lines {
		j, asked, answered, done := &coretest.MemoryJournal{}, 0, false, false
		for e := range whole.journal.Replay(t.Context(), 0) {
			if len(j.Lines()) > n {
				break
			}
			if err := j.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			switch e.Body.(type) {
			case event.Answer:
				answered = true
			case event.ToolResult:
				done = true
			case event.Message:
				asked++
			}
		}
		if asked == 0 {
			continue
		}
		questions := 0
		asker := coretest.Asker(func(context.Context, core.Question) (core.Answer, error) {
			questions++
			return values, nil
		})
		ran = 0
		again := newRig(t, with(j, asker), turns[1])
		for _, q := range again.Pending() {
			if again.State() != core.StateParked {
				t.Errorf("after record %d: state %s with the question %s", n+1, again.State(), q.QID)
			}
		}
		again.submit(t, "")
		want := map[bool]int{true: 0, false: 1}
		if questions != want[answered] || ran != want[done] {
			t.Errorf("after record %d (%s): asked %d times, ran %d times", n+1, lines[n], questions, ran)
		}
		if got := results(again.model.Requests()[0]); asked == 1 && (len(got) != 1 || got[0].Content.Text() != `chosen: {"answer":"blue"}`) {
			t.Errorf("after record %d: the model got %+v", n+1, got)
		}
	}
}
