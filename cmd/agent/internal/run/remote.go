package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/client"
)

// remoteTask is one prompt or answer for a session of a service, followed to its result.
type remoteTask struct {
	*Task
	client  *client.Client
	session string
	deny    bool // questions are answered with no, as nobody is asked

	// What is followed: what a command does, or what came after a time.
	command, question string
	since             time.Time

	opened    time.Time // when the session was last opened
	subagents subagents

	init    event.Init
	begun   bool
	pending []event.Event // of the last opening, before what is followed
	result  event.Result  // of all that was followed
}

// runOn runs a prompt, or the answer of agent answer, on the service at --on.
func (o *Options) runOn(ctx context.Context, args []string) error {
	if format(o.inputFormat) == FormatStream {
		return cmdutil.Usagef("--input-format stream-json: not with --on; programs use the API of the service, see docs/service.md")
	}
	session, err := remote.SessionOf(o.Given())
	if err != nil {
		return err
	}
	if o.Resume != "" && !remote.Kept(o.Given()) {
		return cmdutil.Usagef("--resume with --on: the session stays as it was created; leave out the other flags of sessions")
	}
	prompt, err := o.prompt(ctx, args)
	if err != nil {
		return err
	}
	c, err := remote.Connect(ctx, o.IO, o.On)
	if err != nil {
		return err
	}
	defer c.Close()
	t := &remoteTask{
		Task:   &Task{IO: o.IO, Format: format(o.format), verbose: o.Verbose, on: o.On, Prompt: prompt, reply: o.answer},
		client: c, deny: o.onAsk == onAskDeny,
	}
	if err := t.send(ctx, o.Resume, session); err != nil {
		return t.fail(t.explain(err))
	}
	out, err := t.run(ctx)
	if err = errors.Join(err, o.writeLast(out)); err != nil {
		return err
	}
	return status(out)
}

// explain adds which session an error is about.
func (t *remoteTask) explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no session %s: see agent sessions list --on %s", t.on, t.session, t.on)
	}
	return err
}

// send begins what is to be followed.
func (t *remoteTask) send(ctx context.Context, resume string, n client.NewSession) error {
	switch t.session = resume; {
	case t.reply != nil:
		return t.answer(ctx)
	case resume == "":
		n.Title, n.Content = display.OneLine(t.Prompt, 80), client.Text(t.Prompt)
		s, err := t.client.Create(ctx, n)
		t.session, t.command = s.ID, s.ID
		return err
	}
	s, err := remote.Find(ctx, t.client, resume)
	if err != nil {
		return err
	}
	if t.session = s.ID; t.Prompt != "" {
		t.command, err = t.client.Input(ctx, t.session, t.Prompt)
		return err
	}
	switch t.since = s.Updated; {
	case s.State == service.StateRunning || s.State == service.StateQueued: // attach
	case len(s.Questions) > 0:
		t.result = event.Result{Outcome: string(core.StopParked), Questions: s.Questions}
	case s.State == service.State(core.StateIdle):
		return errNoPrompt
	default:
		t.command, err = t.client.Send(ctx, t.session, service.Command{Command: host.Command{Type: "continue"}})
	}
	return err
}

// answer sends the answer to a question, which its ID or that of its session names.
func (t *remoteTask) answer(ctx context.Context) error {
	id := t.reply.question
	t.session = id
	s, err := remote.Find(ctx, t.client, id)
	if at := strings.LastIndex(id, "-"); errors.Is(err, fs.ErrNotExist) && at > 0 {
		if found, ferr := remote.Find(ctx, t.client, id[:at]); ferr == nil {
			s, err, id = found, nil, found.ID+id[at:]
		}
	} else if err == nil && len(s.Questions) > 0 {
		id = s.Questions[0].QID
	}
	if err != nil {
		return err
	}
	t.session = s.ID
	at := slices.IndexFunc(s.Questions, func(q event.Question) bool { return q.QID == id })
	if at < 0 {
		return fmt.Errorf("session %s does not wait for an answer to %s; it is %s", s.ID, t.reply.question, s.State)
	}
	choice, err := t.reply.choice(s.Questions[at])
	if err != nil {
		return err
	}
	return t.settle(ctx, s.Questions[at].QID, choice, t.reply.reason)
}

