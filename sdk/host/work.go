package host

import (
	"context"
	"iter"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Work is a command in the background, or a subagent.
type Work = agent.Work

// Work returns what the session has in the background, and its subagents.
func (s *Session) Work() []Work { return s.session.Work() }

// WorkOutput returns the end of the output of a command in the background.
func (s *Session) WorkOutput(work string) (string, error) { return s.session.WorkOutput(work) }

// WorkEvents yields the events of a subagent; see [Session.Events].
func (s *Session) WorkEvents(ctx context.Context, work string, after event.Seq) iter.Seq2[event.Event, error] {
	return s.session.WorkEvents(ctx, work, after)
}

// steerWork gives an input to a subagent that is working.
func (s *Session) steerWork(work string, in core.Input) error {
	if err := s.session.SteerWork(work, in); err != nil {
		return fail(CodeUnknown, "%v", err)
	}
	return nil
}

// endWork ends a command in the background, or what a subagent is doing.
func (s *Session) endWork(c Command) error {
	if err := s.session.EndWork(c.Work, c.Reason); err != nil {
		return fail(CodeUnknown, "%v", err)
	}
	return nil
}
