package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/answers"
	"github.com/seed-009c0928/agent/core/internal/conversation"
	"github.com/seed-009c0928/agent/core/internal/wording"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/schema"
	"github.com/seed-009c0928/agent/core/tracecontext"
)

// process runs one input through the loop.
func (s *Session) process(r *run, in Input) (StopReason, error) {
	if s.confirmOpenCalls(r, s.conversation.Open()); !r.parked && len(s.conversation.Open()) > 0 { // of a resumed session
		s.runCalls(r, s.snapshot(r.ctx), "", s.conversation.Open())
	}
	if r.parked {
		return StopParked, nil
	}
	if in.ID == "" || !s.conversation.Taken(in.ID) {
		s.takeInput(r, in)
	}
	if s.conversation.Answered && !s.Unread() {
		r.out.Text = s.conversation.LastText()
		return StopDone, nil
	}
	for {
		s.drainSteering(r.ctx)
		if r.soft.Err() != nil {
			return s.cancelled(r)
		}
		if stop := s.checkLimits(r); stop != "" {
			return stop, nil
		}
		if s.conversation.Bound(s.current().profile.ContextWindow); s.full() {
			s.tryCompact(r)
		}
		snapshot := s.snapshot(r.ctx)
		answer, err := s.callModel(r, snapshot)
		if err != nil && model.AsError(err).Code == model.CodeContextLength && s.current().limits.CompactAt > 0 && s.tryCompact(r) {
			continue
		}
		if errors.Is(err, model.ErrEmpty) && !r.emptied {
			r.emptied = true
			s.emit(r.ctx, "", event.LLMRetry{Attempt: 1, Max: 1, Code: model.CodeInvalidResponse, Message: err.Error()})
			continue
		}
		if err != nil {
			return s.modelFailed(r, err)
		}
		r.emptied = false
		calls := answer.Content.ToolCalls()
		if len(calls) == 0 {
			again, err := s.checkSchema(r, answer)
			if again {
				continue
			}
			if err != nil {
				return s.modelFailed(r, err)
			}
			if stop := s.stopped(r, answer); stop != StopDone && stop != StopAwaitingInput || !s.Unread() {
				return stop, nil
			}
			continue // a message came during the answer
		}
		r.rounds++
		r.out.Rounds++
		if stop := s.checkTokens(r, 0); stop != "" {
			s.skipCalls(r, calls, CodeCancelled, "the limit on tokens or cost was reached")
			return stop, nil
		}
		if s.runCalls(r, snapshot, answer.Stop, calls); r.parked {
			return StopParked, nil
		}
		s.detectLoop(r, calls)
	}
}

// takeInput adds the user turn: the input, and what the context sources add.
func (s *Session) takeInput(r *run, in Input) {
	s.iteration.Store(0)
	if len(in.Content)+len(in.Context) == 0 {
		return
	}
	req := ContextRequest{Session: s.info(), Input: in.Content, Budget: s.current().profile.ContextWindow / 50}
	req.Files, req.Errors = s.conversation.Recent()
	for _, source := range s.cfg.Context {
		blocks, err := source.Context(r.ctx, req)
		if err != nil {
			s.Warn(r.ctx, "CONTEXT", fmt.Sprintf("a context source failed: %v", err))
		}
		for _, b := range blocks {
			if b.Event != nil {
				s.emit(r.ctx, "", b.Event)
			}
		}
		in.Context = append(slices.Clip(in.Context), blocks...)
	}
	parts, record := s.storeInput(r.ctx, in)
	s.conversation.Begin()
	seq := s.emitAs(tracecontext.With(r.ctx, r.caller), "", event.User{Content: parts, Run: in.Run, Input: in.ID}, event.User{Content: record, Run: in.Run, Input: in.ID})
	s.conversation.AddInput(seq, in.ID, parts)
	s.trace(r, r.caller.Child(s.id, uint64(seq)))
}

