package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/answers"
	"github.com/seed-009c0928/agent/core/internal/conversation"
	"github.com/seed-009c0928/agent/core/internal/images"
	"github.com/seed-009c0928/agent/core/internal/wording"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tracecontext"
)

// requestMessages returns the conversation with the images' bytes filled in.
// Without images that is the conversation itself, whose entries never change.
func (s *Session) requestMessages(ctx context.Context) ([]model.Message, error) {
	if !s.conversation.Images || s.cfg.Store == nil {
		return s.conversation.Messages(), nil
	}
	return images.Load(ctx, s.conversation.Messages(), func(ctx context.Context, hash string) (io.ReadCloser, error) { return s.cfg.Store.Open(ctx, hash) })
}

// storeImages moves the bytes of images to the store and leaves their hashes.
func (s *Session) storeImages(ctx context.Context, parts model.Parts) model.Parts {
	if s.cfg.Store == nil {
		return parts
	}
	return images.Store(parts, func(data []byte) (string, error) { return s.cfg.Store.PutBlob(ctx, data) }, func(err error) {
		s.Warn(ctx, "STORE", fmt.Sprintf("an image could not be stored and will be missing when the session is resumed: %v", err))
	})
}

// rebuild restores the session from its journal. It reports whether there were
// any records.
func (s *Session) rebuild(ctx context.Context) (bool, error) {
	if s.cfg.Journal == nil {
		return false, nil
	}
	var sequence event.Sequence
	var last event.Seq
	approve := s.approved.Restore(s.id, s.cfg.Env.Info().Dir)
	options := conversation.Options{Window: s.settings.profile.ContextWindow, LoopWindow: s.settings.limits.LoopWindow}
	for e, err := range s.cfg.Journal.Replay(ctx, 0) {
		if err != nil {
			return false, err
		}
		if err := sequence.Next(e); err != nil {
			return false, fmt.Errorf("record %d: %w", e.Seq, err)
		}
		last = e.Seq
		approve(e)
		if err := s.conversation.Apply(e, options); err != nil {
			return false, err
		}
	}
	if input := s.conversation.Input; input.Seq > 0 {
		s.span = tracecontext.Span{Trace: input.Trace, ID: input.Span}.Child(s.id, uint64(input.Seq))
	}
	s.conversation.Questions.Resume()
	s.rec.Skip(last)
	s.tokens.Store(int64(s.conversation.Usage.Total()))
	return last > 0, nil
}

// settleOpenCalls decides on the calls without a result. Those that do not run with the
// next input get one, as no provider accepts a conversation with an open call.
func (s *Session) settleOpenCalls(ctx context.Context) {
	asked, parked := &s.conversation.Questions, false
	for _, c := range s.conversation.Open() {
		open := OpenCall{ToolCall: c, Started: asked.Started(c.ID)}
		action, waits := RerunCall, asked.Parked() && !open.Started
		if !waits {
			action = s.onOpenCall(ctx, open)
		}
		parked = parked || waits || action == AskCall && len(asked.Open()) > 0 || action == RerunCall && asked.Waits(c.ID)
		switch {
		case action == CancelCall:
			s.record(ctx, c, Fail(CodeCancelled, wording.Interrupted(open.Started)), nil, 0)
		case event.LacksSecrets(c.Args) && !asked.About(c.ID):
			s.record(ctx, c, Fail(CodeCancelled, wording.Unrecorded), nil, 0)
		case action == AskCall || event.LacksSecrets(c.Args):
			s.confirm = append(s.confirm, c.ID)
		}
	}
	if s.conversation.Unfinished() {
		s.state = StateUnfinished
	}
	if parked && len(s.conversation.Open()) > 0 {
		s.state = StateParked
	}
	s.steering, s.conversation.Queued = s.conversation.Queued, nil
}

func (s *Session) onOpenCall(ctx context.Context, c OpenCall) OpenCallAction {
	entry, known := s.snapshot(ctx).Lookup(c.Name)
	c.ReadOnly = known && entry.Tool.Definition().ReadOnly
	if s.cfg.OnOpenCall != nil {
		return s.cfg.OnOpenCall(c)
	}
	if c.ReadOnly {
		return RerunCall
	}
	return CancelCall
}

