package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/client"
)

// interactiveOn runs a session of the service at --on on the terminal. The session
// continues when the terminal is left.
func interactiveOn(ctx context.Context, o *run.Options, prompt string) error {
	session, err := remote.SessionOf(o.Given())
	if err != nil {
		return err
	}
	if o.Resume != "" && !remote.Kept(o.Given()) {
		return cmdutil.Usagef("--resume with --on: the session stays as it was created; leave out the other flags of sessions")
	}
	set, err := (&setup.Flags{}).Load(o.IO) // of this machine, for the terminal
	if err != nil {
		return err
	}
	terminal, err := Terminal(o.IO, set)
	if err != nil {
		return err
	}
	c, err := remote.Connect(ctx, o.IO, o.On)
	if err != nil {
		return err
	}
	defer c.Close()
	session.Title = display.OneLine(cmp.Or(prompt, "(on the terminal)"), 80)
	s, err := openRemote(ctx, c, o.Resume, session)
	if err != nil {
		return err
	}
	defer s.close()
	terminal.Session, terminal.Asker, terminal.Prompt, terminal.Replay, terminal.Detach = s, tui.NewAsker(), prompt, 5, true
	terminal.Title = "agent: " + o.On
	terminal.Welcome = fmt.Sprintf("**agent** %s · session `%s` on %s · it continues when you leave", cmdutil.Version(), s.id, o.On)
	terminal.Status = s.status
	_, err = tui.Run(ctx, terminal)
	if s.unused() {
		return errors.Join(err, c.Delete(context.WithoutCancel(ctx), s.id))
	}
	fmt.Fprintf(o.Err, "agent: to come back: agent --on %s --resume %s\n", o.On, s.id)
	if errors.Is(err, tui.ErrTerminated) {
		return cmdutil.ErrTerminated
	}
	return err
}

// remoteSession is a session of a service as a [tui.Session]. It is safe for concurrent
// use.
type remoteSession struct {
	client *client.Client
	id     string
	past   event.Seq
	stop   context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	grown   chan struct{} // closed when there is more, or the end
	events  []event.Event
	err     error // why there are no more events
	ended   bool
	now     host.Now
	parked  event.Parked
	asked   map[string]bool   // questions that the terminal shows
	last    string            // the run that a question ended, for the terminal
	runs    map[string]string // commands that continue a run of the terminal
	model   string
	usage   model.Usage
	cost    float64
	started bool
}

// openRemote opens a session, a new one without an ID.
func openRemote(ctx context.Context, c *client.Client, id string, n client.NewSession) (*remoteSession, error) {
	s := &remoteSession{client: c, id: id, grown: make(chan struct{}), asked: map[string]bool{}, runs: map[string]string{}}
	s.now.State = core.StateIdle
	cursor := uint64(0)
	if id == "" {
		made, err := c.Create(ctx, n)
		if err != nil {
			return nil, err
		}
		s.id = made.ID
	} else {
		entry, past, err := remote.Past(ctx, c, id)
		if err != nil {
			return nil, err
		}
		s.id = entry.ID
		for _, r := range past {
			s.take(r.Event)
			s.past, cursor = r.Event.Seq, r.Cursor
		}
		if s.parked, s.now.Questions = entry.Questions, entry.Questions; len(entry.Questions) > 0 {
			s.now.State = core.StateParked
		}
		clear(s.asked)
		// The terminal shows the past with the first event behind it, which tells of the resumption.
		s.events = append(s.events, event.Event{V: event.Version, Seq: s.past + 1, Time: time.Now(), Session: s.id, Body: event.SessionStart{Resumed: true}})
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.wg.Go(func() { s.follow(ctx, cursor) })
	return s, nil
}

func (s *remoteSession) close() {
	s.stop()
	s.wg.Wait()
}

// unused reports whether nothing was ever sent to the session.
func (s *remoteSession) unused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.started && len(s.events) == 0
}

