package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
)

// Protocol is the version of the host protocol, docs/host-protocol.md.
const Protocol = 1

// maxLine is the size of the longest line that is read.
const maxLine = 64 << 20

// Request is a line that a host writes: a command of sdk/host, hello, now or open.
type Request struct {
	ID       string `json:"id,omitempty" jsonschema:"the line is answered by a reply with this id"`
	Protocol int    `json:"protocol,omitempty" jsonschema:"of a hello: the version that the host speaks"`
	Open
	host.Command
}

// Reply is the answer to a line.
type Reply struct {
	Type     string      `json:"type"` // reply
	ID       string      `json:"id,omitempty"`
	Protocol int         `json:"protocol,omitempty"` // to a hello
	Run      string      `json:"run,omitempty"`      // its result event answers the input
	Now      *host.Now   `json:"now,omitempty"`      // to a now
	Error    *host.Error `json:"error,omitempty"`
}

// lines drives a session by lines of JSON on stdin and stdout.
type lines struct {
	*Task
	set     *setup.Setup
	options *Options
	shared  *sharing
	used    bool // the host sent a command

	handling sync.Mutex // held while a line is carried out and answered

	mu      sync.Mutex
	driven  *driven
	session *host.Session      // of driven; nil until it is open
	ended   chan struct{}      // closed after the last event of it
	unwatch context.CancelFunc // stops reading its events
	left    bool               // others drive it now
	out     *json.Encoder
	err     error // of writing
}

// runLines runs a session for a host.
func (o *Options) runLines(ctx context.Context, args []string) error {
	switch {
	case o.answer != nil:
		return cmdutil.Usagef("--input-format stream-json: use it with exec --resume ID, and send the answer as a line")
	case o.isolation.on():
		return cmdutil.Usagef("--input-format stream-json: leave out --worktree and --attempts, and run agent in the worktree")
	case format(o.format) != FormatStream:
		return cmdutil.Usagef("--input-format stream-json needs --output-format stream-json")
	case len(args) > 0:
		return cmdutil.Usagef("--input-format stream-json: prompts come as lines on stdin, not as arguments")
	}
	l, err := o.newLines(ctx, o.IO, &sharing{sessions: map[string]*driven{}})
	if err != nil {
		return err
	}
	defer cmdutil.PipeErrors()() // a host that has gone leaves a session that can be resumed
	watched, stop := cmdutil.Interrupts(ctx, l.Err, func() { l.do(host.Command{Type: "cancel", Reason: "interrupted by Ctrl-C"}) })
	err = l.run(watched)
	if sig := stop(); sig != nil {
		return sig
	}
	return err
}

// newLines returns lines on stdin and stdout, those of the command or of a connection.
func (o *Options) newLines(ctx context.Context, streams *cmdutil.IO, shared *sharing) (*lines, error) {
	shared.configuring.Lock()
	defer shared.configuring.Unlock()
	set, err := o.Load(streams)
	if err != nil {
		return nil, err
	}
	t := &Task{IO: streams, Format: FormatStream}
	if err := o.Configure(ctx, t, set); err != nil {
		return nil, cmdutil.Advise(err, setup.FirstRunAdvice(ctx, err))
	}
	t.Session.SaveRules = set.SaveRules
	return &lines{Task: t, set: set, options: o, shared: shared, out: json.NewEncoder(streams.Out)}, nil
}

