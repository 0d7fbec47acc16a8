package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tracecontext"
)

// Builder makes spans from events. Those of one session come in their order, those of
// several sessions in any. It is not safe for concurrent use.
type Builder struct {
	// Content keeps the content of what was said and done.
	Content  bool
	ended    func(*Span)
	sessions map[string]*session
}

// NewBuilder returns a builder that passes on every span when it ends.
func NewBuilder(ended func(*Span)) *Builder {
	return &Builder{ended: ended, sessions: map[string]*session{}}
}

// Spans returns the spans of recorded events, in the order in which they begin. What
// had not ended ends with the session's last event.
func Spans(events []event.Event) []*Span {
	var spans []*Span
	b := NewBuilder(func(s *Span) { spans = append(spans, s) })
	for _, e := range events {
		b.Add(e)
	}
	b.Close()
	Sort(spans)
	return spans
}

// Sort sorts spans by their beginnings, outer ones first.
func Sort(spans []*Span) {
	slices.SortStableFunc(spans, func(x, y *Span) int {
		return cmp.Or(x.Start.Compare(y.Start), cmp.Compare(x.Session, y.Session), cmp.Compare(x.Seq, y.Seq), y.End.Compare(x.End))
	})
}

// session is what is open in a session.
type session struct {
	b       *Builder
	id      string
	opened  event.SessionStart
	last    tracecontext.Span // of the last input
	run     *Span             // nil between inputs
	compact *Span             // nil unless the conversation is being compacted
	chat    *Span             // nil between model calls
	calls   map[string]*Span  // by their IDs
	asked   map[string]*Span  // questions by their IDs
	early   []*Span           // what happened before the input that it belongs to
	failed  event.Error
	prompt  event.Event // until the next model call
	now     time.Time
}

// Add takes an event.
func (b *Builder) Add(e event.Event) {
	s := b.sessions[e.Session]
	if s == nil {
		s = &session{b: b, id: e.Session, calls: map[string]*Span{}, asked: map[string]*Span{}}
		b.sessions[e.Session] = s
	}
	switch body := e.Body.(type) {
	case event.MessageDelta, event.ReasoningDelta, event.ToolOutputDelta, event.ToolProgress:
		return
	case event.SessionStart:
		s.close("interrupted")
		s.opened = body
		if e.Span != "" {
			s.last = tracecontext.Span{Trace: e.Trace, ID: e.Span}
		}
	case event.SessionEnd:
		s.now = e.Time
		s.close("")
		delete(b.sessions, e.Session)
	case event.User, event.Idle, event.Error, event.Cancelled, event.SkillActivated, event.SourceStarted, event.Steering:
		s.input(e)
	case event.LLMStart, event.MessageStart, event.LLMRetry, event.Message, event.LLMEnd, event.Compacted, event.Prompt:
		s.answer(e)
	case event.BeadStart, event.BeadEnd, event.Criterion, event.Guard, event.Budget, event.TaskState:
		s.bead(e)
	default:
		s.tool(e)
	}
	s.now = e.Time
}

// Close ends what has not ended, as when a process was killed.
func (b *Builder) Close() {
	for _, id := range slices.Sorted(maps.Keys(b.sessions)) {
		b.sessions[id].close("interrupted")
		delete(b.sessions, id)
	}
}

// Open returns copies of the spans that have not ended, as they are at a time.
func (b *Builder) Open(now time.Time) (list []Span) {
	for _, id := range slices.Sorted(maps.Keys(b.sessions)) {
		for _, span := range b.sessions[id].open() {
			c := *span
			c.End, c.Attributes, c.Moments = now, slices.Clone(span.Attributes), slices.Clone(span.Moments)
			list = append(list, c)
		}
	}
	return list
}

// At returns the innermost open span that an event of a session belongs to.
func (b *Builder) At(e event.Event) tracecontext.Span {
	s := b.sessions[e.Session]
	if s == nil {
		return tracecontext.Span{}
	}
	for _, span := range []*Span{s.calls[e.Call], s.chat, s.compact, s.run} {
		if span != nil && (e.Call == "" || span.Kind != KindChat) {
			return tracecontext.Span{Trace: span.Trace, ID: span.ID}
		}
	}
	return tracecontext.Span{}
}

// open returns what is open, the inner spans first.
func (s *session) open() (list []*Span) {
	for _, set := range []map[string]*Span{s.asked, s.calls} {
		for _, key := range slices.Sorted(maps.Keys(set)) {
			list = append(list, set[key])
		}
	}
	for _, span := range []*Span{s.chat, s.compact, s.run} {
		if span != nil {
			list = append(list, span)
		}
	}
	return list
}