// drainSteering adds the messages of Steer and Notify.
func (s *Session) drainSteering(ctx context.Context) {
	s.mu.Lock()
	queue := s.steering
	s.steering = nil
	s.mu.Unlock()
	for _, m := range queue {
		if m.Work != nil {
			m.Parts, m.Record = s.storeInput(ctx, systemInput(m.Work(ctx)))
		}
		s.steer(ctx, m)
	}
}

func (s *Session) steer(ctx context.Context, m conversation.Queued) {
	s.emitAs(ctx, "", event.Steering{Content: m.Parts, Source: m.Source, Queued: m.Seq}, event.Steering{Content: m.Record, Source: m.Source, Queued: m.Seq})
	s.conversation.Add(model.RoleUser, m.Parts)
}

// checkLimits returns a reason to stop before the next model call, or "".
func (s *Session) checkLimits(r *run) StopReason {
	limits := s.current().limits
	used := [...]int{r.rounds, s.conversation.Turns}
	for i, l := range [...]event.TurnLimit{{Limit: "maxRounds", Max: limits.MaxRounds}, {Limit: "maxTurns", Max: limits.MaxTurns}} {
		if l.Max > 0 && used[i] >= l.Max {
			s.emit(r.ctx, "", l)
			return StopTurnLimit
		}
	}
	if stop := s.checkTokens(r, s.conversation.Context); stop != "" {
		return stop
	}
	for _, l := range s.spendLimits(r) {
		if l.Max > 0 && l.Used >= limits.WarnAt*l.Max {
			s.Warn(r.ctx, "LIMIT", fmt.Sprintf("%s: %.6g of %.6g used", l.Limit, l.Used, l.Max))
		}
	}
	return ""
}

// checkTokens returns a reason to stop if a limit on tokens or cost is reached,
// or would be by so many more tokens: what cannot fit is not sent.
func (s *Session) checkTokens(r *run, reserve int) StopReason {
	for _, l := range s.spendLimits(r) {
		if l.Max > 0 && (l.Used >= l.Max || l.Limit != limitCost && l.Used+float64(reserve) > l.Max) {
			s.emit(r.ctx, "", l)
			return StopTokenLimit
		}
	}
	return ""
}

const limitCost = "maxCost"

// spendLimits returns the limits on tokens and cost; 0 is none.
func (s *Session) spendLimits(r *run) []event.TokenLimit {
	limits, c := s.current().limits, &s.conversation
	return []event.TokenLimit{
		{Limit: "maxInputTokens", Max: float64(limits.MaxInputTokens), Used: float64(r.inputTokens)},
		{Limit: "maxSessionTokens", Max: float64(limits.MaxSessionTokens), Used: float64(c.Usage.Total())},
		{Limit: limitCost, Max: limits.MaxCost, Used: c.Cost},
	}
}

// snapshot returns the tools for the next request.
func (s *Session) snapshot(ctx context.Context) *Snapshot {
	snapshot, err := s.cfg.Tools.Snapshot(ctx)
	if err != nil {
		s.Warn(ctx, "TOOLS", fmt.Sprintf("some tools are missing: %v", err))
	}
	return cmp.Or(snapshot, NewSnapshot(0, nil))
}

// callModel makes one request, streams the answer as events, and records it.
func (s *Session) callModel(r *run, snapshot *Snapshot) (event.Message, error) {
	s.iteration.Add(1)
	set := s.current()
	req, err := s.request(r.ctx, set, snapshot)
	if err != nil {
		return event.Message{}, err
	}
	info := set.provider.Info()
	name := info.Name
	ctx := r.soft
	s.emit(ctx, "", event.LLMStart{
		Provider: name, Model: req.Model, Server: info.Endpoint, Messages: len(req.Messages), Tools: len(req.Tools),
		FirstByteMS: info.Timeouts.FirstByte.Milliseconds(), IdleMS: info.Timeouts.Idle.Milliseconds(), TotalMS: info.Timeouts.Total.Milliseconds(),
	})

	source := answers.Source{Provider: set.provider, Clock: s.cfg.Clock, NewID: s.cfg.NewID}
	answer, end, err := source.Ask(ctx, req, func(b event.Body) { s.emit(ctx, "", b) })
	s.takeAnswer(ctx, r, snapshot, answer)
	s.emit(ctx, "", end)
	return answer, err
}

