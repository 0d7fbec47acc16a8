package core

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/answers"
	"github.com/seed-009c0928/agent/core/internal/images"
	"github.com/seed-009c0928/agent/core/internal/repeat"
	"github.com/seed-009c0928/agent/core/model"
)

// history is the conversation as the model gets it, and its cost. It only grows:
// what was sent once is sent again byte for byte.
type history struct {
	messages []model.Message
	shown    atomic.Pointer[[]model.Message]
	turns    int // user and assistant turns
	images   bool
	usage    model.Usage
	cost     float64
	context  int // estimated tokens of the next request
	size     int // tokens of the messages, always estimated
	warned   bool
	open     []model.ToolCall // calls of the last assistant turn, while one has no result
	results  map[string]model.ToolResult
}

// prompt is the current system prompt, and the settings that it was built for.
type prompt struct {
	text, provider, model, profile string
	built                          bool
}

func (h *history) add(role model.Role, parts model.Parts) {
	messages := append(h.messages, model.Message{Role: role, Parts: parts})
	h.messages = messages
	h.shown.Store(&messages)
	size := parts.EstimateTokens()
	h.context, h.size = h.context+size, h.size+size
}

// compact replaces all but the last messages by a summary. Results whose calls are
// missing, in a damaged log, go too.
func (h *history) compact(summary model.Parts, kept int) {
	for kept > 0 && h.messages[len(h.messages)-kept].Role == model.RoleTool {
		kept--
	}
	tail := h.messages[len(h.messages)-kept:]
	h.messages, h.context, h.size, h.warned = make([]model.Message, 0, kept+8), 0, 0, false
	h.add(model.RoleUser, summary)
	for _, m := range tail {
		h.add(m.Role, m.Parts)
	}
}

func (h *history) addUser(parts model.Parts) {
	h.turns++
	h.add(model.RoleUser, parts)
	h.images = h.images || parts.HasImage()
}

// addAnswer adds an assistant turn. Its usage replaces the estimate.
func (h *history) addAnswer(m event.Message) {
	h.usage = h.usage.Add(m.Usage)
	if len(m.Content) == 0 {
		return
	}
	h.turns++
	h.add(model.RoleAssistant, m.Content)
	if n := m.Usage.Total(); n > 0 {
		h.context = n
	}
	h.open = m.Content.ToolCalls()
	h.results = make(map[string]model.ToolResult, len(h.open))
}

// addResult adds the result of an open call. With the last one, the results
// join the conversation in the order of the calls.
func (h *history) addResult(r model.ToolResult) {
	h.results[r.CallID] = r
	h.images = h.images || r.Content.HasImage()
	if len(h.results) < len(h.open) {
		return
	}
	last := len(h.messages) - 1
	parts, renamed := answers.MatchNames(h.messages[last].Parts, h.open, h.results)
	if renamed != nil { // others may read the messages
		h.messages = slices.Clone(h.messages)
		h.messages[last].Parts = renamed
	}
	h.open, h.results = nil, nil
	h.add(model.RoleTool, parts)
}