// close ends what is open with a code, at the time of the last event.
func (s *session) close(code string) {
	for _, span := range slices.Concat(s.early, s.open()) {
		if span.Kind != KindStart && span.Kind != KindSkill && span.Kind != KindHook {
			span.fail(code, "")
		}
		s.end(span, cmp.Or(span.End, s.now))
	}
	s.run, s.compact, s.chat, s.early = nil, nil, nil, nil
	clear(s.calls)
	clear(s.asked)
}

// begin returns a span that begins with an event, below another one or, with nil, below
// the run.
func (s *session) begin(e event.Event, kind Kind, name string, parent *Span) *Span {
	if parent == nil {
		parent = s.run
	}
	above := s.last
	if parent != nil {
		above = tracecontext.Span{Trace: parent.Trace, ID: parent.ID}
	}
	return s.below(above, e, kind, name)
}

func (s *session) below(above tracecontext.Span, e event.Event, kind Kind, name string) *Span {
	at := above.Child(e.Session, uint64(e.Seq))
	span := &Span{
		Trace: at.Trace, ID: at.ID, Parent: above.ID, Kind: kind, Name: name, Session: e.Session, Seq: e.Seq, Call: e.Call, Start: e.Time,
		Attributes: make([]Attr, 0, 16),
	}
	span.set("gen_ai.conversation.id", e.Session)
	return span
}

func (s *session) end(span *Span, at time.Time) {
	span.End = at
	if at.Before(span.Start) { // the clock was set
		span.End = span.Start
	}
	s.b.ended(span)
}

// input takes the events of an input as a whole.
func (s *session) input(e event.Event) {
	switch body := e.Body.(type) {
	case event.User:
		early := s.early
		s.early = nil
		s.close("") // of an input that this one follows up
		s.start(e, tracecontext.Span{Trace: e.Trace, ID: e.Span})
		for _, span := range early {
			s.adopt(span)
		}
		s.content(s.run, "gen_ai.input.messages", e)
	case event.Idle:
		s.idle(e, body)
	case event.Error:
		s.failed = body
	case event.Cancelled:
		s.failed = event.Error{Code: "CANCELLED", Message: body.Reason}
	case event.SkillActivated:
		span := s.begin(e, KindSkill, "activate_skill "+body.Name, nil)
		span.set("agent.skill.name", body.Name)
		span.set("agent.skill.scope", body.Scope)
		span.set("agent.skill.by", body.By)
		span.set("agent.skill.tokens", body.Size)
		s.early = append(s.early, span) // the event comes before its input's
	case event.Hook:
		s.hook(e, body)
	case event.SourceStarted:
		span := s.begin(e, KindStart, "start "+body.Name, nil)
		span.Start, span.End = e.Time.Add(-time.Duration(body.DurationMS)*time.Millisecond), e.Time
		span.set("agent.source.kind", body.Kind)
		span.set("agent.source.name", body.Name)
		if body.Error != "" {
			span.fail("START_FAILED", body.Error)
		}
		if s.run == nil {
			s.early = append(s.early, span)
			return
		}
		s.end(span, e.Time)
	case event.Steering:
		if s.run != nil {
			s.run.at(e.Time, "agent.steering", Attr{"agent.steering.source", body.Source})
		}
	}
}

// adopt makes something that happened before the input a part of it.
func (s *session) adopt(span *Span) {
	span.Trace, span.Parent = s.run.Trace, s.run.ID
	if span.Start.Before(s.run.Start) {
		s.run.Start = span.Start
	}
	s.end(span, cmp.Or(span.End, span.Start))
}

// start begins the run of an input, below the span of whoever submitted it.
func (s *session) start(e event.Event, above tracecontext.Span) {
	name := "agent"
	if len(s.opened.Path) > 0 {
		name = s.opened.Path[len(s.opened.Path)-1]
	}
	s.run = s.below(above, e, KindRun, "invoke_agent "+name)
	s.run.Provider, s.run.Model = s.opened.Provider, s.opened.Model
	if s.last.ID != "" && s.last.ID != above.ID {
		former := s.last
		s.run.Link = &former
	}
	s.last, s.failed = tracecontext.Span{Trace: s.run.Trace, ID: s.run.ID}, event.Error{}
	s.run.set("gen_ai.operation.name", "invoke_agent")
	s.run.set("gen_ai.agent.name", name)
	s.run.set("gen_ai.agent.version", s.opened.Agent)
	s.run.set("gen_ai.provider.name", providerName(s.opened.Provider))
	s.run.set("gen_ai.request.model", s.opened.Model)
	s.run.set("agent.session.parent", e.Parent)
}