// takeAnswer records an answer and its usage.
func (s *Session) takeAnswer(ctx context.Context, r *run, snapshot *Snapshot, answer event.Message) {
	if len(answer.Content) > 0 || answer.Usage != (model.Usage{}) {
		s.emitAs(ctx, "", answer, s.withoutSecrets(ctx, snapshot, answer))
		s.conversation.AddAnswer(answer)
	}
	s.spend(r, answer.Provider, answer.Model, answer.Usage)
	r.out.Text = answer.Content.Text()
	if p := s.current().profile; p.ContextWindow > 0 && !s.conversation.Warned && s.conversation.Context*5 > p.ContextWindow*4 {
		s.conversation.Warned = true
		s.Warn(ctx, "CONTEXT_WINDOW", wording.Window(s.conversation.Context*100/p.ContextWindow, p.WindowNote))
	}
}

// spend adds up the usage of a call, and its cost as far as it is known.
func (s *Session) spend(r *run, provider, name string, u model.Usage) {
	s.tokens.Store(int64(s.conversation.Usage.Total()))
	r.out.Usage = r.out.Usage.Add(u)
	r.inputTokens += u.Total()
	usd, known := s.conversation.Spend(provider, name, u)
	r.out.Cost += usd
	r.out.Priced = r.out.Priced && known
}

// request builds the next request. It begins with the messages of the one
// before, so that the provider's cache applies.
func (s *Session) request(ctx context.Context, set settings, snapshot *Snapshot) (*model.Request, error) {
	if err := s.buildPrompt(ctx, set); err != nil {
		return nil, err
	}
	messages, err := s.requestMessages(ctx)
	if err != nil {
		return nil, err
	}
	req := &model.Request{
		Model: set.model, System: s.conversation.Prompt.Text, Messages: messages, Tools: snapshot.Defs(),
		Effort: set.request.Effort, MaxTokens: set.request.MaxTokens, Temperature: set.request.Temperature,
		OutputSchema: set.request.OutputSchema, ProviderOptions: set.request.ProviderOptions,
	}
	if s.cfg.Hooks.BeforeModel != nil {
		if err := s.cfg.Hooks.BeforeModel(ctx, req); err != nil {
			return nil, fmt.Errorf("hook before the model call: %w", err)
		}
	}
	return req, nil
}

// buildPrompt builds the system prompt, unless it is current.
func (s *Session) buildPrompt(ctx context.Context, set settings) error {
	p := &s.conversation.Prompt
	provider := set.provider.Info().Name
	if p.Built && p.Provider == provider && p.Model == set.model && p.Profile == set.profile.Name {
		return nil
	}
	*p = conversation.Prompt{Provider: provider, Model: set.model, Profile: set.profile.Name, Built: true}
	if set.profile.Prompt != nil {
		text, err := set.profile.Prompt(ctx, PromptRequest{Provider: provider, Model: set.model, Env: s.cfg.Env.Info(), Time: s.cfg.Clock(), Environment: s.cfg.Env})
		if err != nil {
			p.Built = false
			return fmt.Errorf("system prompt of profile %q: %w", set.profile.Name, err)
		}
		p.Text = text
	}
	if own := strings.TrimSpace(set.profile.Append); own != "" {
		p.Text = strings.TrimSpace(strings.TrimSpace(p.Text)+"\n\n"+own) + "\n"
	}
	s.conversation.Context += len(p.Text) / 4
	s.emit(ctx, "", event.Prompt{Provider: provider, Model: set.model, Profile: set.profile.Name, Text: p.Text})
	return nil
}

