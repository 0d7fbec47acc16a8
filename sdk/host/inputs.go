package host

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/core"
)

// Check says what is wrong with an input, whatever the session, as an *[Error].
func (c Command) Check() error {
	_, err := c.input()
	return err
}

// input returns the input of a command.
func (c Command) input() (core.Input, error) {
	switch c.When {
	case "", "next", "steer", "keep":
	default:
		return core.Input{}, fail(CodeInvalid, "when is %q: use next, steer or keep, or leave it out", c.When)
	}
	in := core.Input{}
	if c.Own != nil {
		in = *c.Own
	} else {
		var err error
		if in.Content, err = parts(c.Content); err != nil {
			return in, err
		}
		if in.Context, err = blocks(c.Context); err != nil {
			return in, err
		}
		if len(in.Content)+len(in.Context) == 0 {
			return in, fail(CodeInvalid, "the input has no content: send content with at least one part")
		}
	}
	in.Run, in.ID = cmp.Or(c.Run, uuid.NewString()), cmp.Or(c.InputID, in.ID)
	return in, nil
}

// steer adds a message to what is processed. A run that only waits for background
// work reads it at once. The caller holds the lock.
func (s *Session) steer(in core.Input) {
	s.session.Steer(in)
	if s.current != nil && s.current.wake != nil {
		s.current.wake()
	}
}

// proceed continues the conversation as it is, with the messages that were kept.
func (s *Session) proceed(c Command) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start(core.Input{Run: c.Run})
}

// awaitBackground waits for the background work of a run, and reports whether there
// are messages to read.
func (s *Session) awaitBackground(r *run) bool {
	ctx, wake := context.WithCancel(r.ctx)
	defer wake()
	s.mu.Lock()
	r.wake = wake
	s.mu.Unlock()
	if s.opened.Waiting != nil {
		s.opened.Waiting()
	}
	if !s.session.Unread() {
		s.session.AwaitBackground(ctx)
	}
	s.mu.Lock()
	r.wake = nil
	s.mu.Unlock()
	return r.ctx.Err() == nil && s.session.Unread()
}

// outcome is what came of a run.
type outcome struct {
	core.Outcome
	err error
}

// Run begins an input, a compact, a continue, or an answer that continues a parked
// session, and waits for its outcome. When ctx is done, the run is cancelled. The error
// is that of the command, an *[Error], or of [core.Session.Submit].
func (s *Session) Run(ctx context.Context, c Command) (core.Outcome, error) {
	c.Run = cmp.Or(c.Run, uuid.NewString())
	result := make(chan outcome, 1)
	s.leftMu.Lock()
	s.awaited[c.Run] = result
	s.leftMu.Unlock()
	defer func() {
		s.leftMu.Lock()
		defer s.leftMu.Unlock()
		delete(s.awaited, c.Run)
	}()
	switch run, err := s.Do(ctx, c); {
	case err != nil:
		return core.Outcome{}, err
	case run != c.Run:
		return core.Outcome{}, fail(CodeInvalid, "the command %s has begun no run: send it with Do", c.Type)
	}
	select {
	case r := <-result:
		return r.Outcome, r.err
	case <-ctx.Done():
	}
	if err := s.cancel(Command{Reason: context.Cause(ctx).Error()}); err != nil {
		return core.Outcome{}, err
	}
	r := <-result
	return r.Outcome, r.err
}

// tell gives the outcome of a run to who waits for it.
func (s *Session) tell(run string, out core.Outcome, err error) {
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	if c := s.awaited[run]; c != nil {
		c <- outcome{out, err}
	}
}
