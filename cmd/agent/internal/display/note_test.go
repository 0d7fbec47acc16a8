package display

import (
	"testing"

	"github.com/seed-009c0928/agent/core/event"
)

func TestNoteOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body event.Body
		want string // "" = no line
	}{
		{event.LLMRetry{Message: "overloaded", WaitMS: 1500, Attempt: 1, Max: 3}, "! overloaded; retrying in 1.5 s (1 of 3)"},
		{event.LLMRetry{Message: "openai takes over"}, "! openai takes over"},
		{event.TurnLimit{Limit: "maxRounds", Max: 50}, "! limit reached: maxRounds = 50"},
		{event.TokenLimit{Limit: "maxCostUsd", Max: 1.5, Used: 1.62}, "! limit reached: maxCostUsd = 1.5 (used: 1.62)"},
		{event.LoopDetection{}, "! loop detected: the model was warned"},
		{event.Warning{Message: "a\x1b[2Jb"}, "! ab"},
		{event.Cancelled{Reason: "Ctrl-C"}, "! cancelled: Ctrl-C"},
		{event.Cancelled{Reason: "Ctrl-C", Abort: true}, "! aborted: Ctrl-C"},
		{event.Error{Message: "no connection", Code: "NETWORK_ERROR"}, "✗ no connection (NETWORK_ERROR)"},
		{event.Error{Message: "no connection\n  What you can do:\n    agent demo\n", Code: "NETWORK_ERROR"}, "✗ no connection (NETWORK_ERROR)\n  What you can do:\n    agent demo"},
		{event.SubagentStart{Name: "review", Input: "look\nat it"}, "▸ review: look at it"},
		{event.SubagentEnd{Name: "review", Outcome: "error", Error: "too long"}, "◂ review: error, 0 tokens: too long"},
		{event.SkillActivated{Name: "debug", By: "phrase", Trigger: "test fails"}, "— skill debug: phrase test fails"},
		{event.SkillsListed{Names: []string{"a", "b"}, Left: 3}, "— 2 skills listed, 3 left out"},
		{event.SkillsListed{Names: []string{"a"}}, ""},
		{event.Compacted{Before: 20_000, After: 1500}, "— conversation compacted: 20.0k → 1.5k tokens"},
		{event.Rewound{Input: 12}, "— conversation rewound to before input 12"},
		{event.Idle{}, ""},
	} {
		n, ok := NoteOf(tt.body)
		if ok != (tt.want != "") || ok && n.String() != tt.want {
			t.Errorf("%T: %t, %q, want %q", tt.body, ok, n, tt.want)
		}
	}
}

func TestAnswerTo(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]event.Answer{
		"Sure? → no: not\\nnow":                              {Choice: "deny", Reason: "not\\nnow"},
		"Sure? → withdrawn":                                  {Withdrawn: true},
		"Sure? → no answer":                                  {},
		"Sure? → yes, always: shell(make), shell(go test *)": {Choice: "always", Rules: []string{"shell(make)", "shell(go test *)"}},
	} {
		if got := AnswerTo("Sure?", a); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
