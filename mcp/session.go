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

	"github.com/seed-009c0928/agent/mcp/internal/jsonrpc"
)

const (
	// maxServerRequests bounds the requests of a server that are worked on at
	// once.
	maxServerRequests = 16
	// answerTimeout bounds the delivery of an answer to one of them.
	answerTimeout = 30 * time.Second
	// sendGrace is what the sending of a request may take longer than its answer.
	sendGrace = 100 * time.Millisecond
)

// transport carries messages to a server. What comes back goes to the session
// that it was made for, by receive, and the end of the connection by fail.
type transport interface {
	// start connects. It returns when messages can be sent or ctx is done; the
	// connection lasts until close.
	start(ctx context.Context) error
	// send sends a message. It returns when that is done or ctx is. Over
	// streamable HTTP, a request is sent when its response was received.
	send(ctx context.Context, m outgoing) error
	// close ends the connection, which takes at most 5 seconds. The session has
	// ended before.
	close()
}

// session is the JSON-RPC side of a connection. It brings responses to who
// waits for them, and requests and notifications to their handlers. What is
// none of these is counted and dropped.
type session struct {
	link   transport
	answer func(ctx context.Context, method string, params json.RawMessage) (any, error) // to a request of the server
	notify func(method string, params json.RawMessage)                                   // must not block

	ctx context.Context // ends with the connection
	end context.CancelCauseFunc
	// after runs when all has ended
	after func()

	requests requests
	protocol atomic.Value // string: the version of the protocol, once it is known
	ids      atomic.Int64
	dropped  atomic.Int64

	mu       sync.Mutex
	waiting  map[string]chan jsonrpc.Message // by the request's id
	handling map[string]context.CancelFunc   // requests of the server, by their ids
	wg       sync.WaitGroup
}

func newSession() *session {
	s := &session{after: func() {}, waiting: map[string]chan jsonrpc.Message{}, handling: map[string]context.CancelFunc{}}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	s.protocol.Store("")
	return s
}

// version returns the version of the protocol in use, "" before it is known.
func (s *session) version() string { return s.protocol.Load().(string) }

// modern reports whether the server is of the era without a handshake.
func (s *session) modern() bool { return mcp.IsModernProtocol(s.version()) }

// fail ends the connection: all who wait get the cause, the first that is
// given.
func (s *session) fail(cause error) {
	s.mu.Lock() // spawn sees it
	defer s.mu.Unlock()
	s.end(cause)
}

// close ends the connection and waits for all that runs.
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

// nextID returns the id of a request.
func (s *session) nextID() json.RawMessage {
	return strconv.AppendInt(nil, s.ids.Add(1), 10)
}

// call makes a request and returns the bytes of its result. An error that the
// server answers with is an [*RPCError].
func (s *session) call(ctx context.Context, m outgoing) (json.RawMessage, error) {
	id, answer, sent := string(m.ID), make(chan jsonrpc.Message, 1), make(chan error, 1)
	s.mu.Lock()
	s.waiting[id] = answer
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
			s.settle(sent)
			return outcome(a)
		case err = <-sent:
			sent = nil
		case <-ctx.Done():
			if sent != nil {
				err = <-sent // it says more
			}
			if err == nil {
				err = s.whyDone(ctx)
			}
		case <-s.ctx.Done():
			err = context.Cause(s.ctx)
		}
	}
	select {
	case a := <-answer: // it came before the end
		return outcome(a)
	default:
		return nil, err
	}
}

// settle lets the sending of a request end that was answered already, as it may
// be over SSE. What breaks off costs a connection.
func (s *session) settle(sent <-chan error) {
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

func outcome(m jsonrpc.Message) (json.RawMessage, error) {
	if e := m.Error; e != nil {
		return nil, &RPCError{Code: e.Code, Message: clip(cleanLines(e.Message), 4000), Data: e.Data}
	}
	return m.Result, nil
}

// whyDone is the error of a context that ended before an answer came. Messages
// that fitted nothing may have been it.
func (s *session) whyDone(ctx context.Context) error {
	if n := s.dropped.Load(); n > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w (the server sent %d messages that are no answer to anything)", ctx.Err(), n)
	}
	return ctx.Err()
}

// waits reports whether the answer to a request is still to come.
func (s *session) waits(id json.RawMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waits := s.waiting[string(id)]
	return waits
}

// receive takes a message, or several in an array, that came for a request of
// ours; p is nil where one stream brings everything. It never blocks and never
// waits for a handler.
func (s *session) receive(p *pending, data []byte) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return
	}
	batch := []json.RawMessage{data}
	if data[0] == '[' && json.Unmarshal(data, &batch) != nil {
		s.dropped.Add(1)
		return
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
		s.withdraw(m.Params)
		return
	case m.Method != "":
		s.notify(m.Method, m.Params)
		return
	case m.HasID() && (m.Result != nil || m.Error != nil):
		s.mu.Lock()
		answer, ok := s.waiting[string(m.ID)]
		delete(s.waiting, string(m.ID)) // the first answer counts
		s.mu.Unlock()
		if ok {
			answer <- m
			return
		}
	}
	s.dropped.Add(1)
}

// withdraw ends the handling of a request that the server takes back.
func (s *session) withdraw(params json.RawMessage) {
	var body struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(params, &body) // then there is no such request
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.handling[string(body.ID)]; ok {
		cancel()
	}
}

// request has a request of the server answered in a goroutine of its own. Its
// context ends with the request of ours that it belongs to.
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
			s.respond(s.ctx, m.ID, nil, errors.New("this client answers no more requests at once"))
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

// respond answers a request of the server. One that is gone, or that has taken
// its request back, wants no answer.
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

// tell sends a notification.
func (s *session) tell(ctx context.Context, method mcp.MCPMethod, params fields) error {
	m := outgoing{Message: jsonrpc.Message{Version: mcp.JSONRPC_VERSION, Method: string(method)}}
	if params != nil {
		m.Params = encode(params)
	}
	return s.link.send(ctx, m)
}