func (s *remoteSession) follow(ctx context.Context, cursor uint64) {
	var failed error
	for r, err := range s.client.Events(ctx, s.id, cursor) {
		if failed = err; err != nil {
			break
		}
		s.take(r.Event)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended = true; ctx.Err() == nil {
		s.err = failed
	}
	s.now.State = core.StateClosed
	close(s.grown)
}

// take adds an event as the terminal is to see it.
func (s *remoteSession) take(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked.Add(e.Body)
	s.now.Questions = s.parked
	switch b := e.Body.(type) {
	case event.SessionEnd: // of each command
		return
	case event.SessionStart:
		if s.model = b.Provider + "/" + b.Model; b.Resumed {
			return
		}
	case event.User:
		s.now.State, s.now.Run = core.StateProcessing, b.Run
	case event.Question:
		s.asked[b.QID] = true
	case event.Answer:
		delete(s.asked, b.QID)
		s.now.State = core.StateProcessing
	case event.Result:
		if !s.result(&b) {
			return
		}
		e.Body = b
	}
	s.events = append(s.events, e)
	close(s.grown)
	s.grown = make(chan struct{})
}

// result takes a result in, and reports whether the terminal is to see it: not if the
// terminal shows the question that ended the run. The run continues with the answer.
func (s *remoteSession) result(b *event.Result) bool {
	s.usage = s.usage.Add(b.Usage)
	if b.CostUSD != nil {
		s.cost += *b.CostUSD
	}
	if run, ok := s.runs[b.Run]; ok {
		b.Run = run
	}
	s.now.Run, s.now.State = "", core.StateIdle
	if b.Outcome == string(core.StopParked) {
		s.now.State = core.StateParked
		if slices.ContainsFunc(b.Questions, func(q event.Question) bool { return s.asked[q.QID] }) {
			s.last = b.Run
			return false
		}
	}
	return true
}

func (s *remoteSession) status() tui.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return tui.Status{Model: strings.TrimPrefix(s.model, "/"), Tokens: s.usage.Total(), Cost: s.cost, Priced: s.cost > 0}
}

// ID implements [tui.Session].
func (s *remoteSession) ID() string { return s.id }

// Past implements [tui.Session].
func (s *remoteSession) Past() event.Seq { return s.past }

// Now implements [tui.Session].
func (s *remoteSession) Now() host.Now {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Events implements [tui.Session].
func (s *remoteSession) Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for next := 0; ; {
			s.mu.Lock()
			list, grown, ended, err := s.events[next:], s.grown, s.ended, s.err
			s.mu.Unlock()
			for _, e := range list {
				if next++; e.Seq > after && !yield(e, nil) {
					return
				}
			}
			if ended {
				if err != nil {
					yield(event.Event{}, err)
				}
				return
			}
			select {
			case <-grown:
			case <-ctx.Done():
				yield(event.Event{}, ctx.Err())
				return
			}
		}
	}
}

// Do implements [tui.Session]. Inputs are processed in order.
func (s *remoteSession) Do(ctx context.Context, c host.Command) (string, error) {
	command := service.Command{ID: c.Run, Command: host.Command{Type: c.Type, Focus: c.Focus, Reason: c.Reason}}
	switch c.Type {
	case "input":
		if err := fill(&command.Command, c); err != nil {
			return "", err
		}
	case "answer":
		command.Question, command.Choice, command.Offer, command.Values, command.Args = c.Question, c.Choice, c.Offer, c.Values, c.Args
	case "continue", "compact", "cancel":
	case "close":
		s.stop()
		return "", nil
	default:
		return "", fmt.Errorf("a session of a service does not take the command %s", c.Type)
	}
	id, err := s.client.Send(ctx, s.id, command)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	if c.Type == "answer" && c.Run == "" && s.last != "" {
		s.runs[id] = s.last
	}
	return id, nil
}

// fill sets the content of an input.
func fill(to *host.Command, c host.Command) error {
	to.Content, to.Context = c.Content, c.Context
	if c.Own == nil {
		return nil
	}
	for _, p := range c.Own.Content {
		switch p := p.(type) {
		case model.Text:
			to.Content = append(to.Content, host.Part{Type: "text", Text: p.Text})
		case model.Image:
			to.Content = append(to.Content, host.Part{Type: "image", MediaType: p.MediaType, Data: p.Data})
		default:
			return fmt.Errorf("a session of a service does not take %T", p)
		}
	}
	for _, b := range c.Own.Context {
		to.Context = append(to.Context, host.Context{Source: b.Source, Text: b.Text})
	}
	return nil
}

// Work implements [tui.Session]. What runs in the background is not known here.
func (s *remoteSession) Work() []host.Work { return nil }

// WorkOutput implements [tui.Session].
func (s *remoteSession) WorkOutput(work string) (string, error) {
	return "", fmt.Errorf("the output of %s is on the service", display.OneLine(work, 80))
}

// WorkEvents implements [tui.Session].
func (s *remoteSession) WorkEvents(context.Context, string, event.Seq) iter.Seq2[event.Event, error] {
	return func(func(event.Event, error) bool) {}
}
