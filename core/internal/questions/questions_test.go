package questions_test

import (
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/questions"
)

func TestAnswersAreUsedOnce(t *testing.T) {
	t.Parallel()
	var s questions.Set
	ask := func(id string) event.Question {
		return event.Question{QID: id, Kind: "permission", Title: "Run?", Accesses: []event.Access{{Scope: "shell-run", Resource: "make"}}}
	}
	s.Add("", event.Message{})
	s.Add("c1", event.ToolUse{})
	s.Add("c1", ask("q1"))
	s.Add("", ask("q0")) // about no call
	if open := s.Open(); len(open) != 1 || open[0].QID != "q1" || !s.Parked() || !s.Shown("c1") || s.Started("c1") {
		t.Fatalf("open %+v", open)
	}
	if id, answer := s.Take("c1", ask("")); id != "q1" || answer != nil {
		t.Errorf("an open question: %q, %v", id, answer)
	}
	s.Add("", event.Answer{QID: "q1", Choice: "once"})
	other := ask("")
	other.Accesses = []event.Access{{Scope: "shell-run", Resource: "rm"}}
	if _, answer := s.Take("c1", other); answer != nil {
		t.Error("the answer was used for another access")
	}
	if id, answer := s.Take("c1", ask("")); id != "q1" || answer == nil || answer.Choice != "once" {
		t.Errorf("answered: %q, %v", id, answer)
	}
	if id, answer := s.Take("c1", ask("")); id != "" || answer != nil {
		t.Errorf("the answer was used twice: %q, %v", id, answer)
	}
	s.Add("c1", event.Permission{Decision: "allow"})
	if open := s.Open(); len(open) != 0 || !s.Started("c1") {
		t.Errorf("open %v", open)
	}
	s.Add("", event.Message{})
	if s.Parked() || s.Started("c1") {
		t.Error("the next answer has the state of the one before")
	}
}

func TestWithdrawnQuestionsAreClosed(t *testing.T) {
	t.Parallel()
	var s questions.Set
	s.Add("", event.Message{})
	s.Add("c1", event.Question{QID: "q1"})
	s.Add("", event.Answer{QID: "q1", Withdrawn: true})
	s.Add("c2", event.Question{QID: "q2"})
	s.Add("c2", event.ToolResult{})
	if open := s.Open(); len(open) != 0 {
		t.Errorf("open %v", open)
	}
}
