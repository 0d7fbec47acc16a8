package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/mcp/internal/jsonrpc"
)

const (
	// firstRetry is the wait before a stream is opened again whose server does
	// not say how long it is, minRetry the shortest that one can ask for, and
	// maxRetry the longest for a server that does not answer.
	firstRetry = time.Second
	minRetry   = 10 * time.Millisecond
	maxRetry   = time.Minute
	// farewell bounds the request that ends a session.
	farewell = 4 * time.Second
)

// streamable is the transport over streamable HTTP: each message is a POST, and
// the response to a request is a stream of its own. Up to 2025-11-25 there is a
// session, one more stream for what belongs to no request, and streams that
// end early are taken up again. 2026-07-28 has none of these, and says in
// headers what a request is.
//
// https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
// https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
type streamable struct {
	web
	id atomic.Value // string: of the session
}

// errSessionGone is the error of a request with a session that the server does
// not know any more.
var errSessionGone = errors.New("the session has expired")

// start implements [transport]. Connections are made as they are needed.
func (t *streamable) start(context.Context) error { return nil }

// send implements [transport].
func (t *streamable) send(ctx context.Context, m outgoing) error {
	headers := t.identify(m.headers)
	if m.Method != "" && m.HasID() {
		maps.Copy(headers, mcp.StandardHeaders(t.version(), mcp.MCPMethod(m.Method), m.Params))
	}
	resp, err := t.do(ctx, http.MethodPost, t.address.String(), encode(m.Message), headers)
	if err != nil {
		return t.refused(ctx, m, headers, err)
	}
	defer resp.Body.Close()
	if m.Method == string(mcp.MethodInitialize) {
		t.id.Store(resp.Header.Get(mcp.HeaderSessionID))
	}
	if m.Method == "" || !m.HasID() {
		return nil
	}
	return t.await(ctx, m.ID, resp)
}

// identify returns the headers, and that of the session.
func (t *streamable) identify(headers map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, headers)
	if id, _ := t.id.Load().(string); id != "" {
		all[mcp.HeaderSessionID] = id
	}
	return all
}

// refused is what a response means that is none of success. One with an error
// of JSON-RPC is an answer.
func (t *streamable) refused(ctx context.Context, m outgoing, headers map[string]string, err error) error {
	status := (*statusError)(nil)
	if !errors.As(err, &status) || status.code == http.StatusUnauthorized {
		return err
	}
	if status.code == http.StatusNotFound && headers[mcp.HeaderSessionID] != "" {
		return errSessionGone
	}
	if _, parseErr := jsonrpc.Parse(status.body); parseErr == nil && m.Method != "" && t.take(ctx, m.ID, status.body) {
		return nil
	}
	return err
}

// take receives the body of the response to a request, and reports whether the
// answer was in it. An error is, whatever its id: there may be none where the
// request was not understood.
func (t *streamable) take(ctx context.Context, id json.RawMessage, body []byte) bool {
	if m, err := jsonrpc.Parse(body); err == nil && m.Version == mcp.JSONRPC_VERSION && m.Method == "" && m.Error != nil {
		m.ID = id
		body = encode(m)
	}
	t.receive(pendingOf(ctx), body)
	return !t.waits(id)
}

// await reads the response to a request until the answer has come.
func (t *streamable) await(ctx context.Context, id json.RawMessage, resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if !t.take(ctx, id, body) {
			return fmt.Errorf("its response holds no answer to the request: %s", clip(cleanLine(string(body)), 100))
		}
		return nil
	case "text/event-stream":
		return t.follow(ctx, id, resp.Body)
	}
	return fmt.Errorf("its response (HTTP status %s) is of the type %.100q, not application/json or text/event-stream", resp.Status, resp.Header.Get("Content-Type"))
}

// errAnswered ends a stream that brought what it is for.
var errAnswered = errors.New("answered")

// follow reads the stream of a request. One that the server ends before the
// answer is taken up again, where the server has said at which event.
func (t *streamable) follow(ctx context.Context, id json.RawMessage, body io.ReadCloser) error {
	at, p := cursor{retry: firstRetry}, pendingOf(ctx)
	for {
		err := t.readEvents(body, &at, func(_ string, data []byte) error {
			t.receive(p, data)
			if !t.waits(id) {
				return errAnswered
			}
			return nil
		})
		body.Close()
		switch {
		case errors.Is(err, errAnswered):
			return nil
		case err != nil:
			return err
		case at.id == "" || t.modern():
			return errors.New("its response ended without an answer to the request")
		}
		if body, err = t.reopen(ctx, &at); err != nil {
			return fmt.Errorf("the stream with the answer has ended and could not be taken up again: %w", err)
		}
	}
}

// reopen opens a stream at an event, when the time for that has come.
func (t *streamable) reopen(ctx context.Context, at *cursor) (io.ReadCloser, error) {
	timer := time.NewTimer(at.retry)
	defer timer.Stop()
	select {
	case <-timer.C:
		return t.open(ctx, at)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open opens a stream of what belongs to no request or, from an event on, of
// what belongs to the same as that.
func (t *streamable) open(ctx context.Context, at *cursor) (io.ReadCloser, error) {
	headers := t.identify(nil)
	if at.id != "" {
		headers[mcp.HeaderLastEventID] = at.id
	}
	resp, err := t.do(ctx, http.MethodGet, t.address.String(), nil, headers)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		resp.Body.Close()
		return nil, &statusError{http.StatusMethodNotAllowed, resp.Status, []byte("it is no stream of events")}
	}
	return resp.Body, nil
}

// listen begins to read what belongs to no request of ours, such as that a list
// has changed.
func (t *streamable) listen(ctx context.Context) {
	opened := make(chan struct{})
	if !t.spawn(func() { t.listenOn(sync.OnceFunc(func() { close(opened) })) }) {
		return
	}
	soon(ctx, opened)
}

// listenOn reads until the connection ends, or the server turns out to offer no
// such stream. Answered is called when it has answered for the first time.
func (t *streamable) listenOn(answered func()) {
	at, wait := cursor{}, firstRetry
	for {
		begin := time.Now()
		body, err := t.open(t.ctx, &at)
		answered()
		if err == nil {
			_ = t.readEvents(body, &at, func(_ string, data []byte) error {
				t.receive(nil, data)
				return nil
			})
			body.Close()
			if time.Since(begin) > wait {
				wait = firstRetry
			}
		}
		if status := (*statusError)(nil); errors.As(err, &status) && status.code/100 == 4 || errors.Is(err, ErrSignIn) {
			return
		}
		timer := time.NewTimer(max(wait, at.retry))
		select {
		case <-timer.C:
			wait = min(2*wait, maxRetry)
		case <-t.ctx.Done():
			timer.Stop()
			return
		}
	}
}

// close implements [transport]. It tells the server that the session is over.
func (t *streamable) close() {
	headers := t.identify(nil)
	if headers[mcp.HeaderSessionID] == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if resp, err := t.do(ctx, http.MethodDelete, t.address.String(), nil, headers); err == nil {
		resp.Body.Close() // a server need not listen
	}
}
