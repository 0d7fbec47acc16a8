package core

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/approvals"
	"github.com/seed-009c0928/agent/core/internal/conversation"
	"github.com/seed-009c0928/agent/core/internal/recorder"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tracecontext"
)

// State is the state of a session. Only the session changes it.
type State string

// The states.
const (
	StateIdle          State = "idle"
	StateProcessing    State = "processing"
	StateAwaitingInput State = "awaiting_input"        // as idle, but the model asked the user something
	StateParked        State = "parked"                // as idle, but tool calls wait for the answer to a question
	StateUnfinished    State = conversation.Unfinished // as idle, but the work on the last input was interrupted: an empty input continues it
	StateClosed        State = "closed"
)

// StopReason says why the processing of an input ended.
type StopReason string

// The stop reasons.
const (
	StopDone          StopReason = "done"
	StopAwaitingInput StopReason = "awaiting_input"
	StopParked        StopReason = "parked" // see Session.Pending
	StopTurnLimit     StopReason = "turn_limit"
	StopTokenLimit    StopReason = "token_limit" // tokens or cost
	StopMaxTokens     StopReason = "max_tokens"  // the response was truncated
	StopRefused       StopReason = "refused"     // by the model or its provider's filter
	StopContextLength StopReason = "context_length"
	StopCancelled     StopReason = "cancelled" // the session is idle
	StopAborted       StopReason = "aborted"   // by Close, or by the end of Submit's context
	StopError         StopReason = "error"
)

// Input is what the user, or a host for them, submits.
type Input struct {
	Content model.Parts
	Run     string // names the input in its [event.User]; may be empty
	// ID identifies the input: with that of an earlier one, it is not added again, and
	// Submit continues as with an empty input. It may be empty.
	ID string
	// Record is logged instead of Content, which has secrets; nil logs Content.
	Record model.Parts
	// Context is what the host adds, such as an open file: not the user's words.
	Context []Block
}

// TextInput is an input of one text.
func TextInput(text string) Input { return Input{Content: model.TextParts(text)} }

// Outcome is the result of processing an input.
type Outcome struct {
	Stop     StopReason
	Text     string      // of the last answer
	Usage    model.Usage // of this input, with follow-ups and subagents
	Cost     float64     // USD; see Priced
	Priced   bool        // every call's price was known
	Rounds   int         // rounds of tool calls
	Denied   []event.Permission
	Duration time.Duration
}

// Errors of a session's methods.
var (
	ErrBusy   = errors.New("the session is processing an input: wait for it, or use FollowUp or Steer")
	ErrClosed = errors.New("the session is closed")
	// ErrDetached is the error of a Submit that [Session.Detach] ended; it is an
	// ErrClosed.
	ErrDetached = fmt.Errorf("%w: it was detached, and can be resumed", ErrClosed)
	// ErrFenced is what a [Journal] returns when another process has taken over the
	// session: it ends at once.
	ErrFenced = recorder.ErrFenced
)

// JournalError is the error of a session whose journal fails. The session is idle:
// what could not be recorded is recorded before the next input.
type JournalError struct{ Err error }

// Error implements error.
func (e *JournalError) Error() string {
	return "the session log cannot be written, so the work has stopped: " + e.Err.Error()
}

// Unwrap returns the journal's error.
func (e *JournalError) Unwrap() error { return e.Err }

// Session is one conversation and the work in it. A host submits an input,
// reads the events, and may steer. All methods are safe for concurrent use; one
// input is processed at a time.
type Session struct {
	cfg     Config
	id      string
	log     *event.Log
	opened  event.Seq // the session_start written by New
	started time.Time
	// approved is shared with subagents.
	approved *approvals.Set
	asking   sync.Mutex    // held while a question gets its ID
	effects  recorder.Gate // that calls which may change something are in, from their permission to their result

	iteration, tokens atomic.Int64 // for the events' envelope
	rec               *recorder.Recorder

	mu        sync.Mutex // guards what follows
	state     State
	settings  settings
	steering  []conversation.Queued
	followUps []Input
	run       *run          // the input being processed
	idle      chan struct{} // closed when the run is over; nil when there is none
	children  model.Usage   // of subagents that ended, for the next outcome

	// Owned by the goroutine that processes an input.
	conversation conversation.Conversation
	span         tracecontext.Span // of the last input
	confirm      []string          // open calls that run again if the user agrees
}