// confirmOpenCalls asks the user whether open calls run again, and answers those that
// do not. What cannot run, as its arguments were not recorded, waits for the user's
// decision all the same: the model is not told before.
func (s *Session) confirmOpenCalls(r *run, open []model.ToolCall) {
	for _, c := range open {
		if !slices.Contains(s.confirm, c.ID) || r.soft.Err() != nil {
			continue
		}
		if event.LacksSecrets(c.Args) {
			if r.parked = s.conversation.Questions.Waits(c.ID); r.parked {
				return
			}
			s.answerUnrecorded(r, c)
			continue
		}
		a, err := s.ask(r.soft, c.ID, Question{Kind: QuestionConfirm, Tool: c.Name, Choices: []Choice{ChoiceYes, ChoiceNo}, Title: "Run " + c.Name + " again?", Detail: wording.Interrupted(true) + "\n" + c.Args})
		if r.parked = errors.Is(err, ErrParked); r.parked {
			return
		}
		if a.Choice != ChoiceYes {
			s.record(r.ctx, c, Fail(CodeCancelled, wording.Interrupted(true)+" The user did not let it run again."), nil, 0)
		}
	}
	s.confirm = nil
}

// answerUnrecorded answers a call that cannot run, after the user decided on it.
func (s *Session) answerUnrecorded(r *run, c model.ToolCall) {
	res := Fail(CodeCancelled, wording.Unrecorded)
	if p, denied := s.conversation.Questions.Denied(c.ID); denied {
		s.emit(r.ctx, c.ID, p)
		r.out.Denied, res = append(r.out.Denied, p), Fail(CodePermission, wording.Denied(p.Reason))
	}
	s.record(r.ctx, c, res, nil, 0)
}

// storeInput returns an input and what is logged of it, with images stored. The
// images of what is not logged are not stored either.
func (s *Session) storeInput(ctx context.Context, in Input) (parts, record model.Parts) {
	if in.Record == nil {
		parts = s.storeImages(ctx, slices.Clone(in.Content))
		record = slices.Clone(parts)
	} else {
		answers.Hide(s.cfg.Hider, in.Content)
		parts, record = slices.Clone(in.Content), s.storeImages(ctx, slices.Clone(in.Record))
	}
	for _, b := range in.Context {
		part := model.Text{Text: wording.Context(b.Source, b.Trusted, b.Text)}
		parts, record = append(parts, part), append(record, part)
	}
	return parts, record
}

// withoutSecrets returns an answer as it is logged: without the texts that its
// calls write to sensitive files.
func (s *Session) withoutSecrets(ctx context.Context, snapshot *Snapshot, answer event.Message) event.Message {
	answer.Content = answers.WithArgs(answer.Content, func(call model.ToolCall) string { return s.loggedArgs(ctx, snapshot, call) })
	return answer
}

// loggedArgs returns the arguments of a call as they are logged.
func (s *Session) loggedArgs(ctx context.Context, snapshot *Snapshot, call model.ToolCall) string {
	entry, known := snapshot.Lookup(call.Name)
	if !known || s.cfg.Hider == nil || entry.Validate(json.RawMessage(call.Args)) != nil {
		return call.Args
	}
	c := &pending{call: call, entry: entry, tool: &Call{ID: call.ID, Name: call.Name, Args: json.RawMessage(call.Args), Session: s.info(), Env: s.cfg.ToolEnv}}
	scopes := entry.Tool.Definition().Scopes
	runs := slices.Contains(scopes, ScopeShell) // and may write a secret that is in its command line
	if !runs && !slices.Contains(scopes, ScopeWrite) || s.decide(ctx, c) != nil || len(c.decision.Sensitive) == 0 ||
		!runs && !slices.ContainsFunc(c.accesses, func(a Access) bool { return a.Scope == ScopeWrite }) {
		return call.Args
	}
	if answers.Hide(s.cfg.Hider, model.TextParts(event.TextOfArgs(call.Args, c.decision.Sensitive))); runs {
		return call.Args
	}
	return event.UnrecordedArgs(call.Args, c.decision.Sensitive)
}

// record logs a call's result and adds it to the conversation.
func (s *Session) record(ctx context.Context, c model.ToolCall, res Result, out *event.Output, took time.Duration) {
	s.emitResult(ctx, c, res, out, took, 0, nil)
	s.conversation.AddResult(toolResult(c, res))
}

func (s *Session) emitResult(ctx context.Context, c model.ToolCall, res Result, out *event.Output, took, waited time.Duration, sensitive []string) {
	body := event.ToolResult{
		Name: c.Name, Content: res.Content, IsError: res.Code != "", Code: string(res.Code), Output: out,
		DurationMS: took.Milliseconds(), WaitedMS: waited.Milliseconds(), Structured: res.Structured, Meta: res.Meta,
	}
	if len(sensitive) == 0 {
		s.emit(ctx, c.ID, body)
		return
	}
	answers.Hide(s.cfg.Hider, res.Content)
	s.emitAs(ctx, c.ID, body, body.Unrecorded(sensitive))
}

func toolResult(c model.ToolCall, res Result) model.ToolResult {
	return model.ToolResult{CallID: c.ID, Name: c.Name, Content: res.Content, IsError: res.Code != ""}
}
