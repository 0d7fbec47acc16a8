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

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

const (
	// firstRetry is the default wait before a stream is reopened, minRetry the
	// shortest that a server can request, and maxRetry the longest for a server
	// that does not respond.
	firstRetry = time.Second
	minRetry   = 10 * time.Millisecond
	maxRetry   = time.Minute
	// deleteTimeout limits the request that ends a session.
	deleteTimeout = 4 * time.Second
)

// streamable is the streamable HTTP transport: each message is a POST, and the
// response to a request may be a stream. Up to 2025-11-25 there are sessions, an
// additional stream for messages that belong to no request, and interrupted
// streams are resumed. 2026-07-28 has none of these, but describes requests in
// headers.
//
// https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http
// https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
type streamable struct {
	web
	id atomic.Value // string: session ID
}

// errSessionGone is the error of a request in a session that the server has
// dropped.
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
		return t.handleError(ctx, m, headers, err)
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

// identify adds the session header.
func (t *streamable) identify(headers map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, headers)
	if id, _ := t.id.Load().(string); id != "" {
		all[mcp.HeaderSessionID] = id
	}
	return all
}

// handleError handles an error response to a message. Its body may be a JSON-RPC
// error response.
func (t *streamable) handleError(ctx context.Context, m outgoing, headers map[string]string, err error) error {
	status := (*statusError)(nil)
	if !errors.As(err, &status) || status.code == http.StatusUnauthorized {
		return err
	}
	if status.code == http.StatusNotFound && headers[mcp.HeaderSessionID] != "" {
		return errSessionGone
	}
	if _, parseErr := jsonrpc.Parse(status.body); parseErr == nil && m.Method != "" && t.takeAnswer(ctx, m.ID, status.body) {
		return nil
	}
	return err
}

// handle receives the body of the response to a request, and reports whether the
// answer was in it. An error is, whatever its id: there may be none where the
// request was not understood.
func (t *streamable) takeAnswer(ctx context.Context, id json.RawMessage, body []byte) bool {
	if m, err := jsonrpc.Parse(body); err == nil && m.Version == mcp.JSONRPC_VERSION && m.Method == "" && m.Error != nil {
		m.ID = id
		body = encode(m)
	}
	t.receive(pendingOf(ctx), body)
	return !t.waits(id)
}

// await reads the response to a request until the request is answered.
func (t *streamable) await(ctx context.Context, id json.RawMessage, resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if !t.takeAnswer(ctx, id, body) {
			return fmt.Errorf("the response does not answer the request: %s", clip(cleanLine(string(body)), 100))
		}
		return nil
	case "text/event-stream":
		return t.follow(ctx, id, resp.Body)
	}
	return fmt.Errorf("the response (HTTP status %s) has the type %.100q; expected application/json or text/event-stream", resp.Status, resp.Header.Get("Content-Type"))
}

// errAnswered ends the stream of a request.
var errAnswered = errors.New("answered")

// follow reads the stream of a request. If it ends before the request is answered
// and events have IDs, it is resumed.
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
			return errors.New("the response ended without answering the request")
		}
		if body, err = t.reopen(ctx, &at); err != nil {
			return fmt.Errorf("the response stream was interrupted and could not be resumed: %w", err)
		}
	}
}

// reopen resumes a stream after an event, when the retry delay has passed.
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

// open opens a stream of messages that belong to no request or, after an event,
// resumes the stream of that event.
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
		return nil, &statusError{http.StatusMethodNotAllowed, resp.Status, []byte("not an event stream")}
	}
	return resp.Body, nil
}

// listen starts reading messages that belong to no request, such as list changes.
func (t *streamable) listen(ctx context.Context) {
	opened := make(chan struct{})
	if !t.spawn(func() { t.listenOn(sync.OnceFunc(func() { close(opened) })) }) {
		return
	}
	waitBriefly(ctx, opened)
}

// listenOn reads until the connection ends, or the server does not support the
// stream. It calls answered after the first response.
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

// close implements [transport]. It ends the server's session.
func (t *streamable) close() {
	headers := t.identify(nil)
	if headers[mcp.HeaderSessionID] == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	if resp, err := t.do(ctx, http.MethodDelete, t.address.String(), nil, headers); err == nil {
		resp.Body.Close() // servers may refuse it
	}
}