// settings are what can change between two model calls.
type settings struct {
	provider model.Provider
	model    string
	profile  Profile
	request  RequestOptions
	limits   Limits
	policy   Policy
}

// New opens a session. If the journal holds records, that session is resumed. It
// continues with the next input, which may be empty: if it was asking the user, it is
// parked, and calls that had not started can continue; what becomes of others without
// a result, [Config].OnOpenCall says.
func New(ctx context.Context, cfg Config) (*Session, error) {
	switch {
	case cfg.Provider == nil:
		return nil, errors.New("core.New: Config.Provider is required")
	case cfg.Env == nil:
		return nil, errors.New("core.New: Config.Env is required")
	case cfg.Policy == nil:
		return nil, errors.New("core.New: Config.Policy is required: it decides on every tool call")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = rand.Text
	}
	cfg.ID = cmp.Or(cfg.ID, cfg.NewID())
	cfg.Tools = cmp.Or(cfg.Tools, StaticTools())
	cfg.ToolEnv = cmp.Or(cfg.ToolEnv, cfg.Env)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	cfg.Model = cmp.Or(cfg.Model, cfg.Provider.Info().Model)
	if cfg.Hider == nil {
		cfg.Hider, _ = cfg.Journal.(Hider)
	}
	s := &Session{
		cfg: cfg, id: cfg.ID, state: StateIdle, approved: approvals.New(),
		settings: settings{cfg.Provider, cfg.Model, cfg.Profile, cfg.Request, cfg.Limits.withDefaults(), cfg.Policy},
	}
	if parent, ok := cfg.Asker.(*Session); ok {
		s.approved = parent.approved
	}
	var replay event.Replayer
	if cfg.Journal != nil {
		replay = cfg.Journal.Replay
	}
	s.conversation.Memory.Dir, s.conversation.Price = cfg.Env.Info().Dir, cfg.Cost
	s.log = event.NewLog(logWindow, replay)
	s.rec = recorder.New(s.log, cfg.Journal, cfg.JournalOptional)
	resumed, err := s.rebuild(ctx)
	if err != nil {
		return nil, fmt.Errorf("session %s cannot be resumed: %w", s.id, err)
	}
	s.started = cfg.Clock()
	s.emit(tracecontext.With(ctx, s.span), "", event.SessionStart{
		Agent: cfg.Version, Path: cfg.AgentPath, Cwd: cfg.Env.Info().Dir, Provider: cfg.Provider.Info().Name,
		Model: cfg.Model, Profile: cfg.Profile.Name, Resumed: resumed,
	})
	s.opened = s.rec.Last()
	s.settleOpenCalls(ctx)
	if err := s.rec.Flush(ctx); err != nil {
		return nil, &JournalError{err}
	}
	return s, nil
}

// logWindow is the number of events kept in memory for readers.
const logWindow = 1024

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Opened returns the number of the session_start event that New wrote: earlier
// events are those of a resumed session.
func (s *Session) Opened() event.Seq { return s.opened }

// Settings returns what a resumed session's host had changed, by the names in
// [event.SettingChanged]; the host applies them.
func (s *Session) Settings() map[string]string { return s.conversation.Settings }

// State returns the current state.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Events yields the session's events after the given one, past and future,
// until the session is closed or ctx is done. See [event.Log.Read].
func (s *Session) Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return s.log.Read(ctx, after)
}

// Submit processes an input and then the follow-ups. An empty input continues
// the conversation as it is, for instance after a failed call; if all is answered, that
// is StopDone at once. A parked session first continues the calls that wait, with the
// answers that it has.
//
// The error is that of a session that cannot take the input (ErrBusy,
// ErrClosed), of the journal (a *JournalError), of the model (a *model.Error), or of ctx: when ctx is done, the
// work is aborted, and the session can be used again. The Outcome is valid in any case.
func (s *Session) Submit(ctx context.Context, in Input) (Outcome, error) {
	work, err := s.Start(ctx, in)
	if err != nil {
		return Outcome{}, err
	}
	return work()
}

