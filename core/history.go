package core

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/answers"
	"github.com/seed-009c0928/agent/core/internal/conversation"
	"github.com/seed-009c0928/agent/core/internal/images"
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
	options := conversation.Options{Window: s.settings.profile.ContextWindow, LoopWindow: s.settings.limits.LoopWindow}
	for e, err := range s.cfg.Journal.Replay(ctx, 0) {
		if err != nil {
			return false, err
		}
		if err := sequence.Next(e); err != nil {
			return false, fmt.Errorf("record %d: %w", e.Seq, err)
		}
		last = e.Seq
		if _, ok := e.Body.(event.User); ok {
			s.span = tracecontext.Span{Trace: e.Trace, ID: e.Span}.Child(s.id, uint64(e.Seq))
		}
		if err := s.conversation.Apply(e, options); err != nil {
			return false, err
		}
	}
	s.conversation.Questions.Resume()
	s.rec.Skip(last)
	s.tokens.Store(int64(s.conversation.Usage.Total()))
	return last > 0, nil
}

// answerOpenCalls adds a result to every call without one, as no provider accepts a
// conversation with an open call. Those of a parked session that did not start stay open.
func (s *Session) answerOpenCalls(ctx context.Context) {
	asked := &s.conversation.Questions
	for _, c := range s.conversation.Open() {
		if asked.Parked() && !asked.Started(c.ID) {
			if !event.LacksSecrets(c.Args) {
				s.state = StateParked
				continue
			}
			s.record(ctx, c, Fail(CodeCancelled, "This call was not run: its arguments were not recorded, because they may contain secrets. Make it again."), nil, 0)
			continue
		}
		s.record(ctx, c, Fail(CodeCancelled, "The call was interrupted when the agent ended; what it did is unknown."), nil, 0)
	}
}

// storeInput returns an input and what is logged of it, with images stored. The
// images of what is not logged are not stored either.
func (s *Session) storeInput(ctx context.Context, in Input) (parts, record model.Parts) {
	if in.Record == nil {
		parts = s.storeImages(ctx, slices.Clone(in.Content))
		record = slices.Clone(parts)
	} else {
		s.hide(in.Content)
		parts, record = slices.Clone(in.Content), s.storeImages(ctx, slices.Clone(in.Record))
	}
	for _, b := range in.Context {
		parts, record = append(parts, b.part()), append(record, b.part())
	}
	return parts, record
}

// part returns the block as a part of the user turn.
func (b Block) part() model.Part {
	text := strings.ReplaceAll(b.Text, "</context", "< /context") // does not end the block
	return model.Text{Text: fmt.Sprintf("<context source=%q trusted=%t>\n%s\n</context>", b.Source, b.Trusted, text)}
}

// hide keeps secrets of what is not logged out of later records.
func (s *Session) hide(parts model.Parts) {
	for _, p := range parts {
		if text := model.Written(p); text != "" && s.cfg.Hider != nil {
			s.cfg.Hider.Hide(text)
		}
	}
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
	if s.hide(model.TextParts(event.TextOfArgs(call.Args, c.decision.Sensitive))); runs {
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
	s.hide(res.Content)
	s.emitAs(ctx, c.ID, body, body.Unrecorded(sensitive))
}

func toolResult(c model.ToolCall, res Result) model.ToolResult {
	return model.ToolResult{CallID: c.ID, Name: c.Name, Content: res.Content, IsError: res.Code != ""}
}