// listQuestions lists the open questions of the service at --on.
func (o *Options) listQuestions(ctx context.Context) error {
	c, err := remote.Connect(ctx, o.IO, o.On)
	if err != nil {
		return err
	}
	defer c.Close()
	t := cmdutil.NewTable(o.Out, "ID", "AGE", "QUESTION", "SESSION")
	open := 0
	for before, more := "", true; more; more = before != "" {
		var page []service.Session
		if page, before, err = c.List(ctx, before, 0); err != nil {
			return err
		}
		for _, s := range page {
			for _, q := range s.Questions {
				open++
				t.Row(q.QID, cmdutil.Age(time.Since(s.Updated)), display.OneLine(q.Title, 80), display.OneLine(s.Title, 40))
			}
		}
	}
	if open == 0 {
		fmt.Fprintf(o.Err, "No open questions on %s.\n", o.On)
		return nil
	}
	return t.Flush()
}

// settle answers a question, and follows what comes of it.
func (t *remoteTask) settle(ctx context.Context, question string, choice core.Choice, reason string) (err error) {
	t.question = question
	t.command, err = t.client.Send(ctx, t.session, service.Command{Command: host.Command{Type: "answer", Question: question, Choice: choice, Reason: reason}})
	return err
}

// run follows the session to the result, and shows what happens.
func (t *remoteTask) run(ctx context.Context) (core.Outcome, error) {
	view := &oneAtATime{view: t.newView()}
	var cancelling sync.WaitGroup
	defer cancelling.Wait()
	following, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	watched, stop := cmdutil.Interrupts(ctx, t.Err, func() { cancelling.Go(func() { t.cancel(following) }) })
	quiet := view.tick()
	err := t.follow(watched, view)
	t.subagents.end(err == nil)
	leave()
	quiet()
	sig := stop()
	if err != nil {
		fmt.Fprintf(t.Err, "agent: session %s continues on the service; to follow it: agent exec --on %s --resume %s\n", t.session, t.on, t.session)
		if sig != nil {
			err = sig
		}
		return core.Outcome{}, err
	}
	t.begin(view)
	out := core.Outcome{Stop: core.StopReason(t.result.Outcome), Text: t.result.Text, Denied: t.result.Denied}
	if err = resultError(t.result); err == nil {
		err = sig
	}
	t.result.ExitCode = OutcomeCode(out, err)
	shown := view.end(event.Event{V: event.Version, ID: t.session + "-result", Time: time.Now(), Session: t.session, Tokens: t.result.Usage.Total(), Body: t.result})
	if err == nil {
		err = shown
	}
	return out, err
}

// cancel cancels what the session is doing, unless ctx is done before the service knows.
func (t *remoteTask) cancel(ctx context.Context) {
	err := t.client.Cancel(ctx, t.session, "interrupted by Ctrl-C")
	if err == nil {
		var s service.Session
		if s, err = t.client.Get(ctx, t.session); err == nil && s.State == service.StateQueued {
			fmt.Fprintln(t.Err, "agent: the session waits for a worker, and is cancelled when one takes it; Ctrl-C leaves it to the service")
		}
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(t.Err, "agent: %v\n", err)
	}
}

// resultError returns the error of a result, whose code says what failed.
func resultError(r event.Result) error {
	if r.Error == nil {
		return nil
	}
	if code := model.ErrorCode(r.Error.Code); code != model.CodeUnknown && code != "" {
		return &model.Error{Code: code, Message: r.Error.Message}
	}
	return errors.New(r.Error.Message)
}

// follow shows events until the result. Questions are answered with no, unless the
// session is to be parked.
func (t *remoteTask) follow(ctx context.Context, view *oneAtATime) error {
	if t.result.Outcome != "" {
		return nil
	}
	waiting, stop := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { t.tellWhy(waiting) })
	defer telling.Wait()
	defer stop()
	for r, err := range t.client.Events(ctx, t.session, 0) {
		if err != nil {
			return err
		}
		done, err := t.event(ctx, r.Event, view)
		if t.begun {
			stop()
		}
		if done || err != nil {
			return err
		}
	}
	return nil
}

