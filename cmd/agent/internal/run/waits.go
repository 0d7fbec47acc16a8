package run

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// listWaiting lists the questions that sessions here are parked with.
func (o *Options) listWaiting(ctx context.Context) error {
	home, err := o.AgentHome()
	if err != nil {
		return err
	}
	dir := agent.SessionsDir(home)
	list, err := store.List(dir)
	if err != nil {
		fmt.Fprintf(o.Err, "agent: skipped unreadable sessions: %v\n", err)
	}
	t := cmdutil.NewTable(o.Out, "ID", "AGE", "QUESTION", "SESSION")
	open := 0
	for _, s := range list {
		if s.Parent != "" || s.Moved {
			continue
		}
		questions, err := parkedWith(ctx, dir, s.ID)
		if err != nil {
			fmt.Fprintf(o.Err, "agent: skipped session %s: %v\n", s.ID, err)
		}
		for _, q := range questions {
			open++
			t.Row(q.QID, cmdutil.Age(time.Since(s.Time)), display.OneLine(q.Title, 60), display.OneLine(s.Text, 40))
		}
	}
	if open == 0 {
		fmt.Fprintln(o.Err, "No open questions.")
		return nil
	}
	return t.Flush()
}

// parkedWith returns the questions that a log ends with, as agent exec --on-ask park
// leaves them.
func parkedWith(ctx context.Context, dir, id string) (open event.Parked, err error) {
	for e, err := range store.Scan(ctx, dir, id, event.ParkedBy) {
		if err != nil {
			return nil, err
		}
		open.Add(e.Body)
	}
	return open, nil
}
