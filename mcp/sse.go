package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/sse"
)

// sseLink is the transport of 2024-11-05: all messages of the server arrive in one
// event stream, and each message to it is a POST.
type sseLink struct {
	web
	mu       sync.Mutex
	endpoint string // the URL for messages; empty until the server sends it
}

// start implements [transport]. It returns when the server has sent its endpoint.
func (t *sseLink) start(ctx context.Context) error {
	ready := make(chan error, 1)
	t.spawn(func() { t.listen(ready) })
	select {
	case err := <-ready:
		return err
	case <-ctx.Done():
		t.fail(ctx.Err())
		return fmt.Errorf("%w (the server opened no event stream)", ctx.Err())
	}
}

// listen reads the stream to its end. It sends to ready once: nil when the
// endpoint is known, or else an error.
func (t *sseLink) listen(ready chan<- error) {
	report := func(err error) {
		select {
		case ready <- err:
		default:
		}
	}
	err := t.stream(func() { report(nil) })
	if err == nil {
		err = errors.New("the server ended the event stream")
	}
	t.fail(err)
	report(err)
}

func (t *sseLink) stream(ready func()) error {
	resp, err := t.do(t.ctx, http.MethodGet, t.address.String(), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return t.readEvents(resp.Body, &cursor{}, func(event string, data []byte) error {
		switch event {
		case "endpoint":
			if err := t.setEndpoint(string(data)); err != nil {
				return err
			}
			ready()
		case "message", "":
			t.receive(nil, data)
		}
		return nil
	})
}

// setEndpoint sets the URL for messages. It must be one of the same server, as
// messages have its headers.
func (t *sseLink) setEndpoint(text string) error {
	u, err := t.address.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != t.address.Scheme || u.Host != t.address.Host {
		return fmt.Errorf("the endpoint %.200q is not on the same server", text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.endpoint == "" {
		t.endpoint = u.String()
	}
	return nil
}

// send implements [transport].
func (t *sseLink) send(ctx context.Context, m outgoing) error {
	t.mu.Lock()
	endpoint := t.endpoint
	t.mu.Unlock()
	resp, err := t.do(ctx, http.MethodPost, endpoint, encode(m.Message), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
	return err
}

// close implements [transport]. The stream ends with the session.
func (*sseLink) close() {}

// cursor is where an event stream can be resumed.
type cursor struct {
	id    string        // of the last event
	retry time.Duration // how long to wait before
}

// readEvents reads server-sent events until the stream ends or emit fails, and
// keeps at up to date. The data is valid until emit returns.
func (w *web) readEvents(r io.Reader, at *cursor, emit func(event string, data []byte) error) error {
	events := sse.NewReader(r, w.maxMessage)
	events.LastEventID, events.Retry = at.id, at.retry
	for {
		ev, err := events.Next()
		at.id, at.retry = events.LastEventID, max(events.Retry, minRetry)
		switch {
		case err == nil, errors.Is(err, sse.ErrIncomplete): // some servers leave out the last blank line
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, sse.ErrTooLong):
			return tooLong(w.maxMessage)
		default:
			return err
		}
		if len(ev.Data) > 0 {
			if err := emit(ev.Type, ev.Data); err != nil {
				return err
			}
		}
	}
}
