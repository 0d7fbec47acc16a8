package acp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/host"
)

// session is an open session, and what the client sees of it.
type session struct {
	*host.Session
	server  *Server
	host    *host.Host
	opened  *Opened
	request host.Open // with the session's ID

	ctx     context.Context // ends with the session
	stop    context.CancelFunc
	ready   chan struct{} // closed when the past is read
	ended   chan struct{} // closed when there are no more events
	asking  sync.WaitGroup
	closing sync.Once
	closed  error // by closing

	mu        sync.Mutex
	results   map[string]chan event.Result // of prompts, by run
	expanding map[string]context.CancelFunc
	asked     map[string]context.CancelFunc // withdraws questions, by ID
	made      []string                      // calls that are shown for questions without one

	showing sync.Mutex // guards view
	view
}

func newSession(s *Server) *session {
	one := &session{
		server: s, ready: make(chan struct{}), ended: make(chan struct{}),
		results: map[string]chan event.Result{}, expanding: map[string]context.CancelFunc{}, asked: map[string]context.CancelFunc{},
	}
	one.ctx, one.stop = context.WithCancel(context.Background())
	return one
}

// do is [Do].
func (s *session) do(ctx context.Context, c host.Command) error {
	_, err := s.Do(ctx, c)
	return err
}

// start reads the events, and returns when the past is read.
func (s *session) start(replay bool) {
	s.calls = map[string]*call{}
	go s.follow(replay)
	<-s.ready
}

// begin tells the client what follows the response that opened the session.
func (s *session) begin() {
	commands := make([]protocol.AvailableCommand, 0, len(s.opened.Commands))
	for _, c := range s.opened.Commands {
		one := protocol.AvailableCommand{Name: c.Name, Description: c.Summary}
		if c.Hint != "" {
			one.Input = &protocol.AvailableCommandInput{Hint: c.Hint}
		}
		commands = append(commands, one)
	}
	s.update("available_commands_update", &protocol.AvailableCommandsUpdate{AvailableCommands: commands})
	if now := s.Now(); now.State == core.StateParked {
		s.showing.Lock()
		defer s.showing.Unlock()
		for _, q := range now.Questions {
			s.ask(q, "")
		}
	}
}

// update tells the client what is new.
func (s *session) update(kind string, value any) {
	// If the connection is broken, it ends.
	_ = s.server.conn.Notify(protocol.MethodSessionUpdate, protocol.SessionNotification{
		SessionID: s.ID(), Update: protocol.SessionUpdate{Tag: kind, Value: value},
	})
}

// follow shows the events in their order, until the session is closed.
func (s *session) follow(replay bool) {
	defer close(s.ended)
	past := s.Past()
	reading := true
	for e, err := range s.Events(context.Background(), 0) {
		if reading && (err != nil || e.Seq > past) {
			reading = false
			close(s.ready)
		}
		if err != nil {
			s.notice("error", "The session's events cannot be read", err.Error())
			return
		}
		s.showing.Lock()
		s.show(e, reading, !reading || replay)
		s.showing.Unlock()
	}
	if reading {
		close(s.ready)
	}
}

// close ends the session, with what is running.
func (s *session) close() error {
	s.closing.Do(func() {
		s.server.mu.Lock()
		if s.server.sessions[s.ID()] == s {
			delete(s.server.sessions, s.ID())
		}
		s.server.mu.Unlock()
		s.stop()
		s.withdraw()
		s.closed = s.host.Close()
		<-s.ended
		s.asking.Wait()
	})
	return s.closed
}

// leaveWait is how long a session whose client is gone waits for running calls.
const leaveWait = time.Minute

// leave detaches a session with unfinished work, so that it can be resumed, and ends
// slash commands. An idle one is left to close.
func (s *session) leave() error {
	s.stop() // questions stay open
	s.withdraw()
	if s.Now().State == core.StateIdle {
		return nil
	}
	ctx, done := context.WithTimeout(context.Background(), leaveWait)
	defer done()
	return s.Detach(ctx)
}

