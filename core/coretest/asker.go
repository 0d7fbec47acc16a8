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

// Person is the far side of an Asker under test: the keyboard and the screen.
type Person interface {
	// Shown waits until a question is on display that it has not told of
	// before, and returns its title.
	Shown(ctx context.Context) (title string, err error)
	// Answer answers the question on display. Empty means to dismiss it
	// without an answer. A choice that is not on offer is given as far as the
	// display lets a person; an error says that it does not.
	Answer(choice core.Choice) error
}

// TestAsker checks an Asker against the contract of [core.Asker]. The factory
// makes a new one each time, with its person; what it starts it ends with the
// test.
func TestAsker(t *testing.T, factory func(t *testing.T) (core.Asker, Person)) {
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
			asker, person := factory(t)
			c.test(t, &askerSuite{ctx, asker, person})
		})
	}
}

type askerSuite struct {
	ctx    context.Context // ends a test in which nothing moves any more
	asker  core.Asker
	person Person
}

type askerReply struct {
	answer core.Answer
	err    error
}

// ask puts a question from a goroutine, which ends with it.
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
	title, err := s.person.Shown(s.ctx)
	if err != nil {
		t.Fatalf("no question came on display: %v", err)
	}
	return title
}

func (s *askerSuite) pick(t *testing.T, c core.Choice) {
	t.Helper()
	if err := s.person.Answer(c); err != nil {
		t.Fatalf("the person cannot answer %q: %v", c, err)
	}
}

func permissionQuestion(n int) core.Question {
	return core.Question{
		ID: fmt.Sprintf("q%d", n), Kind: core.QuestionPermission, Tool: "shell", Title: fmt.Sprintf("Allow number %d?", n),
		Choices: []core.Choice{core.ChoiceOnce, core.ChoiceSession, core.ChoiceDeny},
	}
}

// allows reports whether a choice lets something happen.
func allows(c core.Choice) bool {
	return slices.Contains([]core.Choice{core.ChoiceOnce, core.ChoiceSession, core.ChoiceAlways, core.ChoiceYes}, c)
}

// askerChoices picks every choice of two kinds of questions, one after the
// other: no answer may leak into the next question.
func askerChoices(t *testing.T, s *askerSuite) {
	confirm := core.Question{Kind: core.QuestionConfirm, Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo}}
	n := 0
	for _, q := range []core.Question{permissionQuestion(0), confirm} {
		for _, want := range q.Choices {
			n++
			q.ID, q.Title = fmt.Sprintf("q%d", n), fmt.Sprintf("Question number %d?", n)
			reply := s.ask(s.ctx, q)
			if title := s.shown(t); title != q.Title {
				t.Fatalf("on display is %q, expected %q", title, q.Title)
			}
			s.pick(t, want)
			if r := s.reply(t, reply); r.err != nil || r.answer.Choice != want {
				t.Errorf("%s of %v: the person picked %q, Ask returned %q and error %v", q.Kind, q.Choices, want, r.answer.Choice, r.err)
			}
		}
	}
}

func askerDismissed(t *testing.T, s *askerSuite) {
	reply := s.ask(s.ctx, permissionQuestion(1))
	s.shown(t)
	s.pick(t, "")
	if r := s.reply(t, reply); r.err == nil && allows(r.answer.Choice) {
		t.Errorf("a dismissed question came to %q, expected a denial", r.answer.Choice)
	}
}

func askerNotOffered(t *testing.T, s *askerSuite) {
	q := permissionQuestion(1)
	q.Choices = []core.Choice{core.ChoiceOnce, core.ChoiceDeny}
	reply := s.ask(s.ctx, q)
	s.shown(t)
	if err := s.person.Answer(core.ChoiceAlways); err == nil {
		select {
		case r := <-reply: // it took it for an answer: then for a denial
			if r.err == nil && allows(r.answer.Choice) {
				t.Errorf("a choice that was not on offer came to %q, expected a denial", r.answer.Choice)
			}
			return
		case <-time.After(20 * time.Millisecond): // it asks again, or is about to deny
		}
	}
	_ = s.person.Answer(core.ChoiceDeny) // fails when it denied in the meantime
	if r := s.reply(t, reply); r.err == nil && allows(r.answer.Choice) {
		t.Errorf("a choice that was not on offer, and then deny, came to %q", r.answer.Choice)
	}
}

// askerOneAtATime asks several questions at once and answers what is on
// display by its title: each must get its own answer.
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
			t.Fatalf("on display is %q, which nobody asked", title)
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
		t.Errorf("a withdrawn question came to %q and error %v, expected no answer and the error of its context", r.answer.Choice, r.err)
	}
	// The next question is a new one.
	reply = s.ask(s.ctx, permissionQuestion(2))
	if title := s.shown(t); title != permissionQuestion(2).Title {
		t.Fatalf("after a withdrawn question %q is on display, expected the next", title)
	}
	s.pick(t, core.ChoiceDeny)
	if r := s.reply(t, reply); r.err != nil || r.answer.Choice != core.ChoiceDeny {
		t.Errorf("after a withdrawn question, deny came to %q and error %v", r.answer.Choice, r.err)
	}
}

func askerCancelledBefore(t *testing.T, s *askerSuite) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if r := s.reply(t, s.ask(ctx, permissionQuestion(1))); !errors.Is(r.err, context.Canceled) {
		t.Errorf("a question with a context that is done came to %q and error %v, expected the error of its context", r.answer.Choice, r.err)
	}
}
