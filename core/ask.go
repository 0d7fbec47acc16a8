package core

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// ErrNonInteractive is the error of a question in a non-interactive session.
var ErrNonInteractive = errors.New("the session is non-interactive: no user can answer")

// ErrParked is returned by an [Asker] for a question that outlives the run: Submit
// returns [StopParked], and the call continues when the question is answered. If a tool
// asks, it must be read-only: it runs again then, and gets the answer. For other
// questions, such as those of subagents, it is ErrNonInteractive.
var ErrParked = errors.New("the question is parked until it is answered")

// Ask puts a question to the user. It makes a session the Asker of its subagents.
func (s *Session) Ask(ctx context.Context, q Question) (Answer, error) { return s.ask(ctx, "", q) }

func (s *Session) ask(ctx context.Context, call string, q Question) (Answer, error) {
	if s.cfg.Asker == nil {
		return Answer{}, ErrNonInteractive
	}
	if q.AgentPath == nil {
		q.AgentPath = s.cfg.AgentPath
	}
	shown := event.Question{
		Kind: string(q.Kind), AgentPath: q.AgentPath, Tool: q.Tool, Accesses: recorded(q.Accesses), Title: q.Title, Detail: q.Detail,
		Offers: q.Offers, Edits: q.Edits, Schema: q.Schema, URL: q.URL,
	}
	for _, c := range q.Choices {
		shown.Choices = append(shown.Choices, string(c))
	}
	var earlier string
	var given *event.Answer
	if call != "" {
		earlier, given = s.conversation.Questions.Take(call, shown)
	}
	if given != nil {
		return q.answer(given), nil
	}
	s.asking.Lock()
	if q.ID = cmp.Or(q.ID, earlier); q.ID == "" {
		q.ID = fmt.Sprintf("%s-%d", s.id, s.rec.Last()+1)
	}
	shown.QID = q.ID
	s.emit(ctx, call, shown)
	s.asking.Unlock()
	answer, err := s.cfg.Asker.Ask(ctx, q)
	if errors.Is(err, ErrParked) {
		if call != "" {
			return Answer{}, err
		}
		err = ErrNonInteractive
	}
	s.answered(ctx, call, &q, answer, err != nil)
	s.conversation.Questions.Take(call, shown)
	return answer, err
}

// answered records an answer.
func (s *Session) answered(ctx context.Context, call string, q *Question, a Answer, withdrawn bool) {
	body := event.Answer{QID: q.ID, Choice: string(a.Choice), Rules: q.accepted(a).Rules, Reason: a.Reason, Args: string(a.Args), Values: a.Values, Withdrawn: withdrawn}
	logged := body
	if len(a.Args) > 0 {
		logged.Args = s.loggedArgs(ctx, s.snapshot(ctx), model.ToolCall{ID: call, Name: q.Tool, Args: body.Args})
	}
	s.emitAs(ctx, call, body, logged)
}

// answer is an answer as it was recorded.
func (q *Question) answer(a *event.Answer) Answer {
	offer := slices.IndexFunc(q.Offers, func(o Offer) bool { return slices.Equal(o.Rules, a.Rules) })
	return Answer{Choice: Choice(a.Choice), Offer: max(offer, 0), Reason: a.Reason, Args: json.RawMessage(a.Args), Values: a.Values}
}

// Pending returns the questions without an answer: those that the [Asker] is being
// asked, or those that a parked session waits for. If the answer to one is recorded,
// Submit continues with it.
func (s *Session) Pending() []event.Question { return s.conversation.Questions.Open() }

// Answer records the answer to a question of [Session.Pending]; then Submit, also of
// a later process, continues where the session stopped.
func (s *Session) Answer(ctx context.Context, id string, a Answer) error {
	if s.State() != StateParked {
		return fmt.Errorf("no question is open: the session is %s", s.State())
	}
	q, err := s.conversation.Questions.Answerable(id, string(a.Choice))
	if err != nil {
		return err
	}
	s.answered(ctx, "", &Question{ID: id, Tool: q.Tool, Offers: q.Offers}, a, false)
	if err := cmp.Or(s.rec.Flush(ctx), s.rec.Sync(ctx)); err != nil {
		return &JournalError{err}
	}
	return nil
}

// recorded returns accesses as they are logged.
func recorded(accesses []Access) (list []event.Access) {
	for _, a := range accesses {
		list = append(list, event.Access{Scope: string(a.Scope), Resource: a.Resource, Recursive: a.Recursive, Argv: a.Argv, Unconfined: a.Unconfined})
	}
	return list
}

// permit asks the user if the decision says so. It returns whether the call may
// run, and if not, what to tell the model.
func (s *Session) permit(ctx context.Context, c *pending) (bool, string) {
	p := event.Permission{Tool: c.call.Name, Decision: "deny", Decider: "policy"}
	allowed, why := c.decision.Verdict == Allow, c.decision.Reason
	if c.decision.Verdict == Ask {
		asked := s.cfg.Clock()
		answer, offer, err := s.askPermission(ctx, c)
		c.waited = s.cfg.Clock().Sub(asked)
		switch {
		case errors.Is(err, errDecided):
			allowed, why = c.decision.Verdict == Allow, c.decision.Reason
		case errors.Is(err, ErrParked):
			c.parked = true
			return false, ""
		case errors.Is(err, ErrNonInteractive):
			p.Decider, why = "headless", c.decision.Reason+"; the session is non-interactive, so nobody can approve it"
		case err != nil:
			p.Decider, why = "person", fmt.Sprintf("nobody answered (%v)", cmp.Or(context.Cause(ctx), err))
		default:
			p.Decider, why, p.Choice, p.Rules = "person", answer.Reason, string(answer.Choice), offer.Rules
			if allowed = s.approve(ctx, c, answer.Choice, offer); allowed && len(answer.Args) > 0 {
				allowed, why = s.amend(ctx, c, answer.Args)
			}
		}
	}
	if p.Rule, p.Source, p.Reason = c.decision.Rule, c.decision.Source, why; allowed {
		p.Decision = "allow"
	}
	p.Accesses = recorded(c.accesses)
	if !c.entry.Tool.Definition().ReadOnly {
		c.ended = s.effects.Enter()
	}
	s.emit(ctx, c.call.ID, p)
	c.permission = p
	return allowed, why
}

