package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/client"
)

// quiet is how long nothing comes when all events that there are have come.
const quiet = time.Second

// Past returns a session and its events so far, without deltas. A session that is not
// running ends with a session_end; of others, the past is what comes without a pause.
func Past(ctx context.Context, c *client.Client, id string) (s service.Session, past []service.Record, err error) {
	if s, err = c.Get(ctx, id); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no session %s on the service", id)
		}
		return s, nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	pause := time.AfterFunc(5*quiet, stop) // the first one may take longer
	defer pause.Stop()
	for r, err := range c.Events(ctx, id, 0) {
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
