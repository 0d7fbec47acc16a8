package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/service"
)

// runOn lists the sessions of a service, the newest first.
func (o *listOptions) runOn(ctx context.Context) error {
	c, err := remote.Connect(ctx, o.IO, o.on)
	if err != nil {
		return err
	}
	defer c.Close()
	all := []service.Session{}
	for before, more := "", true; more; more = before != "" {
		var page []service.Session
		if page, before, err = c.List(ctx, before, 0); err != nil {
			return err
		}
		all = append(all, page...)
	}
	switch {
	case o.json:
		return cmdutil.WriteJSON(o.Out, all)
	case len(all) == 0:
		fmt.Fprintf(o.Err, "No sessions on %s.\n", o.on)
		return nil
	}
	t := cmdutil.NewTable(o.Out, "ID", "AGE", "STATE", "TITLE")
	for _, s := range all {
		state := string(s.State)
		if n := len(s.Questions); n > 0 {
			state += ", " + display.Plural(n, "question")
		}
		t.Row(s.ID, cmdutil.Age(time.Since(s.Updated)), state, display.OneLine(s.Title, 60))
	}
	return t.Flush()
}

// runOn shows a session of a service as it is now.
func (o *showOptions) runOn(ctx context.Context, id string) error {
	if o.changes {
		return cmdutil.Usagef("--changes: not with --%s, as a service records no changes of files", remote.Flag)
	}
	c, err := remote.Connect(ctx, o.IO, o.on)
	if err != nil {
		return err
	}
	defer c.Close()
	s, past, err := remote.Past(ctx, c, id)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(o.Out)
	var t transcript = &plainTranscript{out: out}
	if o.json {
		t = &jsonTranscript{out: out}
	}
	about := store.Summary{ID: s.ID, Created: s.Created, Time: s.Updated}
	for _, r := range past {
		if start, ok := r.Event.Body.(event.SessionStart); ok {
			about.Cwd = start.Cwd
		}
	}
	t.begin(about)
	for _, r := range past {
		t.show(r.Event)
	}
	t.end()
	if !o.json {
		fmt.Fprintf(out, "\nState:     %s\n", s.State)
		if s.Error != "" {
			fmt.Fprintf(out, "Error:     %s\n", display.OneLine(s.Error, 1000))
		}
		for _, q := range s.Questions {
			fmt.Fprintf(out, "Question:  %s\n           agent answer --on %s %s yes|no|rule\n", display.OneLine(q.Title, 1000), o.on, q.QID)
		}
	}
	return errors.Join(err, out.Flush())
}