// whyEvery is how often it is asked why a session does not begin.
const whyEvery = 2 * time.Second

// tellWhy says why the service cannot run the session, until it can.
func (t *remoteTask) tellWhy(ctx context.Context) {
	last := ""
	tick := time.NewTicker(whyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s, err := t.client.Get(ctx, t.session)
		if err == nil && s.State == service.StateQueued && s.Error != "" && s.Error != last {
			last = s.Error
			fmt.Fprintf(t.Err, "agent: the service cannot run the session, and tries again: %s\n", display.OneLine(last, 1000))
		}
	}
}

// event takes in an event, and reports whether it was the last one.
func (t *remoteTask) event(ctx context.Context, e event.Event, view *oneAtATime) (done bool, err error) {
	result, ends := e.Body.(event.Result)
	start, ok := e.Body.(event.SessionStart)
	if ok {
		t.opened = e.Time
	}
	if ok && !t.begun {
		t.pending = nil
		t.init = event.Init{Agent: start.Agent, Cwd: start.Cwd, Provider: start.Provider, Model: start.Model, Profile: start.Profile, Tools: []string{}}
	}
	if !t.begun && !t.ours(e) {
		if !e.IsDelta() {
			t.pending = append(t.pending, e)
		}
		return false, nil
	}
	t.begin(view)
	if began, ok := e.Body.(event.SubagentStart); ok && t.Format == FormatStream {
		t.subagents.follow(ctx, t, began.Child, view)
	}
	if !ends {
		if t.Format == FormatStream || !reopens(e) {
			view.show(e)
		}
		return false, nil
	}
	if t.command != "" && result.Run != t.command {
		return false, nil
	}
	t.add(result)
	if t.deny && result.Outcome == string(core.StopParked) && len(result.Questions) > 0 {
		q := result.Questions[0]
		choice := core.ChoiceNo
		if slices.Contains(q.Choices, string(core.ChoiceDeny)) {
			choice = core.ChoiceDeny
		}
		return false, t.settle(ctx, q.QID, choice, "this call needs approval, and nobody can be asked")
	}
	return true, nil
}

// reopens reports whether an event is about the opening or closing of a session, which
// a service does for each command.
func reopens(e event.Event) bool {
	switch e.Body.(type) {
	case event.SessionStart, event.SessionEnd:
		return true
	}
	return false
}

// ours reports whether an event belongs to what is followed.
func (t *remoteTask) ours(e event.Event) bool {
	switch b := e.Body.(type) {
	case event.User:
		if t.command != "" && b.Input == t.command {
			return true
		}
	case event.Answer:
		if t.question != "" && b.QID == t.question {
			return true
		}
	case event.Result:
		if t.command != "" && b.Run == t.command {
			return true
		}
	}
	return !t.since.IsZero() && !e.Time.Before(t.since)
}

// begin shows the init event, once, and what came before in the same opening.
func (t *remoteTask) begin(view *oneAtATime) {
	if t.begun {
		return
	}
	t.begun = true
	init := t.init
	if init.Tools == nil {
		init.Tools = []string{}
	}
	init.Log = t.on + "/v1/sessions/" + t.session
	view.begin(event.Event{V: event.Version, ID: t.session + "-init", Time: time.Now(), Session: t.session, Body: init})
	for _, e := range t.pending {
		if _, ends := e.Body.(event.Result); !ends && (t.Format == FormatStream || !reopens(e)) {
			view.show(e)
		}
	}
	t.pending = nil
}

// add adds a result to those before, which questions ended.
func (t *remoteTask) add(r event.Result) {
	before := t.result
	r.Run = ""
	r.Rounds += before.Rounds
	r.DurationMS += before.DurationMS
	r.Usage = before.Usage.Add(r.Usage)
	r.Denied = append(append([]event.Permission{}, before.Denied...), r.Denied...)
	if before.CostUSD != nil && r.CostUSD != nil {
		sum := *before.CostUSD + *r.CostUSD
		r.CostUSD = &sum
	}
	t.result = r
}