// run opens the session and drives it until its end, or that of ctx, or until the host
// leaves it to others.
func (l *lines) run(ctx context.Context) error {
	d, err := l.openSession(ctx)
	if locked := (*store.LockedError)(nil); errors.As(err, &locked) && locked.Address != "" {
		return l.attach(ctx, locked)
	}
	if err != nil {
		return cmdutil.Advise(setup.SessionAdvice(err, l.Session.Resume), setup.FirstRunAdvice(ctx, err))
	}
	l.drive(ctx, d, d.session.Past())
	go l.read(ctx)
	for {
		d, ended := l.current()
		select {
		case <-ended:
			l.answered() // the line that ended it, too
		case <-ctx.Done():
		}
		if now, _ := l.current(); now != d && ctx.Err() == nil {
			continue // another session was opened
		}
		var closed error
		l.mu.Lock()
		left := l.left
		l.mu.Unlock()
		if !left || ctx.Err() != nil {
			closed = l.shared.close(d)
			<-ended
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		return errors.Join(closed, l.err)
	}
}

// openSession opens the session of the task.
func (l *lines) openSession(ctx context.Context) (*driven, error) {
	d := &driven{drivers: map[*lines]bool{}}
	d.host = host.New(l.set.Home, l.open(l.set, &d.init))
	var err error
	if d.session, err = d.host.Open(ctx, host.Open{ID: l.Session.Resume, Dir: l.Agent.Dir}); err != nil {
		return nil, err
	}
	return d, nil
}

// drive makes a session the one that the lines drive.
func (l *lines) drive(ctx context.Context, d *driven, after event.Seq) {
	l.shared.join(d, l)
	l.write(d.init)
	ended := make(chan struct{})
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	l.mu.Lock()
	if l.driven != nil {
		l.unwatch()
	}
	l.driven, l.session, l.ended, l.unwatch = d, d.session, ended, unwatch
	l.mu.Unlock()
	go func() {
		defer close(ended)
		defer unwatch()
		l.follow(d.session.AllEvents(watching, after))
	}()
}

func (l *lines) current() (*driven, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.driven, l.ended
}

// do carries out a command, if the session is open.
func (l *lines) do(c host.Command) {
	l.mu.Lock()
	s := l.session
	l.mu.Unlock()
	if s != nil {
		_, _ = s.Do(context.Background(), c)
	}
}

// open returns what opens the session of the command line, and sets its init event.
func (l *lines) open(set *setup.Setup, init *event.Event) host.Opener {
	return func(ctx context.Context, _ host.Open, asker core.Asker) (host.Opened, error) {
		a, err := l.place.OpenAgent(ctx, l.Agent)
		if err != nil {
			return host.Opened{}, err
		}
		l.Session.Asker = asker
		var s *agent.Session
		if err = l.ready(ctx, a); err == nil {
			s, err = a.NewSession(ctx, l.Session)
		}
		if err != nil {
			return host.Opened{}, errors.Join(err, a.Close())
		}
		setup.WarnIncomplete(l.IO, l.Agent.Skills.Library)
		if l.shared.socket != "" {
			if err := s.Advertise(l.shared.socket); err != nil {
				s.Warn(ctx, "LOCK", err.Error()) // other processes cannot attach
			}
		}
		*init = l.initEvent(ctx, a, s)
		body := init.Body.(event.Init)
		body.Protocol = Protocol
		init.Body = body
		return host.Opened{Session: s, Settings: l.settings(set, a, s, body), Close: a.Close}, nil
	}
}

// settings returns what a host can change while the session is open.
func (l *lines) settings(set *setup.Setup, a *agent.Agent, s *agent.Session, now event.Init) []host.Setting {
	request := l.Session.Request
	efforts := []string{string(model.EffortNone), string(model.EffortLow), string(model.EffortMedium), string(model.EffortHigh), string(model.EffortXHigh)}
	list := []host.Setting{{
		ID: "model", Name: "Model", Category: "model", Value: now.Model,
		Set: func(name string) error {
			_, _, err := set.UseModel(context.Background(), s, now.Provider, name)
			return err
		},
	}, {
		ID: "effort", Name: "Effort", Category: "thought_level", Value: string(request.Effort), Values: efforts,
		Set: func(value string) error {
			request.Effort = model.Effort(value)
			s.SetRequest(request)
			return nil
		},
	}}
	if p, ok := a.Policy().(*permissions.Policy); ok {
		list = append(list, host.Setting{
			ID: "mode", Name: "Permission mode", Category: "mode", Value: now.Mode, Values: modes(set, p), Lapse: setup.LapsingModes(),
			Set: func(value string) error {
				s.SetPolicy(p.WithMode(permissions.Mode(value)))
				return nil
			},
		})
	}
	return list
}

// modes returns the permission modes that can be used here.
func modes(set *setup.Setup, p *permissions.Policy) (list []string) {
	for _, m := range permissions.Modes() {
		if m != permissions.ModeWorkspace || set.Trusted && p.Sandboxed() {
			list = append(list, string(m))
		}
	}
	return list
}

// follow writes events until they end.
func (l *lines) follow(events func(func(event.Event, error) bool)) {
	for e, err := range events {
		if errors.Is(err, context.Canceled) {
			return // another session is driven now
		}
		if err != nil {
			fmt.Fprintf(l.Err, "agent: reading the session's events: %v\n", err)
			return
		}
		l.write(e)
	}
}

// write writes one line. If the host does not read any more, the session is detached,
// unless others drive it.
func (l *lines) write(line any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || l.left {
		return
	}
	if l.err = l.out.Encode(line); l.err == nil || l.session == nil {
		return
	}
	if l.shared.leave(l.driven, l) {
		_, _ = l.session.Do(context.Background(), host.Command{Type: "detach"})
	} else {
		l.left = true
		l.unwatch()
	}
}

// read carries out the lines on stdin. At their end the work that was begun is
// finished, unless it needs an answer.
func (l *lines) read(ctx context.Context) {
	in := bufio.NewReaderSize(l.In, 64<<10)
	for {
		line, long, err := readLine(in)
		switch {
		case long:
			l.write(Reply{Type: "reply", Error: &host.Error{Code: host.CodeInvalid, Message: fmt.Sprintf("the line is longer than %d MiB", maxLine>>20)}})
		case len(bytes.TrimSpace(line)) > 0:
			l.handle(ctx, line)
		}
		if err != nil {
			break
		}
	}
	d, _ := l.current()
	last := l.shared.leave(d, l)
	if ctx.Err() != nil {
		return
	}
	if last {
		d.session.Leave(ctx, func() bool { return l.shared.abandoned(d) })
	}
	if !last || d.session.Now().State != core.StateClosed {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.left = true
		l.unwatch()
	}
}

// readLine reads a line; of one that is too long it returns nothing.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			line, long = line[:0], true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if long {
				line = nil
			}
			return line, long, err
		}
	}
}