// resume begins a run without an input: one that continues the last.
func (s *session) resume(e event.Event) {
	if s.run == nil {
		s.start(e, s.last)
		s.run.ID = second(e)
		s.last.ID = s.run.ID
	}
}

// second returns the ID of another span that begins with the event.
func second(e event.Event) string {
	return tracecontext.Span{}.Child(e.Session+"/outer", uint64(e.Seq)).ID
}

func (s *session) idle(e event.Event, body event.Idle) {
	for _, set := range []map[string]*Span{s.asked, s.calls} {
		for _, span := range set {
			span.set("agent.outcome", body.State)
		}
	}
	if s.run != nil {
		s.run.set("agent.outcome", body.Stop)
		s.run.use(s.run.Usage)
		switch body.Stop {
		case "error", "cancelled", "context_length":
			s.run.fail(cmp.Or(s.failed.Code, "CONTEXT_LENGTH_EXCEEDED"), s.failed.Message)
		}
	}
	s.now = e.Time
	s.close("")
}

// answer takes the events of model calls.
func (s *session) answer(e event.Event) {
	switch body := e.Body.(type) {
	case event.Prompt:
		s.prompt = e
	case event.LLMStart:
		s.call(e, body)
	case event.Compacted:
		if s.compact != nil {
			s.compact.set("agent.compaction.tokens_before", body.Before)
			s.compact.set("agent.compaction.tokens_after", body.After)
			s.compact.set("agent.compaction.messages", body.Summarised)
			s.end(s.compact, e.Time)
			s.compact = nil
		}
	case event.LLMEnd:
		s.answered(e, body)
	}
	if s.chat == nil {
		return
	}
	switch body := e.Body.(type) {
	case event.MessageStart:
		s.chat.at(e.Time, "gen_ai.first_token")
	case event.LLMRetry:
		s.chat.at(e.Time, "gen_ai.retry", Attr{"error.type", string(body.Code)}, Attr{"agent.retry.attempt", int64(body.Attempt)}, Attr{"agent.retry.wait", seconds(body.WaitMS)})
	case event.Message:
		s.chat.set("gen_ai.response.id", body.ResponseID)
		s.content(s.chat, "gen_ai.output.messages", e)
	}
}

// call begins a model call.
func (s *session) call(e event.Event, body event.LLMStart) {
	if body.Purpose == "compaction" {
		s.compact = s.begin(e, KindCompaction, "compaction", nil)
		s.compact.ID = second(e)
	} else {
		s.resume(e)
	}
	s.chat = s.begin(e, KindChat, "chat "+body.Model, s.compact)
	s.chat.Provider, s.chat.Model = body.Provider, body.Model
	s.content(s.chat, "gen_ai.system_instructions", s.prompt)
	s.prompt = event.Event{}
	s.chat.set("gen_ai.operation.name", "chat")
	s.chat.set("gen_ai.provider.name", providerName(body.Provider))
	s.chat.set("gen_ai.request.model", body.Model)
	s.chat.set("gen_ai.request.stream", body.Purpose == "")
	s.chat.server(body.Server)
	s.chat.set("agent.request.messages", body.Messages)
	s.chat.set("agent.request.tools", body.Tools)
}

// hook takes what a hook did, which may be before the input that it is about.
func (s *session) hook(e event.Event, body event.Hook) {
	span := s.begin(e, KindHook, "hook "+body.Event, s.calls[body.CallID])
	span.Start, span.End = e.Time.Add(-time.Duration(body.DurationMS)*time.Millisecond), e.Time
	span.set("agent.hook.kind", body.Kind)
	span.set("agent.hook.source", body.Source)
	span.set("agent.hook.decision", body.Decision)
	span.set("gen_ai.tool.name", body.Tool)
	if body.Error != "" {
		span.fail("HOOK_FAILED", body.Error)
	}
	if s.run == nil {
		s.early = append(s.early, span)
		return
	}
	s.end(span, e.Time)
}

// answered ends a model call.
func (s *session) answered(e event.Event, body event.LLMEnd) {
	chat := s.chat
	if chat == nil {
		return
	}
	s.chat = nil
	chat.Provider, chat.Model, chat.First = body.Provider, body.Model, time.Duration(body.FirstMS)*time.Millisecond
	chat.set("gen_ai.provider.name", providerName(body.Provider))
	chat.set("gen_ai.response.model", body.Model)
	if reason := finishReason(body.Stop); reason != "" {
		chat.set("gen_ai.response.finish_reasons", []string{reason})
	}
	if body.FirstMS > 0 {
		chat.set("gen_ai.response.time_to_first_chunk", seconds(body.FirstMS))
	}
	chat.use(body.Usage)
	if body.Error != "" {
		chat.fail(cmp.Or(string(body.Code), "UNKNOWN"), body.Error)
	}
	s.end(chat, e.Time)
	if s.run != nil {
		s.run.Usage = s.run.Usage.Add(body.Usage)
	}
	if s.compact != nil && body.Error != "" {
		s.compact.fail(chat.Error, chat.Message)
		s.end(s.compact, e.Time)
		s.compact = nil
	}
}

