package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Open says which session to open. An opener gets it with ID instead of Fork.
type Open struct {
	ID      string    // resume this session, or attach to it if it is open; empty = a new one
	Fork    string    // resume a copy of this session; it may be open
	At      event.Seq // of Fork: the last event to copy; 0 = all
	Dir     string    // working directory
	AddDirs []string  // more directories of the workspace
	MCP     []mcp.Configured
	// ToolEnv is [agent.SessionOptions].ToolEnv: the driver's view of files, for tools
	// alone.
	ToolEnv func(core.Environment) core.Environment
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
	// Given says that the user asked for Value: it is not replaced by that of an
	// earlier opening.
	Given bool `json:"-"`
	// Lapse are values that are not restored when a session is opened again: the
	// user must choose them again.
	Lapse []string `json:"-"`
	// Set applies a value.
	Set func(value string) error `json:"-"`
}

// Opener opens a session whose questions the asker answers. Settings that were changed
// in it before are applied afterwards.
type Opener func(ctx context.Context, o Open, asker core.Asker) (Opened, error)

// Host has the open sessions of a program. It is safe for concurrent use.
type Host struct {
	home   string
	opener Opener

	mu       sync.Mutex
	sessions map[string]*Session
	closing  sync.WaitGroup
}

// New returns a host of the sessions below home, an [agent.Options].Home, or "" if they
// are only in memory. The caller closes it.
func New(home string, opener Opener) *Host {
	return &Host{home: home, opener: opener, sessions: map[string]*Session{}}
}

// Open opens a session, or attaches to the one with that ID.
func (h *Host) Open(ctx context.Context, o Open) (*Session, error) {
	if o.Fork != "" {
		id, err := agent.ForkSession(ctx, h.home, o.Fork, o.At)
		if err != nil {
			return nil, err
		}
		o.ID, o.Fork, o.At = id, "", 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions[o.ID]; s != nil && o.ID != "" {
		return s, nil
	}
	s := &Session{host: h, asked: map[string]chan core.Answer{}, answers: map[string]core.Answer{}, answered: map[string]bool{}, awaited: map[string]chan outcome{}}
	opened, err := h.opener(ctx, o, asker{s})
	if err != nil {
		return nil, err
	}
	if opened.Session == nil {
		return nil, errors.New("host: the opener returned no session")
	}
	s.opened, s.session = opened, opened.Session
	s.opened.Settings = slices.Clone(opened.Settings)
	s.queue = s.session.Waiting()
	s.restore(ctx)
	s.unobserve = s.session.Observe(s.numbers)
	h.sessions[s.ID()] = s
	return s, nil
}

// pageSize is the number of sessions in a page.
const pageSize = 50

// List returns a page of the sessions that were started in a directory, or in any if
// it is empty, the last changed first, and the cursor of the next page. Sessions of
// subagents are not listed.
func (h *Host) List(dir, cursor string) (page []store.Summary, next string, err error) {
	if h.home == "" {
		return nil, "", nil
	}
	return store.Page(agent.SessionsDir(h.home), cursor, pageSize, func(s store.Summary) bool {
		return s.Parent == "" && (dir == "" || s.Cwd == dir)
	})
}

// Delete deletes a session with its outputs and subagents. An open one is closed
// before; one that another program has open is an error.
func (h *Host) Delete(id string) error {
	h.mu.Lock()
	s := h.sessions[id]
	h.mu.Unlock()
	if s != nil {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return agent.DeleteSession(h.home, id)
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
		errs = append(errs, s.Close())
	}
	h.closing.Wait() // for those that drivers closed
	return errors.Join(errs...)
}

// forget removes a session that is closing.
func (h *Host) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, id)
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
