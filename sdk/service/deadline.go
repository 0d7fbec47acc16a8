package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/host"
)

const (
	answerWithin = 24 * time.Hour
	expireEvery  = time.Minute // sessions whose questions are overdue are looked for
)

// Choices returns how a question can be answered.
func Choices(q event.Question) []string {
	if len(q.Choices) == 0 { // a form
		return []string{string(core.ChoiceYes), string(core.ChoiceNo)}
	}
	return q.Choices
}

// denial is the choice that refuses.
func denial(q event.Question) core.Choice {
	if slices.Contains(q.Choices, string(core.ChoiceDeny)) {
		return core.ChoiceDeny
	}
	return core.ChoiceNo
}

// expire denies the questions that nobody answered in time. All workers do it: of the
// answers to one question, which have the same ID, one counts.
func (w *Worker) expire(ctx context.Context) {
	every := min(expireEvery, w.opts.AnswerWithin)
	for ctx.Err() == nil {
		if err := w.deny(ctx); err != nil && ctx.Err() == nil {
			w.opts.Logger.WarnContext(ctx, "sessions with overdue questions cannot be listed", "error", err)
		}
		pause(ctx, every)
	}
}

func (w *Worker) deny(ctx context.Context) error {
	overdue, err := w.opts.Engine.List(ctx, Filter{State: State(core.StateParked), Due: time.Now()})
	if err != nil {
		return err
	}
	for _, s := range overdue {
		if sent, err := w.opts.Engine.Commands(ctx, s.Tenant, s.ID); err != nil || len(sent) > 0 {
			continue // it is being answered, or next time
		}
		for _, q := range s.Questions {
			id := uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "%s/%s/%s/%d", s.Tenant, s.ID, q.QID, s.Deadline.UnixNano())).String()
			c := Command{ID: id, Command: host.Command{
				Type: typeAnswer, Question: q.QID, Choice: denial(q), Reason: fmt.Sprintf("Nobody answered in time, until %s.", s.Deadline.Format(time.RFC3339)),
			}}
			if err := w.opts.Engine.Send(ctx, s.Tenant, s.ID, c); err != nil {
				return err
			}
		}
	}
	return nil
}