// Start is Submit in two steps: when it returns, the session is processing, so that a
// Cancel counts and another input is refused. The caller must then call work, which
// returns when the input is processed.
func (s *Session) Start(ctx context.Context, in Input) (work func() (Outcome, error), err error) {
	r, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	return func() (Outcome, error) { return s.work(r, in) }, nil
}

func (s *Session) work(r *run, in Input) (Outcome, error) {
	s.trace(r, s.span) // an input begins its own
	stop, err := s.process(r, in)
	for err == nil && stop != StopCancelled && stop != StopParked {
		next, ok := s.nextFollowUp()
		if !ok {
			break
		}
		r.rounds, r.inputTokens, r.compacted, r.corrected = 0, 0, false, false
		stop, err = s.process(r, next)
	}
	s.conversation.Stopped = err == nil && stop != StopAborted
	s.finish(r, stop, err)
	s.mu.Lock()
	r.out.Usage, s.children = r.out.Usage.Add(s.children), model.Usage{}
	s.mu.Unlock()
	r.out.Stop, r.out.Duration = stop, s.cfg.Clock().Sub(r.started)
	return r.out, err
}

// run is the processing of one Submit.
type run struct {
	ctx     context.Context // ends on abort
	abort   context.CancelCauseFunc
	soft    context.Context // ends on abort and on Cancel
	cancel  context.CancelCauseFunc
	tools   context.Context // ends on abort and on Interrupt
	stop    context.CancelCauseFunc
	started time.Time
	caller  tracecontext.Span // of who submits
	out     Outcome

	rounds      int
	inputTokens int
	compacted   bool
	parked      bool // a question stays open
	emptied     bool // the last answer was empty
	corrected   bool // the model was told that its answer does not match the schema
}

// trace makes the work of the run part of a span.
func (s *Session) trace(r *run, span tracecontext.Span) {
	s.span = span
	r.ctx, r.soft, r.tools = tracecontext.With(r.ctx, span), tracecontext.With(r.soft, span), tracecontext.With(r.tools, span)
}

func (s *Session) begin(ctx context.Context) (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case StateProcessing:
		return nil, ErrBusy
	case StateClosed:
		return nil, ErrClosed
	}
	r := &run{started: s.cfg.Clock(), caller: tracecontext.From(ctx), out: Outcome{Priced: true}}
	r.ctx, r.abort = context.WithCancelCause(ctx)
	r.tools, r.stop = context.WithCancelCause(r.ctx)
	r.soft, r.cancel = context.WithCancelCause(r.tools)
	if err := s.rec.Flush(ctx); err != nil {
		if errors.Is(err, ErrFenced) {
			s.state = StateClosed
			s.log.Close()
		}
		return nil, &JournalError{err}
	}
	s.rec.OnError(func(err error) {
		if r.cancel(&JournalError{err}); errors.Is(err, ErrFenced) {
			r.abort(&JournalError{err})
		}
	})
	s.state, s.run, s.idle = StateProcessing, r, make(chan struct{})
	return r, nil
}