// withdraw withdraws the questions, and ends the slash commands.
func (s *session) withdraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.asked {
		cancel()
	}
	for _, cancel := range s.expanding {
		cancel()
	}
}

// options returns the settings, as configuration options and, for old clients, the
// modes.
func (s *session) options() ([]protocol.SessionConfigOption, *protocol.SessionModeState) {
	var options []protocol.SessionConfigOption
	var modes *protocol.SessionModeState
	for _, setting := range s.Now().Settings {
		values := setting.Values
		if setting.Category == categoryModel {
			values = s.opened.Models
		}
		if !slices.Contains(values, setting.Value) {
			values = append([]string{setting.Value}, values...)
		}
		list := make([]protocol.SessionConfigSelectOption, 0, len(values))
		for _, v := range values {
			list = append(list, protocol.SessionConfigSelectOption{Value: v, Name: label(v)})
		}
		options = append(options, protocol.SessionConfigOption{
			Type: "select", ID: setting.ID, Name: setting.Name, Category: protocol.SessionConfigOptionCategory(setting.Category),
			CurrentValue: setting.Value, Options: list,
		})
		if setting.Category == categoryMode {
			modes = &protocol.SessionModeState{CurrentModeID: setting.Value}
			for _, v := range list {
				modes.AvailableModes = append(modes.AvailableModes, protocol.SessionMode{ID: v.Value, Name: v.Name})
			}
		}
	}
	slices.SortStableFunc(options, func(a, b protocol.SessionConfigOption) int { return rank(a.Category) - rank(b.Category) })
	return options, modes
}

// The categories of settings that are special.
const (
	categoryMode  = "mode"
	categoryModel = "model"
)

// rank orders the categories: clients show the options in their order.
func rank(c protocol.SessionConfigOptionCategory) int {
	at := slices.Index([]protocol.SessionConfigOptionCategory{categoryMode, categoryModel, "thought_level"}, c)
	if at < 0 {
		return len(c) + 3
	}
	return at
}

// label returns a value for display.
func label(value string) string {
	if value == "" {
		return "default"
	}
	return value
}

func (s *Server) setOption(ctx context.Context, r protocol.SetSessionConfigOptionRequest) (any, error) {
	one, err := s.find(r.SessionID)
	if err != nil {
		return nil, err
	}
	value, ok := r.Value.(string)
	if !ok {
		return nil, invalid("value: expected a string, the value of one of the options")
	}
	if err := one.set(ctx, r.ConfigID, value); err != nil {
		return nil, err
	}
	options, _ := one.options()
	return protocol.SetSessionConfigOptionResponse{ConfigOptions: options}, nil
}

func (s *Server) setMode(ctx context.Context, r protocol.SetSessionModeRequest) (any, error) {
	one, err := s.find(r.SessionID)
	if err != nil {
		return nil, err
	}
	for _, setting := range one.Now().Settings {
		if setting.Category == categoryMode {
			return protocol.SetSessionModeResponse{}, one.set(ctx, setting.ID, r.ModeID)
		}
	}
	return nil, invalid("this session has no modes")
}

// set changes a setting to a value that is on offer.
func (s *session) set(ctx context.Context, id, value string) error {
	options, _ := s.options()
	at := slices.IndexFunc(options, func(o protocol.SessionConfigOption) bool { return o.ID == id })
	if at < 0 {
		return invalid("there is no option %q", id)
	}
	list, _ := options[at].Options.([]protocol.SessionConfigSelectOption)
	if !slices.ContainsFunc(list, func(o protocol.SessionConfigSelectOption) bool { return o.Value == value }) {
		return invalid("%s cannot be %q", id, value)
	}
	if options[at].CurrentValue == value {
		return nil
	}
	if _, err := s.Do(ctx, host.Command{Type: "set", Setting: id, Value: value}); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}
