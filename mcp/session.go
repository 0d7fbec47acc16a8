package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

const (
	// maxServerRequests limits the concurrent requests of a server.
	maxServerRequests = 16
	// answerTimeout limits sending the response to one of them.
	answerTimeout = 30 * time.Second
	// sendGrace is how long after its response the sending of a request may end.
	sendGrace = 100 * time.Millisecond
)

// transport sends messages to a server. It passes incoming messages to its
// session with receive, and the end of the connection with fail.
type transport interface {
	// start connects. It returns when messages can be sent or ctx is done; the
	// connection lasts until close.
	start(ctx context.Context) error
	// send sends a message. It returns when that or ctx is done. Over streamable
	// HTTP, a request is sent when its response was received.
	send(ctx context.Context, m outgoing) error
	// close ends the connection, in at most 5 seconds. The session has ended
	// before.
	close()
}

// session is the JSON-RPC layer of a connection. It dispatches responses to the
// waiting calls, and requests and notifications to their handlers. Other messages
// are counted and dropped.
type session struct {
	link transport
	// secrets are removed from what the server sends
	secrets secrets
	answer  func(ctx context.Context, method string, params json.RawMessage) (any, error) // to a request of the server
	notify  func(method string, params json.RawMessage)                                   // must not block

	ctx context.Context // ends with the connection
	end context.CancelCauseFunc
	// after runs at the end of close
	after func()

	requests requests
	protocol atomic.Value // string: the protocol version, once known
	ids      atomic.Int64
	dropped  atomic.Int64

	mu       sync.Mutex
	waiting  map[string]chan jsonrpc.Message // by request ID
	asked    string                          // the method of the last request, until a response
	odd      string                          // the first dropped message, and why
	handling map[string]context.CancelFunc   // requests of the server, by their IDs
	wg       sync.WaitGroup
}

func newSession() *session {
	s := &session{after: func() {}, waiting: map[string]chan jsonrpc.Message{}, handling: map[string]context.CancelFunc{}}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	s.protocol.Store("")
	return s
}

// version returns the protocol version in use, "" before it is known.
func (s *session) version() string { return s.protocol.Load().(string) }

// modern reports whether the protocol in use is the modern one, without handshake.
func (s *session) modern() bool { return mcp.IsModernProtocol(s.version()) }

// fail ends the connection. Its cause, the first one given, goes to all waiting
// calls.
func (s *session) fail(cause error) {
	s.mu.Lock() // for spawn
	defer s.mu.Unlock()
	s.end(cause)
}

// close ends the connection and waits for its goroutines.
func (s *session) close() {
	s.fail(ErrClosed)
	if s.link != nil {
		s.link.close()
	}
	s.wg.Wait()
	s.after()
}

// spawn runs f in a goroutine that close waits for, unless the connection has
// ended.
func (s *session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.wg.Go(f)
	return true
}

// nextID returns the ID of the next request.
func (s *session) nextID() json.RawMessage {
	return strconv.AppendInt(nil, s.ids.Add(1), 10)
}

// call makes a request and returns its result. An error response of the server is
// an [*RPCError].
func (s *session) call(ctx context.Context, m outgoing) (json.RawMessage, error) {
	id, answer, sent := string(m.ID), make(chan jsonrpc.Message, 1), make(chan error, 1)
	s.mu.Lock()
	s.waiting[id], s.asked = answer, m.Method
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, id)
	}()
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.spawn(func() { sent <- s.link.send(sending, m) }) {
		return nil, context.Cause(s.ctx)
	}
	var err error
	for err == nil {
		select {
		case a := <-answer:
			s.awaitSent(sent)
			return resultOf(a)
		case err = <-sent:
			sent = nil
		case <-ctx.Done():
			if sent != nil {
				err = <-sent // more specific
			}
			if err == nil {
				err = s.doneError(ctx)
			}
		case <-s.ctx.Done():
			err = context.Cause(s.ctx)
		}
	}
	select {
	case a := <-answer: // arrived before the end
		return resultOf(a)
	default:
		return nil, err
	}
}

