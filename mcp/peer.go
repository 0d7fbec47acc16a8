package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// maxServerRequests bounds the requests of a server that are worked on at once.
const maxServerRequests = 16

// peer sorts what comes over a connection that carries everything in one
// stream, stdio and SSE: responses go to who waits for them, requests and
// notifications to their handlers. What is none of these is counted and
// dropped. receive never blocks and never waits for a handler.
type peer struct {
	// write sends one message; it returns when it was sent or ctx is done.
	write func(ctx context.Context, message []byte) error

	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	waiting  map[string]chan message
	handling map[string]context.CancelFunc // requests of the server, by their ids
	notify   func(mcp.JSONRPCNotification)
	handle   transport.RequestHandler
	wg       sync.WaitGroup // of handlers
	dropped  atomic.Int64
}

func newPeer() *peer {
	p := &peer{waiting: map[string]chan message{}, handling: map[string]context.CancelFunc{}}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// fail ends the connection: all who wait get the cause, the first that is
// given.
func (p *peer) fail(cause error) { p.cancel(cause) }

// SendRequest implements [transport.Interface].
func (p *peer) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	id := string(encode(req.ID))
	answer := make(chan message, 1)
	p.mu.Lock()
	p.waiting[id] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, id)
	}()
	if err := p.send(ctx, encode(req)); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return &transport.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: req.ID, Result: m.Result, Error: m.Error}, nil
	case <-ctx.Done():
		return nil, p.whyDone(ctx)
	case <-p.ctx.Done():
		select {
		case m := <-answer: // it came before the end
			return &transport.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: req.ID, Result: m.Result, Error: m.Error}, nil
		default:
			return nil, context.Cause(p.ctx)
		}
	}
}

// whyDone is the error of a context that ended before an answer came. Messages
// that fitted nothing may have been it.
func (p *peer) whyDone(ctx context.Context) error {
	if n := p.dropped.Load(); n > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w (the server sent %d messages that are no answer to anything)", ctx.Err(), n)
	}
	return ctx.Err()
}

// SendNotification implements [transport.Interface].
func (p *peer) SendNotification(ctx context.Context, n mcp.JSONRPCNotification) error {
	return p.send(ctx, encode(n))
}

func (p *peer) send(ctx context.Context, data []byte) error {
	if err := p.ctx.Err(); err != nil {
		return context.Cause(p.ctx)
	}
	return p.write(ctx, data)
}

// SetNotificationHandler implements [transport.Interface].
func (p *peer) SetNotificationHandler(f func(mcp.JSONRPCNotification)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = f
}

// SetRequestHandler implements [transport.BidirectionalInterface].
func (p *peer) SetRequestHandler(f transport.RequestHandler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle = f
}

// GetSessionId implements [transport.Interface].
//
//lint:ignore ST1003 the name is the interface's
func (p *peer) GetSessionId() string { return "" }

// receive takes a message, or several in an array.
func (p *peer) receive(data []byte) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return
	}
	if data[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(data, &batch) != nil {
			p.dropped.Add(1)
			return
		}
		for _, one := range batch {
			p.receiveOne(one)
		}
		return
	}
	p.receiveOne(data)
}

func (p *peer) receiveOne(data []byte) {
	m, err := parseMessage(data)
	switch {
	case err != nil || data[0] != '{':
		p.dropped.Add(1)
	case m.Method != "" && m.hasID():
		p.request(m)
	case m.Method != "":
		p.notification(m, data)
	case m.hasID() && (m.Result != nil || m.Error != nil):
		p.mu.Lock()
		answer, ok := p.waiting[string(m.ID)]
		delete(p.waiting, string(m.ID)) // the first answer counts
		p.mu.Unlock()
		if !ok {
			p.dropped.Add(1)
			return
		}
		answer <- m
	default:
		p.dropped.Add(1)
	}
}

func (p *peer) notification(m message, data []byte) {
	if m.Method == "notifications/cancelled" {
		p.withdraw(m.Params)
		return
	}
	p.mu.Lock()
	notify := p.notify
	p.mu.Unlock()
	var n mcp.JSONRPCNotification
	if notify == nil || json.Unmarshal(data, &n) != nil {
		p.dropped.Add(1)
		return
	}
	notify(n)
}

// withdraw ends the handling of a request that the server takes back.
func (p *peer) withdraw(params json.RawMessage) {
	var body struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &body) // then there is no such request
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel, ok := p.handling[string(body.ID)]; ok {
		cancel()
	}
}

// request has a request of the server answered in a goroutine of its own.
func (p *peer) request(m message) {
	id := string(m.ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return
	}
	_, twice := p.handling[id]
	if handle := p.handle; handle != nil && !twice && len(p.handling) < maxServerRequests {
		ctx, cancel := context.WithCancel(p.ctx)
		p.handling[id] = cancel
		p.wg.Go(func() {
			defer cancel()
			answer := p.answer(ctx, handle, m)
			p.mu.Lock()
			delete(p.handling, id)
			p.mu.Unlock()
			_ = p.send(ctx, answer) // a server that is gone wants no answer
		})
		return
	}
	p.wg.Go(func() {
		_ = p.send(p.ctx, refusal(m.ID, mcp.INTERNAL_ERROR, "this client answers no more requests at once"))
	})
}

// answer is the response to a request of the server.
func (p *peer) answer(ctx context.Context, handle transport.RequestHandler, m message) []byte {
	req := transport.JSONRPCRequest{JSONRPC: mcp.JSONRPC_VERSION, Method: m.Method}
	if len(m.Params) > 0 {
		req.Params = m.Params
	}
	if !knownRequest(m.Method) {
		return refusal(m.ID, mcp.METHOD_NOT_FOUND, "this client does not know "+m.Method)
	}
	resp, err := handle(ctx, req)
	switch {
	case err != nil:
		return refusal(m.ID, mcp.INTERNAL_ERROR, err.Error())
	case resp.Error != nil:
		return encode(map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "id": m.ID, "error": resp.Error})
	}
	return encode(map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "id": m.ID, "result": resp.Result})
}

// knownRequest reports whether a server may ask for a method.
func knownRequest(method string) bool {
	switch mcp.MCPMethod(method) {
	case mcp.MethodPing, mcp.MethodSamplingCreateMessage, mcp.MethodElicitationCreate, mcp.MethodListRoots:
		return true
	}
	return false
}

func refusal(id json.RawMessage, code int, text string) []byte {
	return encode(map[string]any{
		"jsonrpc": mcp.JSONRPC_VERSION, "id": id, "error": map[string]any{"code": code, "message": text},
	})
}
