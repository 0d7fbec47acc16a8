package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Open says which session to open.
type Open struct {
	ID      string // resume this session, or attach to it if it is open; empty = a new one
	Dir     string // working directory
	AddDirs []string
}

// Opened is a session that an [Opener] opened.
type Opened struct {
	Session  *agent.Session
	Settings []Setting
	Commands []string     // names of slash commands, for display
	Close    func() error // closes what belongs to the session, after it
	// Waiting is called when a run has nothing to do but wait for background work;
	// it may be nil.
	Waiting func()
}

// Setting is something that drivers can change at any time.
type Setting struct {
	ID       string   `json:"id"` // such as mode, model, effort
	Name     string   `json:"name"`
	Category string   `json:"category,omitempty"`
	Value    string   `json:"value"`
	Values   []string `json:"values,omitempty"` // the possible ones; empty = any
	// Set applies a value.
	Set func(value string) error `json:"-"`
}

// Opener opens a session whose questions the asker answers.
type Opener func(ctx context.Context, o Open, asker core.Asker) (Opened, error)

// Host has the open sessions of a program. It is safe for concurrent use.
type Host struct {
	opener Opener

	mu       sync.Mutex
	sessions map[string]*Session
	closing  sync.WaitGroup
}

// New returns a host without sessions. The caller closes it.
func New(opener Opener) *Host { return &Host{opener: opener, sessions: map[string]*Session{}} }

// Open opens a session, or attaches to the one with that ID.
func (h *Host) Open(ctx context.Context, o Open) (*Session, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions[o.ID]; s != nil && o.ID != "" {
		return s, nil
	}
	s := &Session{host: h, asked: map[string]chan core.Answer{}, answers: map[string]core.Answer{}, answered: map[string]bool{}, awaited: map[string]chan event.Result{}}
	opened, err := h.opener(ctx, o, asker{s})
	if err != nil {
		return nil, err
	}
	if opened.Session == nil {
		return nil, errors.New("host: the opener returned no session")
	}
	s.opened, s.session = opened, opened.Session
	h.sessions[s.ID()] = s
	return s, nil
}

// Close closes all sessions.
func (h *Host) Close() error {
	h.mu.Lock()
	all := make([]*Session, 0, len(h.sessions))
	for _, s := range h.sessions {
		all = append(all, s)
	}
	h.mu.Unlock()
	var errs []error
	for _, s := range all {
		errs = append(errs, s.close())
	}
	h.closing.Wait() // for those that drivers closed
	return errors.Join(errs...)
}

// forget removes a session that is closing, and returns what to call at the end.
func (h *Host) forget(id string) (done func()) {
	h.closing.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, id)
	return h.closing.Done
}

// asker keeps the questions of a session until a driver answers.
type asker struct{ s *Session }

// Ask implements [core.Asker].
func (a asker) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	reply := make(chan core.Answer, 1)
	a.s.mu.Lock()
	if answer, ok := a.s.answers[q.ID]; ok { // was quicker than this call
		delete(a.s.answers, q.ID)
		a.s.mu.Unlock()
		return answer, nil
	}
	a.s.asked[q.ID] = reply
	a.s.mu.Unlock()
	defer func() {
		a.s.mu.Lock()
		defer a.s.mu.Unlock()
		delete(a.s.asked, q.ID)
	}()
	select {
	case answer := <-reply:
		return answer, nil
	case <-ctx.Done():
		return core.Answer{}, ctx.Err()
	}
}

// Code classifies the error of a command.
type Code string

// The codes of errors.
const (
	CodeInvalid Code = "invalid" // the command is wrong
	CodeBusy    Code = "busy"    // the session is processing an input
	CodeUnknown Code = "unknown" // there is no such question, setting, choice, input
	CodeClosed  Code = "closed"  // the session is closed
	CodeFailed  Code = "failed"
)

// Error is the error of a command.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

func fail(code Code, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// errorOf returns an error of a session as that of a command.
func errorOf(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, core.ErrBusy):
		return fail(CodeBusy, "the session is processing an input: wait for its result, or send the input with when next or steer")
	case errors.Is(err, core.ErrClosed):
		return fail(CodeClosed, "%v", err)
	}
	return fail(CodeFailed, "%v", err)
}
