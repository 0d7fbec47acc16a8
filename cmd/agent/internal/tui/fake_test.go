package tui

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	sessions "github.com/seed-009c0928/agent/sdk/host"
)

// fakeSession is a session with events of the test.
type fakeSession struct {
	log    *event.Log
	seq    atomic.Uint64
	opened event.Seq
	submit chan core.Input
	finish chan core.Outcome
	work   []sessions.Work
	output string
	mu     sync.Mutex
	sent   []sessions.Command // about work
	once   sync.Once
	left   chan struct{} // closed by a cancel
}

func newFakeSession() *fakeSession {
	return &fakeSession{log: event.NewLog(1<<20, nil), submit: make(chan core.Input, 1), finish: make(chan core.Outcome), left: make(chan struct{})}
}

func (s *fakeSession) emit(body event.Body) {
	s.log.Append(event.Event{V: event.Version, Seq: event.Seq(s.seq.Add(1)), Time: time.Now(), Call: "call", Body: body})
}

func (s *fakeSession) ID() string        { return "fake" }
func (s *fakeSession) Past() event.Seq   { return max(s.opened, 1) - 1 }
func (s *fakeSession) Now() sessions.Now { return sessions.Now{State: core.StateIdle} }
func (s *fakeSession) Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return s.log.Read(ctx, after)
}

func (s *fakeSession) Work() []sessions.Work                { return s.work }
func (s *fakeSession) WorkOutput(id string) (string, error) { return s.output, nil }
func (s *fakeSession) WorkEvents(ctx context.Context, _ string, after event.Seq) iter.Seq2[event.Event, error] {
	return s.log.Read(ctx, after)
}

func (s *fakeSession) commands() []sessions.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func (s *fakeSession) Do(_ context.Context, c sessions.Command) (string, error) {
	if c.Work != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, c)
		return "", nil
	}
	if c.Type == "input" && c.When != "keep" {
		s.submit <- *c.Own
		go func() {
			select {
			case out := <-s.finish:
				s.emit(event.Idle{State: "idle", Stop: string(out.Stop)})
				s.emit(event.Result{Run: c.Run, Outcome: string(out.Stop)})
			case <-s.left:
			}
		}()
	}
	if c.Type == "cancel" {
		s.once.Do(func() { close(s.left) })
	}
	return c.Run, nil
}

// past writes a conversation of turns, each of eight events.
func (s *fakeSession) past(turns int) {
	for range turns {
		s.emit(event.User{Content: model.TextParts("do the next thing")})
		s.emit(event.LLMStart{})
		s.emit(event.Message{Content: model.Parts{model.Text{Text: "I **look** first."}, model.ToolCall{ID: "call", Name: "shell", Args: `{"command":"make test"}`}}})
		s.emit(event.LLMEnd{})
		s.emit(event.ToolUse{Name: "shell", Args: `{"command":"make test"}`})
		s.emit(event.ToolResult{Name: "shell", Content: model.TextParts(strings.Repeat("a line of output\n", 40)), DurationMS: 1200})
		s.emit(event.Message{Content: model.TextParts("# Done\n\nAll *is* well:\n\n- one\n- two\n\n```\ncode\n```\n")})
		s.emit(event.Idle{State: "idle", Stop: "done"})
	}
	s.opened = event.Seq(s.seq.Load() + 1)
	s.emit(event.SessionStart{Resumed: true})
}
