package tui

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// fakeSession is a session with events of the test.
type fakeSession struct {
	log    *event.Log
	seq    atomic.Uint64
	opened event.Seq
	submit chan core.Input
	finish chan core.Outcome
}

func newFakeSession() *fakeSession {
	return &fakeSession{log: event.NewLog(1<<20, nil), submit: make(chan core.Input, 1), finish: make(chan core.Outcome)}
}

func (s *fakeSession) emit(body event.Body) {
	s.log.Append(event.Event{V: event.Version, Seq: event.Seq(s.seq.Add(1)), Time: time.Now(), Call: "call", Body: body})
}

func (s *fakeSession) ID() string        { return "fake" }
func (s *fakeSession) State() core.State { return core.StateIdle }
func (s *fakeSession) Opened() event.Seq { return s.opened }
func (s *fakeSession) Steer(core.Input)  {}
func (s *fakeSession) Cancel(string)     {}
func (s *fakeSession) Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return s.log.Read(ctx, after)
}

func (s *fakeSession) Submit(ctx context.Context, in core.Input) (core.Outcome, error) {
	s.submit <- in
	select {
	case out := <-s.finish:
		s.emit(event.Idle{State: "idle", Stop: string(out.Stop)})
		return out, nil
	case <-ctx.Done():
		return core.Outcome{Stop: core.StopAborted}, ctx.Err()
	}
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
