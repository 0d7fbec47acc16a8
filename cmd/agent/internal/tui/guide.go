package tui

import (
	"context"
	"errors"
	"iter"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	sessions "github.com/seed-009c0928/agent/sdk/host"
)

// Steps are what [Guide] goes through with the user. They ask with the Asker of the
// options; say shows Markdown.
type Steps func(ctx context.Context, say func(markdown string)) error

// Guide runs steps on the terminal, before there is a session. It needs no
// Options.Session. The error is that of the steps, which is a cancelled context
// after Ctrl-C, or [ErrTerminated].
func Guide(ctx context.Context, o Options, steps Steps) error {
	o.Session, o.steps = noSession{}, steps
	_, err := Run(ctx, o)
	return err
}

// Messages of the steps of a guide.
type (
	sayMsg    string
	guidedMsg struct {
		job job
		err error
	}
)

// guide runs the steps as a command of the user.
func (d *driver) guide() {
	j := d.newJob()
	d.wg.Go(func() {
		var err error
		defer func() { d.post(guidedMsg{j, err}) }()
		defer d.guard(&err)
		err = d.steps(j.ctx, func(text string) { d.post(sayMsg(text)) })
	})
}

// noSession is a session in which nothing happens.
type noSession struct{}

func (noSession) ID() string        { return "" }
func (noSession) Past() event.Seq   { return 0 }
func (noSession) Now() sessions.Now { return sessions.Now{State: core.StateIdle} }

func (noSession) Do(context.Context, sessions.Command) (string, error) {
	return "", errors.New("there is no session yet")
}

func (noSession) Events(ctx context.Context, _ event.Seq) iter.Seq2[event.Event, error] {
	return func(func(event.Event, error) bool) { <-ctx.Done() }
}

func (noSession) Work() []sessions.Work             { return nil }
func (noSession) WorkOutput(string) (string, error) { return "", nil }
func (s noSession) WorkEvents(ctx context.Context, _ string, after event.Seq) iter.Seq2[event.Event, error] {
	return s.Events(ctx, after)
}