// checkSchema validates a final answer. The model gets one chance to correct it.
func (s *Session) checkSchema(r *run, answer event.Message) (again bool, err error) {
	raw := s.current().request.OutputSchema
	if len(raw) == 0 || answer.Stop != model.StopEnd && answer.Stop != model.StopOther {
		return false, nil
	}
	if err = schema.CheckText(raw, answer.Content.Text()); err == nil {
		return false, nil
	}
	if !r.corrected {
		r.corrected = true
		text := model.TextParts(fmt.Sprintf("The answer does not match the required JSON Schema: %v. Answer again with nothing but JSON that matches it.", err))
		s.steer(r.ctx, conversation.Queued{Source: "output_schema", Parts: text, Record: text})
		return true, nil
	}
	return false, fmt.Errorf("the answer does not match the output schema: %w", err)
}

// stopped returns the stop reason for an answer without tool calls.
func (s *Session) stopped(r *run, answer event.Message) StopReason {
	asks := s.current().profile.Asks
	if asks == nil {
		asks = func(text string) bool { return strings.HasSuffix(strings.TrimSpace(text), "?") }
	}
	switch {
	case answer.Stop == model.StopMaxTokens:
		return StopMaxTokens
	case answer.Stop == model.StopRefusal || answer.Stop == model.StopContentFilter:
		s.Warn(r.ctx, "REFUSED", "the model or its provider's filter refused to answer")
		return StopRefused
	case asks(r.out.Text):
		return StopAwaitingInput
	}
	return StopDone
}

// modelFailed returns the stop reason for the failure of a model call.
func (s *Session) modelFailed(r *run, err error) (StopReason, error) {
	if r.soft.Err() != nil {
		return s.cancelled(r)
	}
	e := model.AsError(err)
	if e.Code == model.CodeContextLength {
		s.Warn(r.ctx, string(e.Code), "the conversation is too long for the model: "+e.Error())
		return StopContextLength, err
	}
	s.emit(r.ctx, "", event.ErrorOf(err))
	return StopError, err
}

// closes reports whether the session cannot continue after a failure. A
// retryable one does not close it, nor does a journal's, nor does a conversation that is too long,
// which a host can compact, or an answer that makes no sense.
func closes(err error) bool {
	e := model.AsError(err)
	return !errors.As(err, new(*JournalError)) && !e.Retryable() && e.Code != model.CodeContextLength && e.Code != model.CodeInvalidResponse
}

// cancelled ends a run that was cancelled or aborted.
func (s *Session) cancelled(r *run) (StopReason, error) {
	abort := r.ctx.Err() != nil
	reason := context.Cause(r.soft)
	text := reason.Error()
	if j := (*JournalError)(nil); !abort && errors.As(reason, &j) {
		s.emit(r.ctx, "", event.Error{Code: "JOURNAL", Message: text, Retryable: true})
		return StopError, reason
	}
	if c := (*cancelledError)(nil); errors.As(reason, &c) {
		text = c.reason
	}
	s.emit(r.ctx, "", event.Cancelled{Reason: text, Abort: abort})
	if abort {
		return StopAborted, reason
	}
	return StopCancelled, nil
}

// detectLoop warns the model when its last calls repeat a pattern of one, two
// or three calls.
func (s *Session) detectLoop(r *run, calls []model.ToolCall) {
	limits := s.current().limits
	if limits.NoLoopDetection {
		return
	}
	n := s.conversation.Repeats(calls, limits.LoopWindow)
	if n == 0 {
		return
	}
	message := fmt.Sprintf("Loop detected: the last %d tool calls follow a repeating pattern. Try a different approach.", limits.LoopWindow)
	s.emit(r.ctx, "", event.LoopDetection{Message: message, Pattern: n})
	s.steer(r.ctx, conversation.Queued{Source: conversation.LoopDetection, Parts: model.TextParts(message), Record: model.TextParts(message)})
	s.conversation.NewPattern()
}
