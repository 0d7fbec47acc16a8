package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
)

// ErrNonInteractive is the error of a question in a non-interactive session.
var ErrNonInteractive = errors.New("the session is non-interactive: no user can answer")

// RuleSaver is a policy that can save rules. If a session's policy is one, its
// permission requests may offer [ChoiceAlways].
type RuleSaver interface {
	// SaveRule adds an allow rule to the user's settings.
	SaveRule(ctx context.Context, rule string) error
}

// Ask puts a question to the user. One question is open at a time; the others
// wait. It makes a session the Asker of its subagents.
func (s *Session) Ask(ctx context.Context, q Question) (Answer, error) {
	if s.cfg.Asker == nil {
		return Answer{}, ErrNonInteractive
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	if q.ID == "" {
		q.ID = s.cfg.NewID()
	}
	if q.AgentPath == nil {
		q.AgentPath = s.cfg.AgentPath
	}
	shown := event.Question{
		QID: q.ID, Kind: string(q.Kind), AgentPath: q.AgentPath, Title: q.Title, Detail: q.Detail,
		Rule: q.RulePreview, Schema: q.Schema, URL: q.URL,
	}
	for _, c := range q.Choices {
		shown.Choices = append(shown.Choices, string(c))
	}
	s.emit(ctx, "", shown)
	answer, err := s.cfg.Asker.Ask(ctx, q)
	s.emit(ctx, "", event.Answer{QID: q.ID, Choice: string(answer.Choice), Reason: answer.Reason, Withdrawn: err != nil})
	return answer, err
}

// permit asks the user if the decision says so. It returns whether the call may
// run, and if not, what to tell the model.
func (s *Session) permit(ctx context.Context, c *pending) (bool, string) {
	d, decider := c.decision, "policy"
	allowed, why := d.Verdict == Allow, d.Reason
	if d.Verdict == Ask {
		answer, err := s.askPermission(ctx, c)
		switch {
		case errors.Is(err, ErrNonInteractive):
			decider, why = "headless", d.Reason+"; the session is non-interactive, so nobody can approve it"
		case err != nil:
			decider, why = "person", "the question was withdrawn: "+err.Error()
		default:
			decider, why = "person", answer.Reason
			allowed = s.grant(ctx, c, answer.Choice)
		}
	}
	p := event.Permission{Tool: c.call.Name, Decision: "deny", Decider: decider, Rule: d.Rule, Source: d.Source, Reason: why}
	if allowed {
		p.Decision = "allow"
	}
	for _, a := range c.accesses {
		p.Accesses = append(p.Accesses, event.Access{Scope: string(a.Scope), Resource: a.Resource, Recursive: a.Recursive, Argv: a.Argv})
	}
	s.emit(ctx, c.call.ID, p)
	c.permission = p
	return allowed, why
}

func (s *Session) askPermission(ctx context.Context, c *pending) (Answer, error) {
	q := Question{
		Kind: QuestionPermission, Tool: c.call.Name, Accesses: c.accesses, Choices: []Choice{ChoiceOnce},
		Title: question(c.call.Name, c.accesses), Detail: strings.Join(append([]string{c.decision.Reason}, c.decision.Others...), "\n"),
	}
	if !c.decision.NoSession {
		q.Choices = append(q.Choices, ChoiceSession)
	}
	if _, ok := s.current().policy.(RuleSaver); ok && c.decision.Always != "" {
		q.Choices, q.RulePreview = append(q.Choices, ChoiceAlways), c.decision.Always
	}
	q.Choices = append(q.Choices, ChoiceDeny)
	return s.Ask(ctx, q)
}

// grant applies the user's choice and reports whether it approves. Only choices
// that were offered do.
func (s *Session) grant(ctx context.Context, c *pending, choice Choice) bool {
	saver, _ := s.current().policy.(RuleSaver)
	switch {
	case choice == ChoiceOnce:
		return true
	case choice == ChoiceAlways && saver != nil && c.decision.Always != "":
		if err := saver.SaveRule(ctx, c.decision.Always); err != nil {
			s.Warn(ctx, "RULE", fmt.Sprintf("the rule %q could not be saved and applies to this session only: %v", c.decision.Always, err))
		}
	case choice == ChoiceSession && !c.decision.NoSession:
	default:
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range c.accesses {
		s.grants[grantKey(c.call.Name, a)] = struct{}{}
	}
	return true
}

func (s *Session) granted(tool string, a Access) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.grants[grantKey(tool, a)]
	return ok
}

func grantKey(tool string, a Access) string { return tool + "\x00" + a.Key() }