// finish syncs the journal and sets the next state. The idle event appears when
// the session takes the next input, and before anything of that input.
func (s *Session) finish(r *run, stop StopReason, err error) {
	next := StateIdle
	cause := context.Cause(r.ctx)
	switch {
	case errors.Is(cause, ErrClosed) || errors.Is(cause, ErrFenced) || stop == StopError && err != nil && closes(err):
		next = StateClosed
	case s.conversation.Unfinished() && stop != StopParked:
		next = StateUnfinished
	case stop == StopAwaitingInput:
		next = StateAwaitingInput
	case stop == StopParked:
		next = StateParked
	}
	ctx := context.WithoutCancel(r.ctx)
	if next == StateClosed {
		s.end(ctx, string(stop))
	} else {
		s.sync(ctx)
	}
	r.cancel(nil)
	r.abort(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.run = next, nil
	if next != StateClosed {
		s.emit(ctx, "", event.Idle{State: string(next), Stop: string(stop)})
	}
	close(s.idle)
	s.idle = nil
}

// end writes the last record and ends the readers' sequences.
func (s *Session) end(ctx context.Context, reason string) {
	s.emit(ctx, "", event.SessionEnd{Reason: reason, Usage: s.conversation.Usage, DurationMS: s.cfg.Clock().Sub(s.started).Milliseconds()})
	s.sync(ctx)
	s.log.Close()
}

func (s *Session) sync(ctx context.Context) {
	if err := s.rec.Sync(ctx); err != nil {
		s.Warn(ctx, "JOURNAL", fmt.Sprintf("the session log may not survive a power failure: %v", err))
	}
}

// Close aborts what is being processed, waits for it, and ends the session. It
// is idempotent. What Config holds stays open: it belongs to the host.
func (s *Session) Close() error {
	s.close(ErrClosed)
	return nil
}

// Detach lets go of the session without ending it, so that it can be resumed, here or by
// another process. Running calls that may change something are waited for until ctx is
// done; all else stops where it is, and nothing of that is recorded: open questions stay
// open, and what was being processed is unfinished. The error is a [JournalError]; the
// session is closed here in any case.
func (s *Session) Detach(ctx context.Context) error {
	open := s.effects.Shut(ctx)
	err := s.rec.Seal(context.WithoutCancel(ctx))
	s.stop(func(r *run) { r.abort(ErrDetached) })
	open()
	s.close(ErrDetached)
	if err != nil {
		return &JournalError{err}
	}
	return nil
}

func (s *Session) close(cause error) {
	for {
		s.mu.Lock()
		r, idle, state := s.run, s.idle, s.state
		if r == nil {
			s.state = StateClosed
		}
		s.mu.Unlock()
		switch {
		case state == StateClosed:
			return
		case r == nil:
			s.end(context.Background(), "closed")
			return
		}
		r.abort(cause)
		<-idle
	}
}

// Steer adds a message after the current round of tool calls; an idle session
// keeps it for the next input. It is recorded at once: if the process ends before it is
// added, the resumed session has it.
func (s *Session) Steer(in Input) { s.queue("user", in) }

// Notify adds a message of the host, such as that something is done. The model gets
// it as a system message; it is recorded, and queued like one of Steer.
func (s *Session) Notify(text string) { s.queue("system", systemInput(text)) }

// NotifyAfter is Notify with the text that work returns. Work runs before the next
// model call, which waits for it; until then nothing is recorded.
func (s *Session) NotifyAfter(work func(context.Context) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steering = append(s.steering, conversation.Queued{Source: "system", Work: work})
}

func systemInput(text string) Input {
	return TextInput("<system_message>\n" + text + "\n</system_message>")
}

func (s *Session) queue(source string, in Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == StateClosed {
		return
	}
	ctx, m := context.Background(), conversation.Queued{Source: source}
	m.Parts, m.Record = s.storeInput(ctx, in)
	m.Seq = s.emitAs(ctx, "", event.Queued{Content: m.Parts, Source: source}, event.Queued{Content: m.Record, Source: source})
	s.steering = append(s.steering, m)
}

// Enqueue records an input that is to be submitted later, and returns it: the record of a
// session whose process dies before has it. Its Run must be set.
func (s *Session) Enqueue(in Input) Input {
	parts, record := s.storeInput(context.Background(), in)
	s.emitAs(context.Background(), "", event.Queued{Content: parts, Source: "user", Run: in.Run}, event.Queued{Content: record, Source: "user", Run: in.Run})
	if in.Content, in.Context = parts, nil; in.Record != nil {
		in.Record = record
	}
	return in
}

// Unread reports whether a message of Steer or Notify waits to be added.
func (s *Session) Unread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steering) > 0
}

// FollowUp queues an input to be processed after the current one; an idle
// session keeps it for the next Submit.
func (s *Session) FollowUp(in Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followUps = append(s.followUps, in)
}

func (s *Session) nextFollowUp() (Input, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.followUps) == 0 {
		return Input{}, false
	}
	in := s.followUps[0]
	s.followUps = s.followUps[1:]
	return in, true
}