// tool takes the events of tool calls and questions.
func (s *session) tool(e event.Event) {
	switch body := e.Body.(type) {
	case event.ToolUse:
		s.resume(e)
		call := s.opens(e, body.Name)
		call.set("agent.tool.source", body.Source)
		s.content(call, "gen_ai.tool.call.arguments", e)
	case event.Permission:
		s.resume(e)
		call := s.opens(e, body.Tool)
		call.Decision, call.Decider = body.Decision, body.Decider
		call.set("agent.permission.decision", body.Decision)
		call.set("agent.permission.decider", body.Decider)
		if s.b.Content { // it names commands and paths
			call.set("agent.permission.rule", body.Rule)
		}
	case event.Question:
		span := s.begin(e, KindQuestion, "question "+body.Kind, s.asks(e, body))
		span.Tool = body.Tool
		span.set("agent.question.kind", body.Kind)
		span.set("gen_ai.tool.name", body.Tool)
		s.asked[body.QID] = span
	case event.Answer:
		if span := s.asked[body.QID]; span != nil {
			delete(s.asked, body.QID)
			span.set("agent.question.choice", body.Choice)
			if body.Withdrawn {
				span.set("agent.outcome", "withdrawn")
			}
			span.Waited = e.Time.Sub(span.Start)
			s.end(span, e.Time)
		}
	case event.ToolResult:
		s.result(e, body)
	case event.FilesChanged:
		if s.run != nil {
			s.run.at(e.Time, "agent.files_changed", Attr{"agent.files", int64(len(body.Files) + body.Left)})
		}
	}
}

// asks returns the call that a question is about; nil if unknown. A question that a tool
// asks while it runs only names the tool.
func (s *session) asks(e event.Event, body event.Question) (call *Span) {
	if e.Call != "" || body.Tool == "" {
		return s.calls[e.Call]
	}
	for _, c := range s.calls {
		if c.Tool == body.Tool {
			if call != nil {
				return nil
			}
			call = c
		}
	}
	return call
}

// opens returns the span of a call, a new one if it has none that is open.
func (s *session) opens(e event.Event, name string) *Span {
	if call := s.calls[e.Call]; call != nil {
		return call
	}
	call := s.begin(e, KindTool, "execute_tool "+name, nil)
	call.Tool = name
	call.set("gen_ai.operation.name", "execute_tool")
	call.set("gen_ai.tool.name", name)
	call.set("gen_ai.tool.call.id", e.Call)
	call.set("gen_ai.tool.type", "function")
	s.calls[e.Call] = call
	return call
}

// result ends a tool call.
func (s *session) result(e event.Event, body event.ToolResult) {
	if s.run == nil {
		return // of a call that ended with the process
	}
	call := s.opens(e, body.Name)
	delete(s.calls, e.Call)
	call.Waited = time.Duration(body.WaitedMS) * time.Millisecond
	call.set("agent.tool.success", !body.IsError)
	call.set("agent.tool.duration", max(0, call.lasts(e.Time)-call.Waited).Seconds())
	if body.WaitedMS > 0 {
		call.set("agent.question.duration", seconds(body.WaitedMS))
	}
	call.set("agent.output.bytes", outputBytes(body))
	call.set("agent.sandbox.level", body.Sandbox())
	if body.IsError {
		message := ""
		if s.b.Content {
			message = body.Content.Text()
		}
		call.fail(cmp.Or(body.Code, "UNKNOWN"), message)
	}
	s.content(call, "gen_ai.tool.call.result", e)
	s.end(call, e.Time)
}

func (s *Span) lasts(until time.Time) time.Duration { return until.Sub(s.Start) }

// outputBytes returns the size of a result's full text.
func outputBytes(body event.ToolResult) int64 {
	switch {
	case body.Bytes > 0:
		return body.Bytes
	case body.Output != nil:
		return body.Output.Bytes
	}
	n := int64(0)
	for _, p := range body.Content {
		switch p := p.(type) {
		case model.Text:
			n += int64(len(p.Text))
		case model.Image:
			n += int64(max(p.Bytes, len(p.Data)))
		}
	}
	return n
}