// amend gives a call the arguments that the user made of it. It returns whether the
// call may run with them, and if not, why.
func (s *Session) amend(ctx context.Context, c *pending, args json.RawMessage) (bool, string) {
	if event.LacksSecrets(string(args)) {
		return false, "the user changed the arguments, and they were not recorded, because they may contain secrets"
	}
	args, _, err := c.entry.Coerce(args)
	if err == nil {
		c.call.Args, c.tool.Args = string(args), args
		err = s.decide(ctx, c)
	}
	if err != nil {
		return false, fmt.Sprintf("the user changed the arguments to %s, which are wrong: %v", args, err)
	}
	c.notes = append(c.notes, fmt.Sprintf("the user changed the arguments to %s", args))
	return c.decision.Verdict != Deny, c.decision.Reason
}

// errDecided says that a call no longer needs approval: the user has approved it
// with another one.
var errDecided = errors.New("already decided")

// askPermission asks the user about a call, and to confirm what is broad about
// the answer. Of a lasting answer it returns the accepted offer.
func (s *Session) askPermission(ctx context.Context, c *pending) (Answer, Offer, error) {
	q := Question{
		Kind: QuestionPermission, Call: c.tool, Tool: c.call.Name, Accesses: c.accesses, Offers: slices.Clone(c.decision.Offers),
		Title: question(c.call.Name, c.accesses), Detail: cmp.Or(strings.Join(c.decision.Why, "\n"), c.decision.Reason),
	}
	if s.cfg.Explain != nil {
		s.cfg.Explain(ctx, c.entry, c.tool, &q)
	}
	if len(c.decision.Sensitive) > 0 {
		q.Edits = nil // they may contain secrets
	}
	for {
		q.Choices = []Choice{ChoiceOnce}
		if !c.decision.NoSession {
			q.Choices = append(q.Choices, ChoiceSession)
		}
		if s.cfg.SaveRules != nil && len(q.Offers) > 0 {
			q.Choices = append(q.Choices, ChoiceAlways)
		}
		q.Choices = append(q.Choices, ChoiceDeny)
		answer, err := s.askUntilDecided(ctx, c, q)
		if err != nil || !slices.Contains(q.Choices, answer.Choice) {
			return Answer{Choice: ChoiceDeny, Reason: answer.Reason}, Offer{}, err
		}
		offer := q.accepted(answer)
		if offer.Confirm == "" {
			return answer, offer, nil
		}
		sure, err := s.askUntilDecided(ctx, c, Question{
			Kind: QuestionConfirm, Tool: c.call.Name, Choices: []Choice{ChoiceYes, ChoiceNo},
			Title: fmt.Sprintf("Allow %s, %s?", offer.Confirm, map[Choice]string{ChoiceSession: "for this session", ChoiceAlways: "always"}[answer.Choice]), Detail: strings.Join(offer.Rules, "\n"),
		})
		if err != nil || sure.Choice == ChoiceYes {
			return answer, offer, err
		}
		q.Offers = slices.DeleteFunc(q.Offers, func(o Offer) bool { return slices.Equal(o.Rules, offer.Rules) })
	}
}

// accepted returns the offer that an answer accepts; empty if none.
func (q *Question) accepted(a Answer) Offer {
	if len(q.Offers) == 0 || a.Choice != ChoiceSession && a.Choice != ChoiceAlways {
		return Offer{}
	}
	return q.Offers[min(max(a.Offer, 0), len(q.Offers)-1)]
}

// askUntilDecided asks a question about a call. When the answer to another one
// decides on the call, it withdraws the question and returns errDecided.
func (s *Session) askUntilDecided(ctx context.Context, c *pending, q Question) (answer Answer, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer, err = s.ask(ctx, c.call.ID, q)
	}()
	for {
		select {
		case <-done:
			return answer, err
		case <-c.approved:
			if err := s.decide(ctx, c); err == nil && c.decision.Verdict != Ask {
				cancel()
				<-done
				return Answer{}, errDecided
			}
		}
	}
}

// approve carries out the user's choice and reports whether it allows the call.
func (s *Session) approve(ctx context.Context, c *pending, choice Choice, offer Offer) bool {
	switch choice {
	case ChoiceOnce:
		return true
	case ChoiceAlways:
		if err := s.cfg.SaveRules(ctx, offer.Rules); err != nil {
			s.Warn(ctx, "RULE", fmt.Sprintf("the rules %q could not be saved and apply to this session only: %v", offer.Rules, err))
		}
	case ChoiceSession:
	default:
		return false
	}
	s.approved.Add(c.call.Name, offer.Rules, recorded(c.accesses))
	return true
}