// answered waits until the line that is being carried out is answered.
func (l *lines) answered() {
	l.handling.Lock()
	defer l.handling.Unlock()
}

// handle carries out one line. A line with an ID is answered, and so is a wrong one.
func (l *lines) handle(ctx context.Context, line []byte) {
	l.handling.Lock()
	defer l.handling.Unlock()
	var r Request
	reply := Reply{Type: "reply"}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(&r)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("text after the JSON object")
		}
	}
	reply.ID = r.ID
	switch {
	case err != nil:
		err = invalidf("the line is not a command: %v", err)
	case r.Type == "hello":
		if reply.Protocol = Protocol; r.Protocol != Protocol {
			err = invalidf("protocol %d is not supported: this is version %d", r.Protocol, Protocol)
		}
	case r.Type == "now":
		now := l.session.Now()
		reply.Now = &now
	case r.Type == "open":
		err = l.reopen(ctx, r.Open)
	default:
		l.used = true
		reply.Run, err = l.session.Do(ctx, r.Command)
	}
	if err != nil && !errors.As(err, &reply.Error) {
		reply.Error = &host.Error{Code: host.CodeFailed, Message: err.Error()}
	}
	if r.ID != "" || reply.Error != nil {
		l.write(reply)
	}
}

func invalidf(format string, args ...any) error {
	return &host.Error{Code: host.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}
