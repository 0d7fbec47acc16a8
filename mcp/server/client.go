package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// maxRunning limits the concurrent requests of one client.
const maxRunning = 128

var (
	errCancelled = errors.New("cancelled by the client")
	errLeft      = errors.New("the client disconnected")
)

// abandoned reports whether the client no longer waits for the response.
func abandoned(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, errCancelled) || errors.Is(cause, errLeft)
}

// client is the state of a connection or an HTTP session: the client's
// capabilities and requests in progress, and the server's requests to it. It is
// safe for concurrent use.
type client struct {
	changed func()        // notifies it of changed tools; does not block
	left    chan struct{} // closed when it has disconnected

	mu      sync.Mutex
	caps    mcp.ClientCapabilities
	running map[string]context.CancelCauseFunc // by request ID
	work    sync.WaitGroup                     // of running requests, until their response is sent
	asked   map[string]chan jsonrpc.Message    // by ID of our request
	last    int                                // ID of a request to it
}

func newClient(changed func()) *client {
	return &client{changed: changed, left: make(chan struct{}), running: map[string]context.CancelCauseFunc{}, asked: map[string]chan jsonrpc.Message{}}
}

func (c *client) setCapabilities(can mcp.ClientCapabilities) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caps = can
}

func (c *client) capabilities() mcp.ClientCapabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caps
}

// begin admits a request. Its context ends when the client cancels it or
// disconnects. The caller calls done before it sends the response, after which
// the ID may be reused, and c.work.Done at the end.
func (c *client) begin(ctx context.Context, id json.RawMessage) (own context.Context, done func(), refused *jsonrpc.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.left:
		return nil, nil, fault(mcp.INVALID_REQUEST, "the session has ended")
	default:
	}
	key := string(id)
	switch {
	case c.running[key] != nil:
		return nil, nil, fault(mcp.INVALID_REQUEST, "a request with the ID %.100s is in progress: use another ID", key)
	case len(c.running) >= maxRunning:
		return nil, nil, fault(mcp.INTERNAL_ERROR, "%d requests are in progress: wait for one of them to end", maxRunning)
	}
	own, cancel := context.WithCancelCause(ctx)
	c.running[key] = cancel
	c.work.Add(1)
	return own, sync.OnceFunc(func() {
		c.mu.Lock()
		delete(c.running, key)
		c.mu.Unlock()
		cancel(nil)
	}), nil
}

// cancel cancels a request of the client.
func (c *client) cancel(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.running[string(id)]; cancel != nil {
		cancel(errCancelled)
	}
}

// leave cancels all requests; no more can begin. It may be called repeatedly.
func (c *client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.left:
		return
	default:
	}
	close(c.left)
	for _, cancel := range c.running {
		cancel(errLeft)
	}
}

// ask sends the client a request and waits for its result. If ctx ends first, the
// request is cancelled.
func (c *client) ask(ctx context.Context, tell sendFunc, method mcp.MCPMethod, params any) (json.RawMessage, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	response := make(chan jsonrpc.Message, 1)
	c.mu.Lock()
	c.last++
	id := strconv.Itoa(c.last)
	c.asked[id] = response
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.asked, id)
	}
	defer forget()
	if err := tell(jsonrpc.Message{Version: mcp.JSONRPC_VERSION, ID: json.RawMessage(id), Method: string(method), Params: body}); err != nil {
		return nil, err
	}
	select {
	case m := <-response:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-ctx.Done():
		forget()
		_ = tell(notification(mcp.MethodNotificationCancelled, map[string]any{"requestId": json.RawMessage(id), "reason": context.Cause(ctx).Error()})) // best effort
		return nil, context.Cause(ctx)
	}
}

// answered delivers the client's response to a request, and reports whether one
// was waiting for it.
func (c *client) answered(m jsonrpc.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	response, ok := c.asked[string(m.ID)]
	delete(c.asked, string(m.ID)) // the first response counts
	if ok {
		response <- m
	}
	return ok
}