// requestMessages returns the conversation with the images' bytes filled in.
// Without images that is the history itself, whose entries never change.
func (s *Session) requestMessages(ctx context.Context) ([]model.Message, error) {
	h := &s.history
	if !h.images || s.cfg.Store == nil {
		return h.messages[:len(h.messages):len(h.messages)], nil
	}
	return images.Load(ctx, h.messages, func(ctx context.Context, hash string) (io.ReadCloser, error) { return s.cfg.Store.Open(ctx, hash) })
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
	h := &s.history
	var sequence event.Sequence
	var last event.Seq
	for e, err := range s.cfg.Journal.Replay(ctx, 0) {
		if err != nil {
			return false, err
		}
		if err := sequence.Next(e); err != nil {
			return false, fmt.Errorf("record %d: %w", e.Seq, err)
		}
		last = e.Seq
		s.memory.Add(e.Call, e.Body)
		switch b := e.Body.(type) {
		case event.Prompt:
			s.prompt = prompt{b.Text, b.Provider, b.Model, b.Profile, true}
		case event.User:
			h.addUser(b.Content)
		case event.Steering:
			if b.Source == loopDetection {
				s.recent = nil
			}
			h.add(model.RoleUser, b.Content)
		case event.Compacted:
			s.bound()
			h.usage = h.usage.Add(b.Usage)
			s.price(nil, b.Provider, b.Model, b.Usage)
			h.compact(b.Content, min(b.Kept, len(h.messages)))
		case event.Message:
			s.bound()
			h.addAnswer(b)
			s.recent = repeat.Add(s.recent, b.Content.ToolCalls(), s.settings.limits.LoopWindow)
			s.price(nil, b.Provider, b.Model, b.Usage)
		case event.ToolResult:
			h.addResult(model.ToolResult{CallID: e.Call, Name: b.Name, Content: b.Content, IsError: b.IsError})
		case event.Unknown:
			if e.Required {
				return false, fmt.Errorf("record %d has the unknown type %q: use the version that wrote it, or a newer one", e.Seq, b.Kind)
			}
		}
	}
	s.rec.Skip(last)
	s.tokens.Store(int64(h.usage.Total()))
	return last > 0, nil
}

// answerOpenCalls adds a result to every call without one: no provider accepts a
// conversation with an open call.
func (s *Session) answerOpenCalls(ctx context.Context) {
	open, results := s.history.open, s.history.results
	for _, c := range open {
		if _, ok := results[c.ID]; !ok {
			s.record(ctx, c, Fail(CodeCancelled, "The call was interrupted when the agent ended; what it did is unknown."), nil, 0)
		}
	}
}

// storeInput returns an input and what is logged of it, with images stored. The
// images of what is not logged are not stored either.
func (s *Session) storeInput(ctx context.Context, in Input) (parts, record model.Parts) {
	if in.Record == nil {
		parts = s.storeImages(ctx, slices.Clone(in.Content))
		return parts, slices.Clone(parts)
	}
	s.hide(in.Content)
	return slices.Clone(in.Content), s.storeImages(ctx, slices.Clone(in.Record))
}

// hide keeps secrets of what is not logged out of later records.
func (s *Session) hide(parts model.Parts) {
	if h, ok := s.cfg.Journal.(Hider); ok {
		h.Hide(parts.Text())
	}
}

// withoutSecrets returns an answer as it is logged: without the texts that its
// calls write to sensitive files.
func (s *Session) withoutSecrets(ctx context.Context, snapshot *Snapshot, answer event.Message) event.Message {
	var parts model.Parts
	for i, p := range answer.Content {
		call, ok := p.(model.ToolCall)
		if !ok {
			continue
		}
		if args := s.loggedArgs(ctx, snapshot, call); args != call.Args {
			if parts == nil {
				parts = slices.Clone(answer.Content)
			}
			call.Args = args
			parts[i] = call
		}
	}
	if parts != nil {
		answer.Content = parts
	}
	return answer
}

// loggedArgs returns the arguments of a call as they are logged.
func (s *Session) loggedArgs(ctx context.Context, snapshot *Snapshot, call model.ToolCall) string {
	entry, known := snapshot.Lookup(call.Name)
	if !known || s.cfg.Journal == nil || entry.Validate(json.RawMessage(call.Args)) != nil {
		return call.Args
	}
	c := &pending{call: call, entry: entry, tool: &Call{ID: call.ID, Name: call.Name, Args: json.RawMessage(call.Args), Session: s.info(), Env: s.cfg.Env}}
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
	s.emitResult(ctx, c, res, out, took, nil)
	s.history.addResult(toolResult(c, res))
}

func (s *Session) emitResult(ctx context.Context, c model.ToolCall, res Result, out *event.Output, took time.Duration, sensitive []string) {
	body := event.ToolResult{
		Name: c.Name, Content: res.Content, IsError: res.Code != "", Code: string(res.Code), Output: out,
		DurationMS: took.Milliseconds(), Structured: res.Structured, Meta: res.Meta,
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
