package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/seed-009c0928/agent/core/sse"
	"github.com/seed-009c0928/agent/sdk/service"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
	// silence is how long a stream may be silent: the service writes a comment every 15
	// seconds.
	silence = 45 * time.Second
)

// Events yields the events of a session behind a cursor, past and future, until ctx is
// done, with the deltas of what happens now in between. Cursor 0 is the beginning. A
// lost connection is made again; the error is the service's refusal, or that it could
// not be reached for [Options].Patience.
func (c *Client) Events(ctx context.Context, id string, cursor uint64) iter.Seq2[service.Record, error] {
	return c.events(ctx, path(id)+"/events", cursor)
}

// SubagentEvents yields those of a subagent of the session, which an event
// subagent_start names as child.
func (c *Client) SubagentEvents(ctx context.Context, id, child string, cursor uint64) iter.Seq2[service.Record, error] {
	return c.events(ctx, path(id)+"/events?agent="+url.QueryEscape(child), cursor)
}

func (c *Client) events(ctx context.Context, from string, cursor uint64) iter.Seq2[service.Record, error] {
	return func(yield func(service.Record, error) bool) {
		s := &stream{client: c, from: from, cursor: cursor, yield: yield}
		for since, pause := time.Now(), firstPause; ; {
			err := s.read(ctx)
			switch {
			case s.stopped:
				return
			case ctx.Err() != nil:
				yield(service.Record{}, context.Cause(ctx))
				return
			}
			if s.connected {
				s.connected, since, pause = false, time.Now(), firstPause
			}
			if refused := (*Error)(nil); errors.As(err, &refused) && refused.Status < 500 || errors.Is(err, errWrong) || time.Since(since) > c.patience {
				yield(service.Record{}, err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, maxPause)
		}
	}
}

// errWrong is the error of a stream that is not one of events.
var errWrong = errors.New("the service sent something that is not an event")

// stream is what is being read.
type stream struct {
	client    *Client
	from      string
	cursor    uint64
	yield     func(service.Record, error) bool
	connected bool // it was, since the last failure
	stopped   bool // the reader wants no more
}

// read connects, and yields what comes until the connection ends.
func (s *stream) read(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := s.client.request(ctx, http.MethodGet, s.from, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Last-Event-ID", strconv.FormatUint(s.cursor, 10))
	watch := time.AfterFunc(silence, func() { cancel(errors.New("the service fell silent")) })
	defer watch.Stop()
	res, err := s.client.http.Do(req)
	if err != nil {
		return unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		return failure(res, answer)
	}
	s.connected = true
	events := sse.NewReader(&watched{res.Body, watch}, maxAnswer)
	events.LastEventID = strconv.FormatUint(s.cursor, 10)
	for {
		e, err := events.Next()
		if err != nil {
			return fmt.Errorf("the stream of events ended: %w", err)
		}
		r, err := s.record(e.Data, events.LastEventID)
		if err != nil {
			return err
		}
		if !s.yield(r, nil) {
			s.stopped = true
			return nil
		}
	}
}

// record returns an event with its cursor. A delta has none: the last ID is that of an
// event before.
func (s *stream) record(data []byte, last string) (r service.Record, err error) {
	if err := json.Unmarshal(data, &r.Event); err != nil {
		return r, fmt.Errorf("%w: %w", errWrong, err)
	}
	cursor, err := strconv.ParseUint(last, 10, 64)
	if err != nil {
		return r, fmt.Errorf("%w: its id is %.30q", errWrong, last)
	}
	if cursor != s.cursor {
		s.cursor, r.Cursor = cursor, cursor
	}
	return r, nil
}

// watched is a body whose bytes put the end of patience off.
type watched struct {
	io.Reader
	watch *time.Timer
}

// Read implements [io.Reader].
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.watch.Reset(silence)
	}
	return n, err
}