// Cancel ends the processing gracefully: the model's stream is closed, running
// commands are interrupted, other running tools finish, no others start, and the
// session is idle again. It is
// idempotent, and does nothing in an idle session. To abort, end Submit's ctx or
// call Close.
func (s *Session) Cancel(reason string) {
	s.stop(func(r *run) { r.cancel(&cancelledError{reason}) })
}

// Interrupt is Cancel that ends running tools, too, and withdraws their questions.
func (s *Session) Interrupt(reason string) {
	s.stop(func(r *run) { r.stop(&cancelledError{reason}) })
}

func (s *Session) stop(end func(*run)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		end(s.run)
	}
}

type cancelledError struct{ reason string }

func (e *cancelledError) Error() string { return "cancelled: " + e.reason }

// SetModel changes provider and model from the next model call on. A nil
// provider keeps the current one. The prompt is rebuilt.
func (s *Session) SetModel(p model.Provider, name string) {
	s.change(func(set *settings) {
		if p != nil {
			set.provider = p
		}
		set.model = cmp.Or(name, set.provider.Info().Model)
	})
}

// SetProfile changes the profile from the next model call on. The prompt is
// rebuilt.
func (s *Session) SetProfile(p Profile) { s.change(func(set *settings) { set.profile = p }) }

// SetRequest changes the request's options from the next model call on.
func (s *Session) SetRequest(o RequestOptions) { s.change(func(set *settings) { set.request = o }) }

// SetLimits changes the limits from the next model call on.
func (s *Session) SetLimits(l Limits) {
	s.change(func(set *settings) { set.limits = l.withDefaults() })
}

// SetPolicy changes the policy, such as its mode, from the next tool call on.
func (s *Session) SetPolicy(p Policy) { s.change(func(set *settings) { set.policy = p }) }

func (s *Session) change(f func(*settings)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.settings)
}

func (s *Session) current() settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// info describes the session to tools and policies.
func (s *Session) info() SessionInfo {
	set := s.current()
	return SessionInfo{
		ID: s.id, AgentPath: s.cfg.AgentPath, Dir: s.cfg.Env.Info().Dir,
		CommandTimeout: cmp.Or(max(set.profile.CommandTimeout, 0), set.limits.CommandTimeout), MaxCommandTimeout: set.limits.MaxCommandTimeout,
	}
}

// Note adds a host's event to the session, such as the start of a subagent. It
// does nothing when the session is closed.
func (s *Session) Note(ctx context.Context, body event.Body) {
	if end, ok := body.(event.SubagentEnd); ok {
		s.mu.Lock()
		s.children = s.children.Add(end.Usage)
		s.mu.Unlock()
	}
	if s.State() != StateClosed {
		s.emit(ctx, "", body)
	}
}

// emit numbers an event, logs it, and publishes it, in this order.
func (s *Session) emit(ctx context.Context, call string, body event.Body) {
	s.emitAs(ctx, call, body, nil)
}

// emitAs is emit for a body that has secrets and is logged without them. It returns
// the event's number.
func (s *Session) emitAs(ctx context.Context, call string, body, record event.Body) event.Seq {
	e := event.Event{
		V: event.Version, Time: s.cfg.Clock(), Session: s.id, Parent: s.cfg.Parent, Call: call,
		Iteration: int(s.iteration.Load()), Tokens: int(s.tokens.Load()),
		Required: event.Rebuilds(body), Body: body, Record: record,
	}
	switch body.(type) {
	case event.SessionStart, event.User:
		e.Trace, e.Span = tracecontext.From(ctx).Trace, tracecontext.From(ctx).ID
	}
	s.conversation.Note(call, e.Recorded())
	seq, err := s.rec.Add(ctx, e)
	if err != nil {
		s.Warn(ctx, "JOURNAL", fmt.Sprintf("the session is no longer logged and continues in memory only: %v", err))
	}
	return seq
}

// Warn emits a warning for the user. It is safe for concurrent use.
func (s *Session) Warn(ctx context.Context, code, message string) {
	s.cfg.Logger.WarnContext(ctx, message, "code", code, "session", s.id)
	s.emit(ctx, "", event.Warning{Code: code, Message: message})
}
