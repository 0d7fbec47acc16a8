package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed-009c0928/agent/core/event"
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
func (s *Session) Messages() []model.Message {
	if m := s.history.shown.Load(); m != nil {
		return (*m)[:len(*m):len(*m)]
	}
	return nil
}

// full reports whether it is time to compact.
func (s *Session) full() bool {
	limit := s.current().limits.CompactAt * float64(s.current().profile.ContextWindow)
	return limit > 0 && float64(s.history.context) > limit
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
	set, h := s.current(), &s.history
	window := cmp.Or(set.profile.ContextWindow, 32_000)
	kept := compaction.Keep(h.messages, window/10)
	dropped := h.messages[:len(h.messages)-kept]
	if len(dropped) < 2 {
		return ErrShort
	}
	req, name := compaction.Request(set.model, dropped, window/2, focus), set.provider.Info().Name
	s.emit(r.ctx, "", event.LLMStart{Provider: name, Model: req.Model, Messages: len(req.Messages)})
	if err := r.soft.Err(); err != nil {
		return err
	}
	start := s.cfg.Clock()
	resp, err := model.Complete(r.soft, set.provider, req)
	end := event.LLMEnd{Provider: name, Model: req.Model, LatencyMS: s.cfg.Clock().Sub(start).Milliseconds()}
	if err == nil && resp.Parts.Text() == "" {
		err = errors.New("the model returned no text")
	}
	if err != nil {
		end.Error = err.Error()
		s.emit(r.ctx, "", end)
		return fmt.Errorf("the conversation could not be summarised: %w", err)
	}
	end.Usage, end.Stop = resp.Usage, resp.Stop
	end.Provider, end.Model = answeredBy(resp, name, req.Model)
	s.emit(r.ctx, "", end)
	done := event.Compacted{Content: compaction.Summary(resp.Parts.Text(), s.memory.Text(h.messages[len(dropped):], window/4), dropped, window/10), Before: h.context, Kept: kept, Summarised: len(dropped), Provider: end.Provider, Model: end.Model, Usage: resp.Usage}
	h.usage = h.usage.Add(resp.Usage)
	h.compact(done.Content, kept)
	h.context += len(s.prompt.text) / 4
	done.After = h.context
	s.emit(r.ctx, "", done)
	s.spend(r, end.Provider, end.Model, resp.Usage)
	return nil
}
