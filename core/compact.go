package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/answers"
	"github.com/seed-009c0928/agent/core/internal/compaction"
	"github.com/seed-009c0928/agent/core/model"
)

// ErrShort is the error of [Session.Compact] when there is nothing to gain.
var ErrShort = errors.New("the conversation is too short to compact")

// Compact has the model summarise the conversation, and continues with the
// summary and the last messages; the session log keeps everything. Focus is what
// the user wants the summary to cover, and may be empty. The error is ErrBusy,
// ErrClosed, ErrShort, or the model's; then nothing has changed.
func (s *Session) Compact(ctx context.Context, focus string) error {
	r, err := s.begin(ctx)
	if err != nil {
		return err
	}
	err = s.compact(r, focus)
	s.finish(r, StopDone, nil)
	return err
}

// Messages returns the conversation as the next request sends it. It may be
// called at any time; the messages are shared and must not be changed.
func (s *Session) Messages() []model.Message { return s.conversation.View().Messages }

// Inputs returns the numbers of the inputs that Rewind can take back, oldest first.
// Those that summaries replaced long ago are not among them. It may be called at any
// time.
func (s *Session) Inputs() []event.Seq { return s.conversation.View().Inputs() }

// Rewind takes the conversation back to what it was before an input, of which it
// gets the number, that of its [event.User]. Files stay as they are, as do costs and
// subagents. The error is ErrBusy, ErrClosed, that of an unknown input, or a
// *JournalError: then the session is rewound, but not yet recorded.
func (s *Session) Rewind(ctx context.Context, input event.Seq) error {
	r, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.finish(r, StopDone, nil)
	if !s.conversation.Rewind(input) {
		return fmt.Errorf("the conversation has no input %d to rewind to; its inputs are %v", input, s.Inputs())
	}
	s.emit(r.ctx, "", event.Rewound{Input: input})
	if r.soft.Err() != nil {
		return context.Cause(r.soft)
	}
	return nil
}

// full reports whether it is time to compact.
func (s *Session) full() bool {
	limit := s.current().limits.CompactAt * float64(s.current().profile.ContextWindow)
	return limit > 0 && float64(s.conversation.Context) > limit
}

// tryCompact compacts at most once per input; a failure is only a warning.
func (s *Session) tryCompact(r *run) bool {
	if r.compacted {
		return false
	}
	r.compacted = true
	if err := s.compact(r, ""); err != nil && r.soft.Err() == nil {
		s.Warn(r.ctx, "COMPACT", err.Error())
		return false
	}
	return true
}

func (s *Session) compact(r *run, focus string) error {
	set, c := s.current(), &s.conversation
	c.Bound(set.profile.ContextWindow)
	window := cmp.Or(set.profile.ContextWindow, 32_000)
	split := c.Split(window/10, window/4)
	if len(split.Dropped) < 2 {
		return ErrShort
	}
	req, name := compaction.Request(set.model, split.Dropped, window/2, focus), set.provider.Info().Name
	s.emit(r.ctx, "", event.LLMStart{Provider: name, Model: req.Model, Server: set.provider.Info().Endpoint, Purpose: "compaction", Messages: len(req.Messages)})
	if err := r.soft.Err(); err != nil {
		return err
	}
	start := s.cfg.Clock()
	resp, err := model.Complete(r.soft, set.provider, req)
	end := event.LLMEnd{Provider: name, Model: req.Model, LatencyMS: s.cfg.Clock().Sub(start).Milliseconds()}
	if err == nil && resp.Parts.Text() == "" { // but perhaps calls
		err = errors.New("the model returned no text")
	}
	if err != nil {
		end.Error, end.Code = err.Error(), model.AsError(err).Code
		s.emit(r.ctx, "", end)
		return fmt.Errorf("the conversation could not be summarised: %w", err)
	}
	end.Usage, end.Stop = resp.Usage, resp.Stop
	end.Provider, end.Model = answers.By(resp, name, req.Model)
	s.emit(r.ctx, "", end)
	done := event.Compacted{Content: split.Summary(resp.Parts.Text(), window/10), Before: c.Context, Kept: split.Kept, Summarised: len(split.Dropped), Provider: end.Provider, Model: end.Model, Usage: resp.Usage}
	c.Compact(done)
	c.Context += len(c.Prompt.Text) / 4
	done.After = c.Context
	s.emit(r.ctx, "", done)
	s.spend(r, end.Provider, end.Model, resp.Usage)
	return nil
}
