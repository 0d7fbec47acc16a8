package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/tools"
)

// WorkKind says what a [Work] is.
type WorkKind string

// The kinds of work.
const (
	WorkCommand WorkKind = "command"
	WorkAgent   WorkKind = "agent"
)

// Work is a command in the background or a subagent, of a session or its subagents.
type Work struct {
	ID      string    `json:"id"`
	Kind    WorkKind  `json:"kind"`
	Title   string    `json:"title"` // the command, or the name of the subagent
	State   string    `json:"state"` // such as "running" or "ended with exit code 1"
	Running bool      `json:"running"`
	Began   time.Time `json:"began"`
	Tokens  int       `json:"tokens,omitempty"` // of a subagent, without its own
}

// Work returns what a session has in the background, and its subagents.
func (s *Session) Work() []Work { return s.node.work(s.agent, s.ID()) }

// work lists the work of a session in the tree.
func (f *node) work(a *Agent, id string) (list []Work) {
	f.mu.Lock()
	children, path := slices.Clone(f.children), f.path
	f.mu.Unlock()
	if a.builtins != nil {
		for _, j := range a.builtins.Jobs(id) {
			title := j.Command
			if len(path) > 0 {
				title = strings.Join(path, "/") + ": " + title
			}
			list = append(list, Work{ID: j.ID, Kind: WorkCommand, Title: title, State: j.State, Running: j.Running, Began: j.Began})
		}
	}
	for _, c := range children {
		c.mu.Lock()
		w := Work{ID: c.session.ID(), Kind: WorkAgent, Title: strings.Join(c.path, "/"), State: "waiting", Began: c.began, Tokens: c.own}
		if c.session.State() == core.StateProcessing {
			w.State, w.Running = "running", true
		}
		c.mu.Unlock()
		list = append(append(list, w), c.work(a, w.ID)...)
	}
	return list
}

// find returns the session in which a work runs, and the subagent that it is.
func (f *node) find(a *Agent, id, work string) (session string, child *core.Session) {
	if a.builtins != nil && slices.ContainsFunc(a.builtins.Jobs(id), func(j tools.Job) bool { return j.ID == work }) {
		return id, nil
	}
	f.mu.Lock()
	children := slices.Clone(f.children)
	f.mu.Unlock()
	for _, c := range children {
		if own := c.session.ID(); own == work {
			return id, c.session
		} else if session, child = c.find(a, own, work); session != "" {
			return session, child
		}
	}
	return "", nil
}

// findWork is find from the session on.
func (s *Session) findWork(work string) (session string, child *core.Session, err error) {
	if session, child = s.node.find(s.agent, s.ID(), work); session == "" {
		return "", nil, fmt.Errorf("nothing with ID %q is in the background", work)
	}
	return session, child, nil
}

// WorkOutput returns the end of the output of a command in the background.
func (s *Session) WorkOutput(work string) (string, error) {
	session, child, err := s.findWork(work)
	if err != nil || child != nil {
		return "", err
	}
	text, _ := s.agent.builtins.JobOutput(session, work)
	return text, nil
}

// WorkEvents yields the events of a subagent; see [core.Session.Events].
func (s *Session) WorkEvents(ctx context.Context, work string, after event.Seq) iter.Seq2[event.Event, error] {
	_, child, err := s.findWork(work)
	if child == nil {
		return func(yield func(event.Event, error) bool) { _ = err == nil || yield(event.Event{}, err) }
	}
	return child.Events(ctx, after)
}

// EndWork ends a command, or what a subagent is doing.
func (s *Session) EndWork(work, reason string) error {
	session, child, err := s.findWork(work)
	switch {
	case err != nil:
		return err
	case child != nil:
		child.Interrupt(reason)
	default:
		s.agent.builtins.EndJob(session, work)
	}
	return nil
}

// SteerWork gives a message to a subagent that is working.
func (s *Session) SteerWork(work string, in core.Input) error {
	_, child, err := s.findWork(work)
	switch {
	case err != nil:
		return err
	case child == nil:
		return fmt.Errorf("%s is a command and reads no messages", work)
	case child.State() != core.StateProcessing:
		return errors.New("the agent is done, and reads no more messages")
	}
	child.Steer(in)
	return nil
}
