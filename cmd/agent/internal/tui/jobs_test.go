package tui

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	sessions "github.com/seed-009c0928/agent/sdk/host"
)

// withWork puts work in the background of a screen.
func withWork(u *typist) *fakeSession {
	s := u.Session.(*fakeSession)
	s.work = []sessions.Work{
		{ID: "job-1", Kind: "command", Title: "npm run dev -- --port 3000 --host 127.0.0.1 --with-a-name that is longer than the screen", State: "running", Running: true, Began: u.clock.Add(-95 * time.Second)},
		{ID: "job-2", Kind: "command", Title: "make test", State: "ended with exit code 2", Began: u.clock.Add(-5 * time.Second)},
		{ID: "a1b2", Kind: "agent", Title: "explore", State: "running", Running: true, Began: u.clock.Add(-7 * time.Second), Tokens: 12345},
	}
	s.output = "ready on port 3000\nGET / 200\n"
	u.countWork()
	return s
}

func TestJobsGolden(t *testing.T) {
	t.Parallel()
	goldenScreens(t, "jobs", func(u *typist) {
		withWork(u)
		u.openJobs()
		u.frame()
		u.press("down")
	})
	goldenScreens(t, "jobs-status", func(u *typist) { withWork(u) })
}

// TestJobsKeys follows a command and an agent, ends one and steers the other.
func TestJobsKeys(t *testing.T) {
	t.Parallel()
	u := newTypist(t)
	s := withWork(u)
	has(t, u.frameText(), "1 job, 1 agent (/jobs)")
	u.openJobs()
	u.frame()
	u.press("enter")
	has(t, u.frameText(), "job-1: npm run dev", "ready on port 3000", "GET / 200")
	s.output += "GET /x 404\n"
	has(t, u.frameText(), "GET /x 404")
	u.press("q", "x", "n", "o", "enter")
	if len(s.commands()) > 0 {
		t.Errorf("a no came to %+v", s.commands())
	}
	u.press("x", "y", "enter", "s")
	has(t, u.frameText(), "a command reads no messages")
	u.press("down", "x")
	has(t, u.frameText(), "it does not run any more")
	u.press("down", "s", "g", "o", "backspace", "i", "enter", "enter")
	s.emit(event.User{Content: model.TextParts("find it")})
	s.emit(event.MessageDelta{Text: "I am looking"})
	eventually(t, u.frameText, func() bool { return slices.Contains(u.frame(), "I am looking") })
	has(t, u.frameText(), "agent explore", "> find it")
	u.press("q", "q")
	if u.pager != nil {
		t.Error("the view is open")
	}
	got := s.commands()
	if len(got) != 2 || got[0].Type != "end" || got[0].Work != "job-1" || got[1].Type != "input" || got[1].Work != "a1b2" || got[1].Own.Content.Text() != "gi" {
		t.Errorf("the commands are %+v", got)
	}
}
