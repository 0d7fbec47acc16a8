package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/client"
)

// Find returns the session with an ID, or the only one whose ID begins so.
func Find(ctx context.Context, c *client.Client, prefix string) (service.Session, error) {
	s, err := c.Get(ctx, prefix)
	if prefix == "" || !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	found := &store.AmbiguousError{Prefix: prefix}
	for before, more := "", true; more; more = before != "" {
		list, next, failed := c.List(ctx, before, 0)
		if failed != nil {
			return s, failed
		}
		for _, one := range list {
			if strings.HasPrefix(one.ID, prefix) {
				s, found.IDs = one, append(found.IDs, one.ID)
			}
		}
		before = next
	}
	switch len(found.IDs) {
	case 0:
		return s, err
	case 1:
		return s, nil
	}
	return service.Session{}, &cmdutil.UsageError{Err: found}
}

// quiet is how long nothing comes when all events that there are have come.
const quiet = time.Second

// Past returns a session and its events so far, without deltas. A session that is not
// running ends with a session_end; of others, the past is what comes without a pause.
func Past(ctx context.Context, c *client.Client, id string) (s service.Session, past []service.Record, err error) {
	if s, err = Find(ctx, c, id); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no session %s on the service", id)
		}
		return s, nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	pause := time.AfterFunc(5*quiet, stop) // the first one may take longer
	defer pause.Stop()
	for r, err := range c.Events(ctx, s.ID, 0) {
		if err != nil {
			if ctx.Err() != nil && !pause.Stop() {
				return s, past, nil
			}
			return s, past, err
		}
		pause.Reset(quiet)
		if r.Cursor > 0 {
			past = append(past, r)
		}
		if _, ends := r.Event.Body.(event.SessionEnd); ends && s.State != service.StateRunning && s.State != service.StateQueued && !r.Event.Time.Before(s.Updated) {
			break
		}
	}
	return s, past, nil
}
