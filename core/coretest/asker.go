package coretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// User simulates the user of an Asker under test.
type User interface {
	// Shown waits until a new question is displayed and returns its title.
	Shown(ctx context.Context) (title string, err error)
	// Answer answers the displayed question; an empty choice dismisses it. For
	// a choice that is not offered, it does what a user could do, or returns an
	// error if there is no way.
	Answer(choice core.Choice) error
}

// TestAsker checks an Asker against the contract of [core.Asker]. The factory
// returns a new one each time, with its user, and stops what it started when the
// test ends.
func TestAsker(t *testing.T, factory func(t *testing.T) (core.Asker, User)) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(t *testing.T, a *askerSuite)
	}{
		{"choices", askerChoices},
		{"dismissed", askerDismissed},
		{"not on offer", askerNotOffered},
		{"one at a time", askerOneAtATime},
		{"withdrawn", askerWithdrawn},
		{"withdrawn before it is asked", askerCancelledBefore},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), Patience)
			defer cancel()
			asker, user := factory(t)
			c.test(t, &askerSuite{ctx, asker, user})
		})
	}
}

type askerSuite struct {
	ctx   context.Context // ends a test that hangs
	asker core.Asker
	user  User
}

type askerReply struct {
	answer core.Answer
	err    error
}

// ask asks a question in a goroutine.
func (s *askerSuite) ask(ctx context.Context, q core.Question) <-chan askerReply {
	reply := make(chan askerReply, 1)
	go func() {
		a, err := s.asker.Ask(ctx, q)
		reply <- askerReply{a, err}
	}()
	return reply
}

func (s *askerSuite) reply(t *testing.T, from <-chan askerReply) askerReply {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case r := <-from:
		return r
	case <-timer.C:
		t.Fatalf("Ask did not return within %s", Patience)
		return askerReply{}
	}
}

func (s *askerSuite) shown(t *testing.T) string {
	t.Helper()
	title, err := s.user.Shown(s.ctx)
	if err != nil {
		t.Fatalf("no question was displayed: %v", err)
	}
	return title
}

func (s *askerSuite) pick(t *testing.T, c core.Choice) {
	t.Helper()
	if err := s.user.Answer(c); err != nil {
		t.Fatalf("the user cannot answer %q: %v", c, err)
	}
}

func permissionQuestion(n int) core.Question {
	return core.Question{
		ID: fmt.Sprintf("q%d", n), Kind: core.QuestionPermission, Tool: "shell", Title: fmt.Sprintf("Allow number %d?", n),
		Choices: []core.Choice{core.ChoiceOnce, core.ChoiceSession, core.ChoiceDeny},
	}
}

// allows reports whether a choice approves.
func allows(c core.Choice) bool {
	return slices.Contains([]core.Choice{core.ChoiceOnce, core.ChoiceSession, core.ChoiceAlways, core.ChoiceYes}, c)
}

// askerChoices picks every choice of two kinds of questions in turn: no answer
// may be used for the next question.
func askerChoices(t *testing.T, s *askerSuite) {
	confirm := core.Question{Kind: core.QuestionConfirm, Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo}}
	n := 0
	for _, q := range []core.Question{permissionQuestion(0), confirm} {
		for _, want := range q.Choices {
			n++
			q.ID, q.Title = fmt.Sprintf("q%d", n), fmt.Sprintf("Question number %d?", n)
			reply := s.ask(s.ctx, q)
			if title := s.shown(t); title != q.Title {
				t.Fatalf("%q is displayed, expected %q", title, q.Title)
			}
			s.pick(t, want)
			if r := s.reply(t, reply); r.err != nil || r.answer.Choice != want {
				t.Errorf("%s of %v: the user picked %q, Ask returned %q and error %v", q.Kind, q.Choices, want, r.answer.Choice, r.err)
			}
		}
	}
}

func askerDismissed(t *testing.T, s *askerSuite) {
	reply := s.ask(s.ctx, permissionQuestion(1))
	s.shown(t)
	s.pick(t, "")
	if r := s.reply(t, reply); r.err == nil && allows(r.answer.Choice) {
		t.Errorf("a dismissed question returned %q, expected a denial", r.answer.Choice)
	}
}

func askerNotOffered(t *testing.T, s *askerSuite) {
	q := permissionQuestion(1)
	q.Choices = []core.Choice{core.ChoiceOnce, core.ChoiceDeny}
	reply := s.ask(s.ctx, q)
	s.shown(t)
	if err := s.user.Answer(core.ChoiceAlways); err == nil {
		select {
		case r := <-reply: // it took it as an answer: it must be a denial
			if r.err == nil && allows(r.answer.Choice) {
				t.Errorf("a choice that was not offered returned %q, expected a denial", r.answer.Choice)
			}
			return
		case <-time.After(20 * time.Millisecond): // it asks again, or is about to deny
		}
	}
	_ = s.user.Answer(core.ChoiceDeny) // fails if it has already denied
	if r := s.reply(t, reply); r.err == nil && allows(r.answer.Choice) {
		t.Errorf("a choice that was not offered, and then deny, returned %q", r.answer.Choice)
	}
}

// askerOneAtATime asks several questions at once and answers the displayed one by
// its title: each must get its own answer.
func askerOneAtATime(t *testing.T, s *askerSuite) {
	want := make(map[string]core.Choice)
	replies := make(map[string]<-chan askerReply)
	for n, c := range []core.Choice{core.ChoiceOnce, core.ChoiceSession, core.ChoiceDeny, core.ChoiceOnce} {
		q := permissionQuestion(n)
		want[q.Title] = c
		replies[q.Title] = s.ask(s.ctx, q)
	}
	for range want {
		title := s.shown(t)
		c, ok := want[title]
		if !ok {
			t.Fatalf("%q is displayed, which was not asked", title)
		}
		s.pick(t, c)
		if r := s.reply(t, replies[title]); r.err != nil || r.answer.Choice != c {
			t.Errorf("%q was answered %q, Ask returned %q and error %v", title, c, r.answer.Choice, r.err)
		}
	}
}

func askerWithdrawn(t *testing.T, s *askerSuite) {
	ctx, cancel := context.WithCancel(s.ctx)
	reply := s.ask(ctx, permissionQuestion(1))
	s.shown(t)
	cancel()
	if r := s.reply(t, reply); !errors.Is(r.err, context.Canceled) || r.answer.Choice != "" {
		t.Errorf("a withdrawn question returned %q and error %v, expected no answer and the error of its context", r.answer.Choice, r.err)
	}
	// The next question works as usual.
	reply = s.ask(s.ctx, permissionQuestion(2))
	if title := s.shown(t); title != permissionQuestion(2).Title {
		t.Fatalf("after a withdrawn question %q is displayed, expected the next", title)
	}
	s.pick(t, core.ChoiceDeny)
	if r := s.reply(t, reply); r.err != nil || r.answer.Choice != core.ChoiceDeny {
		t.Errorf("after a withdrawn question, deny returned %q and error %v", r.answer.Choice, r.err)
	}
}

func askerCancelledBefore(t *testing.T, s *askerSuite) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if r := s.reply(t, s.ask(ctx, permissionQuestion(1))); !errors.Is(r.err, context.Canceled) {
		t.Errorf("a question with a cancelled context returned %q and error %v, expected the error of its context", r.answer.Choice, r.err)
	}
}
