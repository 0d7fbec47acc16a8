package host

import (
	"context"
	"iter"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Work is a command in the background, or a subagent.
type Work = agent.Work

// Work returns what the session has in the background, and its subagents.
func (s *Session) Work() []Work { return s.session.Work() }

// WorkOutput returns the end of the output of a command in the background.
func (s *Session) WorkOutput(work string) (string, error) { return s.session.WorkOutput(work) }

// WorkEvents yields the events of a subagent; see [Session.Events].
func (s *Session) WorkEvents(ctx context.Context, work string, after event.Seq) iter.Seq2[event.Event, error] {
	return s.session.WorkEvents(ctx, work, after)
}

// AllEvents yields the events of [Session.Events], and between them those of the subagents:
// of each that is open, or begins later, from its beginning. The numbers of events count
// within their session.
func (s *Session) AllEvents(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		type read struct {
			e   event.Event
			err error
		}
		all, gone := make(chan read), make(chan struct{})
		defer close(gone)
		var readers sync.WaitGroup
		follow := func(events iter.Seq2[event.Event, error]) {
			for e, err := range events {
				select {
				case all <- read{e, err}:
				case <-gone:
					return
				}
			}
		}
		readers.Go(func() {
			defer s.session.Subagents(func(child *core.Session) {
				readers.Go(func() { follow(child.Events(ctx, child.Opened()-1)) })
			})()
			follow(s.Events(ctx, after))
		})
		go func() {
			readers.Wait()
			close(all)
		}()
		for r := range all {
			if !yield(r.e, r.err) || r.err != nil {
				return
			}
		}
	}
}

// steerWork gives an input to a subagent that is working.
func (s *Session) steerWork(work string, in core.Input) error {
	if err := s.session.SteerWork(work, in); err != nil {
		return fail(CodeUnknown, "%v", err)
	}
	return nil
}

// endWork ends a command in the background, or what a subagent is doing.
func (s *Session) endWork(c Command) error {
	if err := s.session.EndWork(c.Work, c.Reason); err != nil {
		return fail(CodeUnknown, "%v", err)
	}
	return nil
}