// awaitSent waits briefly for the sending of a request that was already answered,
// as can happen over SSE: aborting it would cost an HTTP connection.
func (s *session) awaitSent(sent <-chan error) {
	if sent == nil {
		return
	}
	timer := time.NewTimer(sendGrace)
	defer timer.Stop()
	select {
	case <-sent:
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

func resultOf(m jsonrpc.Message) (json.RawMessage, error) {
	if e := m.Error; e != nil {
		return nil, &RPCError{Code: e.Code, Message: clip(visible(cleanLines(e.Message)), 4000), Data: e.Data}
	}
	return m.Result, nil
}

// doneError returns the error of a context that ended before the response, with
// the number of dropped messages, since the response may be among them.
func (s *session) doneError(ctx context.Context) error {
	if n := s.dropped.Load(); n > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w (the server sent %d unexpected messages)", ctx.Err(), n)
	}
	return ctx.Err()
}

// waits reports whether a request is still unanswered.
func (s *session) waits(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waits := s.waiting[string(id)]
	return waits
}

// receive handles a message or a batch that belongs to the client's request p,
// which is nil where one stream carries everything. It never blocks or waits for
// a handler.
func (s *session) receive(p *pending, data []byte) {
	data = s.secrets.hide(bytes.TrimSpace(data))
	if len(data) == 0 {
		return
	}
	batch := []json.RawMessage{data}
	if data[0] == '[' {
		if err := json.Unmarshal(data, &batch); err != nil {
			s.drop(data, err)
			return
		}
	}
	for _, one := range batch {
		s.receiveOne(p, one)
	}
}

func (s *session) receiveOne(p *pending, data []byte) {
	m, err := jsonrpc.Parse(data)
	switch {
	case err != nil:
	case m.Method != "" && m.HasID():
		s.request(p, m)
		return
	case m.Method == string(mcp.MethodNotificationCancelled):
		s.cancelHandling(m.Params)
		return
	case m.Method != "":
		s.notify(m.Method, m.Params)
		return
	case m.HasID() && (m.Result != nil || m.Error != nil):
		s.mu.Lock()
		answer, ok := s.waiting[string(m.ID)]
		delete(s.waiting, string(m.ID)) // the first response counts
		if ok {
			s.asked = ""
		}
		s.mu.Unlock()
		if ok {
			answer <- m
			return
		}
	}
	s.drop(data, err)
}

// drop counts a message that is not understood, or that nobody waits for.
func (s *session) drop(data []byte, err error) {
	if s.dropped.Add(1) > 1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odd = fmt.Sprintf("%q", visible(cleanLine(string(data[:min(len(data), 60)]))))
	if err != nil {
		s.odd += ": " + visible(cleanLine(err.Error()))
	}
}

// missing says what a server that does not get ready has left unanswered, and what
// it sent instead.
func (s *session) missing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	if s.asked != "" {
		text = "; it does not answer " + s.asked
	}
	if s.odd != "" {
		text += fmt.Sprintf("; it sent %d unexpected messages, such as %s", s.dropped.Load(), s.odd)
	}
	return text
}

// cancelHandling ends the handling of a request that the server cancels.
func (s *session) cancelHandling(params json.RawMessage) {
	var body struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &body) // invalid params match no request
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.handling[string(body.ID)]; ok {
		cancel()
	}
}

// request answers a request of the server in a separate goroutine. Its context
// ends with the client's request that it belongs to.
func (s *session) request(p *pending, m jsonrpc.Message) {
	if p == nil {
		p = s.requests.latest()
	}
	id := string(m.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	if _, twice := s.handling[id]; twice || len(s.handling) >= maxServerRequests {
		s.wg.Go(func() {
			s.respond(s.ctx, m.ID, nil, errors.New("too many concurrent requests"))
		})
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.handling[id] = cancel
	s.wg.Go(func() {
		defer cancel()
		handling, stop := context.WithCancel(context.WithValue(ctx, pendingKey{}, p))
		defer stop()
		if p != nil {
			defer context.AfterFunc(p.ctx, stop)()
		}
		result, err := s.answer(handling, m.Method, m.Params)
		s.mu.Lock()
		delete(s.handling, id)
		s.mu.Unlock()
		s.respond(ctx, m.ID, result, err)
	})
}

// respond sends the response to a request of the server, unless ctx is done.
func (s *session) respond(ctx context.Context, id json.RawMessage, result any, err error) {
	m := outgoing{Message: jsonrpc.Message{Version: mcp.JSONRPC_VERSION, ID: id}}
	switch e := (*jsonrpc.Error)(nil); {
	case errors.As(err, &e):
		m.Error = e
	case err != nil:
		m.Error = &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: err.Error()}
	default:
		m.Result = encode(result)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_ = s.link.send(ctx, m)
}

// sendNotification sends a notification.
func (s *session) sendNotification(ctx context.Context, method mcp.MCPMethod, params fields) error {
	m := outgoing{Message: jsonrpc.Message{Version: mcp.JSONRPC_VERSION, Method: string(method)}}
	if params != nil {
		m.Params = encode(params)
	}
	return s.link.send(ctx, m)
}
