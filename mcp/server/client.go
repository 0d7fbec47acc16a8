package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/mcp/internal/jsonrpc"
)

// maxRunning is the number of requests of one client that may be under way.
const maxRunning = 128

var (
	errTakenBack = errors.New("the client took it back")
	errLeft      = errors.New("the client left")
)

// unwanted reports whether the client of a request does not wait for its answer.
func unwanted(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, errTakenBack) || errors.Is(cause, errLeft)
}

// client is the other side of a connection or of an HTTP session: what it can
// do, which of its requests are under way, and what it was asked. It is safe
// for concurrent use.
type client struct {
	changed func()        // tells it that the tools have changed; does not block
	left    chan struct{} // closed when it has left

	mu      sync.Mutex
	can     mcp.ClientCapabilities
	running map[string]context.CancelCauseFunc // by the id of the request
	work    sync.WaitGroup                     // of what is running, up to the delivery of its answer
	asked   map[string]chan jsonrpc.Message    // by the id of the question
	last    int                                // id that was given to a question
}

func newClient(changed func()) *client {
	return &client{changed: changed, left: make(chan struct{}), running: map[string]context.CancelCauseFunc{}, asked: map[string]chan jsonrpc.Message{}}
}

// introduce keeps what the client said of itself.
func (c *client) introduce(can mcp.ClientCapabilities) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.can = can
}

func (c *client) capabilities() mcp.ClientCapabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.can
}

// begin admits a request: its context ends when the client takes it back or
// leaves. The caller calls done before it sends the answer, after which the id
// may come again, and c.work.Done when all is over.
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
		return nil, nil, fault(mcp.INVALID_REQUEST, "a request with the id %.100s is under way: expected another id", key)
	case len(c.running) >= maxRunning:
		return nil, nil, fault(mcp.INTERNAL_ERROR, "%d requests are under way: wait for one of them to end", maxRunning)
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

// takeBack ends a request that the client wants no answer to any more.
func (c *client) takeBack(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.running[string(id)]; cancel != nil {
		cancel(errTakenBack)
	}
}

// leave ends what is under way; nothing begins after it. It may be called more
// than once.
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

// ask sends the client a request and waits for its result. A question that
// nobody waits for any more is taken back.
func (c *client) ask(ctx context.Context, tell outlet, method mcp.MCPMethod, params any) (json.RawMessage, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	came := make(chan jsonrpc.Message, 1)
	c.mu.Lock()
	c.last++
	id := strconv.Itoa(c.last)
	c.asked[id] = came
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
	case m := <-came:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-ctx.Done():
		forget()
		_ = tell(notification(mcp.MethodNotificationCancelled, map[string]any{"requestId": json.RawMessage(id), "reason": context.Cause(ctx).Error()})) // a courtesy
		return nil, context.Cause(ctx)
	}
}

// answered takes the client's answer to a question, and reports whether there
// is one that waits for it.
func (c *client) answered(m jsonrpc.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	came, ok := c.asked[string(m.ID)]
	delete(c.asked, string(m.ID)) // the first answer counts
	if ok {
		came <- m
	}
	return ok
}
