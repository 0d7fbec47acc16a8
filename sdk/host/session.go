package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/telemetry"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Command is what a driver wants. Type says which of the other fields apply.
type Command struct {
	Type string `json:"type" jsonschema:"input, continue, answer, cancel, set, compact, rewind, end, detach or close; on lines also hello, now and open"`

	// Of an input.
	Content []Part `json:"content,omitempty" jsonschema:"of an input"`
	When    string `json:"when,omitempty" jsonschema:"of an input while another is processed: empty to refuse it, next to process it afterwards, steer to add it to the other; keep to add it to what is processed now or next"`
	Run     string `json:"run,omitempty" jsonschema:"of an input, continue, compact, and an answer that continues a session: a name for its events; empty for a new one"`
	// Own is an input of a driver in this process, instead of Content.
	Own *core.Input `json:"-"`
	// InputID identifies an input of a driver in this process: see [core.Input].
	InputID string `json:"-"`
	// Context is what the driver adds to an input, such as an open file.
	Context []Context `json:"context,omitempty" jsonschema:"of an input: what the host adds to it, such as open files; the model is told that these are not the user's words"`

	// Of an answer.
	Question string      `json:"question,omitempty" jsonschema:"of an answer: the qid of the question"`
	Choice   core.Choice `json:"choice,omitempty" jsonschema:"of an answer: one of the question's choices; of a form yes or no"`
	Offer    int         `json:"offer,omitempty" jsonschema:"of an answer with session or always: index of the question's offer"`
	Values   any         `json:"values,omitempty" jsonschema:"of an answer to a form: an object"`
	Reason   string      `json:"reason,omitempty" jsonschema:"of an answer or a cancel, in the user's words"`
	// Args replace the arguments of the call that a permission request is about.
	Args json.RawMessage `json:"args,omitempty" jsonschema:"of an answer with once to a permission request: an object that replaces the arguments of the call"`

	Reach string `json:"reach,omitempty" jsonschema:"of a cancel: model to let running tools finish, tools (the default) to end them"`

	Work string `json:"work,omitempty" jsonschema:"of an end, and of an input to a subagent that is working: its id in now"`

	Setting string `json:"setting,omitempty" jsonschema:"of a set: its id"`
	Value   string `json:"value,omitempty" jsonschema:"of a set"`

	Focus string    `json:"focus,omitempty" jsonschema:"of a compact: what the summary must cover"`
	Input event.Seq `json:"input,omitempty" jsonschema:"of a rewind: seq of the user event"`
}

// Context is a text that a driver adds to an input.
type Context struct {
	Source string `json:"source" jsonschema:"where it comes from, such as a file or a URL"`
	Text   string `json:"text"`
}

// blocks returns what a driver adds to an input.
func blocks(list []Context) (all []core.Block, err error) {
	for i, c := range list {
		if c.Source == "" {
			return nil, fail(CodeInvalid, "context[%d]: send it with source and text", i)
		}
		all = append(all, core.Block{Source: c.Source, Text: c.Text})
	}
	return all, nil
}

// Part is a part of an input: a text or an image.
type Part struct {
	Type      string `json:"type" jsonschema:"text or image"`
	Text      string `json:"text,omitempty"`
	MediaType string `json:"mediaType,omitempty" jsonschema:"of an image, such as image/png"`
	Data      []byte `json:"data,omitempty" jsonschema:"of an image, in base64"`
}

// parts returns the content of an input.
func parts(content []Part) (model.Parts, error) {
	var list model.Parts
	for i, p := range content {
		switch {
		case p.Type == "text" && p.Text != "":
			list = append(list, model.Text{Text: p.Text})
		case p.Type == "image" && p.MediaType != "" && len(p.Data) > 0:
			list = append(list, model.Image{MediaType: p.MediaType, Data: p.Data, Bytes: len(p.Data)})
		default:
			return nil, fail(CodeInvalid, "content[%d]: send a text with text, or an image with mediaType and data", i)
		}
	}
	return list, nil
}

// Now is the state of a session, for a driver that joins late.
type Now struct {
	State     core.State       `json:"state"`
	Run       string           `json:"run,omitempty"` // being processed
	Queued    []string         `json:"queued,omitempty"`
	Questions []event.Question `json:"questions,omitempty"` // that are open
	Work      []Work           `json:"work,omitempty"`      // in the background, and subagents
	Settings  []Setting        `json:"settings,omitempty"`
	Commands  []string         `json:"commands,omitempty"`
}

