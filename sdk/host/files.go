package host

import (
	"context"

	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Log returns the path of the session log, or "" without one.
func (s *Session) Log() string { return s.session.Log() }

// Messages returns the conversation, as the model gets it.
func (s *Session) Messages() []model.Message { return s.session.Messages() }

// Inputs returns the numbers of the inputs to which a rewind can go back.
func (s *Session) Inputs() []event.Seq { return s.session.Inputs() }

// History returns the inputs, and what each changed in files.
func (s *Session) History(ctx context.Context) (changes.History, error) {
	return s.session.History(ctx)
}

// Undo takes back what was changed in files; see [agent.Session.Undo]. It is refused
// while an input is processed, unless it only tells.
func (s *Session) Undo(ctx context.Context, o agent.UndoOptions) (changes.Reverted, error) {
	if !o.DryRun && s.Now().Run != "" {
		return changes.Reverted{}, fail(CodeBusy, "an input is processed: cancel it, or wait for its result")
	}
	return s.session.Undo(ctx, o)
}