// byUser is the reason of a cancel without one.
const byUser = "cancelled by the user"

// Session is an open session. It is safe for concurrent use.
type Session struct {
	host    *Host
	opened  Opened
	session *agent.Session
	// unobserve ends the metrics of the session.
	unobserve func()

	mu       sync.Mutex
	asked    map[string]chan core.Answer // questions that wait, by ID
	answers  map[string]core.Answer      // that came before their question waited
	answered map[string]bool
	current  *run // nil when idle
	queue    []core.Input
	closed   bool
	detached atomic.Bool
	parked   []event.Question // that were open when the session was detached
	wg       sync.WaitGroup

	leftMu  sync.Mutex
	left    []event.Event           // results of runs that ended with the session
	awaited map[string]chan outcome // by run
}

// run is the processing of an input, with the background work that it started.
type run struct {
	id   string
	ctx  context.Context
	stop context.CancelFunc
	wake context.CancelFunc // while it waits for background work
}

// ID returns the session's ID.
func (s *Session) ID() string { return s.session.ID() }

// Past returns the number of the last event of earlier openings.
func (s *Session) Past() event.Seq { return s.session.Opened() - 1 }

// Events yields the events after the given one, past and future, until the session is
// closed. The last ones are the results of the inputs that ended with it.
func (s *Session) Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		last := after
		for e, err := range s.session.Events(ctx, after) {
			if err == nil {
				last = e.Seq
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		s.wg.Wait()
		s.leftMu.Lock()
		left := slices.Clone(s.left)
		s.leftMu.Unlock()
		for _, e := range left {
			if last++; !yield(numbered(e, last), nil) {
				return
			}
		}
	}
}

func numbered(e event.Event, seq event.Seq) event.Event {
	e.Seq = seq
	return e
}

// Now returns the current state.
func (s *Session) Now() Now {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := Now{State: s.session.State(), Questions: s.session.Pending(), Work: s.session.Work(), Settings: slices.Clone(s.opened.Settings), Commands: s.opened.Commands}
	if s.current != nil {
		n.Run = s.current.id
	}
	for _, in := range s.queue {
		n.Queued = append(n.Queued, in.Run)
	}
	return n
}

// numbers returns what the metrics have of the session beside its events.
func (s *Session) numbers() []telemetry.Number {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []telemetry.Number{{Name: "agent.queue.inputs", Value: int64(len(s.queue))}}
}

// Do carries out a command, or begins to. For an input it returns the run whose
// result event answers it. The error is an *[Error].
func (s *Session) Do(ctx context.Context, c Command) (run string, err error) {
	switch c.Type {
	case "input":
		return s.input(c)
	case "continue":
		return s.proceed(c)
	case "answer":
		return s.answer(ctx, c)
	case "cancel":
		return "", s.cancel(c)
	case "set":
		return "", s.set(ctx, c)
	case "compact":
		return s.compact(c)
	case "rewind":
		if err := s.session.Rewind(ctx, c.Input); err != nil {
			return "", errorOf(err)
		}
		return "", nil
	case "end":
		return "", s.endWork(c)
	case "close":
		go func() { _ = s.Close() }() // its events say so
		return "", nil
	case "detach":
		go func() { _ = s.detach() }()
		return "", nil
	}
	return "", fail(CodeInvalid, "unknown command %q: use input, continue, answer, cancel, set, compact, rewind, end, detach or close", c.Type)
}

func (s *Session) input(c Command) (string, error) {
	in, err := c.input()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.Work != "" && !s.closed:
		return "", s.steerWork(c.Work, in)
	case c.When == "keep" && !s.closed:
		s.steer(in)
		return "", nil
	case s.closed || s.current == nil || c.When == "":
		return s.start(in)
	case c.When == "next":
		s.queue = append(s.queue, s.session.Enqueue(in))
		return in.Run, nil
	}
	s.steer(in)
	return s.current.id, nil
}

// start begins the processing of an input, so that a cancel that comes after it
// counts. The caller holds the lock.
func (s *Session) start(in core.Input) (string, error) {
	r, err := s.prepare(in.Run)
	if err != nil {
		return "", err
	}
	work, err := s.session.Start(context.WithoutCancel(r.ctx), in)
	if err != nil {
		r.stop()
		return "", errorOf(err)
	}
	s.current = r
	s.wg.Go(func() {
		out, err := work()
		for err == nil && out.Stop == core.StopDone && s.awaitBackground(r) {
			var more core.Outcome
			if work, err = s.session.Start(context.WithoutCancel(r.ctx), core.Input{}); err != nil {
				break
			}
			if r.ctx.Err() != nil { // a cancel that came before
				s.session.Interrupt(byUser)
			}
			more, err = work()
			out = joined(out, more)
		}
		s.finish(r, out, err)
	})
	return r.id, nil
}

// compact begins to compact the conversation.
func (s *Session) compact(c Command) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.prepare(c.Run)
	if err != nil {
		return "", err
	}
	s.current = r
	s.wg.Go(func() {
		err := s.session.Compact(r.ctx, c.Focus)
		switch {
		case r.ctx.Err() != nil:
			s.finish(r, core.Outcome{Stop: core.StopCancelled}, nil)
		case err != nil:
			s.finish(r, core.Outcome{Stop: core.StopError}, err)
		default:
			s.finish(r, core.Outcome{Stop: core.StopDone}, nil)
		}
	})
	return r.id, nil
}

// prepare returns the next run. The caller holds the lock.
func (s *Session) prepare(id string) (*run, error) {
	switch {
	case s.closed:
		return nil, errorOf(core.ErrClosed)
	case s.current != nil:
		return nil, errorOf(core.ErrBusy)
	}
	r := &run{id: cmp.Or(id, uuid.NewString())}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// finish emits the result of the current run, and starts the next input. Who learns
// the result finds the session ready for another input.
func (s *Session) finish(r *run, out core.Outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = nil
	s.result(r.id, out, err)
	r.stop()
	if s.closed || s.session.State() == core.StateClosed {
		for _, in := range s.queue {
			s.result(in.Run, s.dropped(), nil)
		}
		s.queue = nil
		go func() { _ = s.Close() }() // frees what belongs to the session
		return
	}
	for len(s.queue) > 0 {
		next := s.queue[0]
		s.queue = s.queue[1:]
		_, err := s.start(next)
		if err == nil {
			return
		}
		s.result(next.Run, core.Outcome{Stop: core.StopError}, err)
	}
}

// drop ends the queued inputs without processing them.
func (s *Session) drop() {
	s.mu.Lock()
	queue := s.queue
	s.queue = nil
	s.mu.Unlock()
	for _, in := range queue {
		s.result(in.Run, s.dropped(), nil)
	}
}

// dropped is the outcome of a queued input: the record of a detached session keeps it.
func (s *Session) dropped() core.Outcome {
	if s.detached.Load() {
		return core.Outcome{Stop: core.StopAborted}
	}
	return core.Outcome{Stop: core.StopCancelled}
}

// result emits what came of a run: as an event of the session, or, when that is
// closed, behind its last one.
func (s *Session) result(id string, out core.Outcome, err error) {
	body := event.Result{
		Run: id, Outcome: string(out.Stop), Text: out.Text, Rounds: out.Rounds, DurationMS: out.Duration.Milliseconds(),
		Usage: out.Usage, Denied: append([]event.Permission{}, out.Denied...),
	}
	if out.Priced && out.Cost > 0 {
		body.CostUSD = &out.Cost
	}
	switch {
	case errors.Is(err, core.ErrDetached) && len(s.parked) > 0:
		out.Stop, err = core.StopParked, nil
		body.Outcome, body.Questions = string(out.Stop), s.parked
	case out.Stop == core.StopParked:
		body.Questions = s.session.Pending()
	}
	if err != nil {
		e := event.ErrorOf(err)
		body.Error = &e
	}
	defer s.tell(id, out, err) // when it is recorded
	if s.session.State() != core.StateClosed {
		s.session.Note(context.Background(), body)
		return
	}
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	s.left = append(s.left, event.Event{V: event.Version, ID: s.ID() + "-" + id, Time: time.Now(), Session: s.ID(), Body: body})
}

// joined returns the outcome of two inputs that belong together.
func joined(first, second core.Outcome) core.Outcome {
	second.Usage = first.Usage.Add(second.Usage)
	second.Cost += first.Cost
	second.Priced = second.Priced && first.Priced
	second.Rounds += first.Rounds
	second.Denied = append(first.Denied, second.Denied...)
	second.Duration += first.Duration
	return second
}
