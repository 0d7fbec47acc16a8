package server

import (
	"crypto/rand"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// transport is streamable HTTP. Each message of a client is a POST, whose response
// is a JSON document or, if other messages precede it, an event stream. Before
// 2026-07-28 a client has a session, from initialize to DELETE, and may GET a
// stream of messages that belong to none of its requests.
type transport struct {
	protocol  *protocol
	writeWait time.Duration // timeout of writes

	mu       sync.Mutex
	sessions map[string]*session
	requests uint64 // of all sessions so far
}

// session is a client's session.
type session struct {
	*client
	id      string
	changed chan struct{} // buffered, 1

	// Guarded by the transport's lock.
	busy    int       // requests and streams in progress
	request uint64    // number of the last request to begin
	ended   time.Time // when the last one ended
}

func newTransport(p *protocol) *transport {
	return &transport{protocol: p, writeWait: writeWait, sessions: map[string]*session{}}
}

// ServeHTTP implements [http.Handler].
func (t *transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version := r.Header.Get(mcp.HeaderProtocolVersion)
	out := &stream{w: w, control: http.NewResponseController(w), wait: t.writeWait}
	defer out.close()
	switch {
	case r.Method == http.MethodPost:
		t.post(out, r)
	case mcp.IsModernProtocol(version):
		w.Header().Set("Allow", http.MethodPost)
		out.refuse(http.StatusMethodNotAllowed, nil, fault(mcp.INVALID_REQUEST, "%s has only POST: use %s for notifications", version, mcp.MethodSubscriptionsListen))
	case r.Method == http.MethodGet:
		t.withSession(out, r, func(s *session) { t.listen(out, r, s) })
	case r.Method == http.MethodDelete:
		t.withSession(out, r, func(s *session) {
			t.drop(s)
			w.WriteHeader(http.StatusOK)
		})
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		out.refuse(http.StatusMethodNotAllowed, nil, fault(mcp.INVALID_REQUEST, "expected GET, POST or DELETE"))
	}
}

// post handles a POST request.
func (t *transport) post(out *stream, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		out.refuse(http.StatusBadRequest, nil, fault(mcp.INVALID_REQUEST, "Content-Type: expected application/json"))
		return
	}
	_ = out.control.SetReadDeadline(time.Now().Add(bodyWait))
	body, err := io.ReadAll(r.Body)
	_ = out.control.SetReadDeadline(time.Time{})
	if err != nil {
		status := http.StatusBadRequest
		if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
			status = http.StatusRequestEntityTooLarge
		}
		out.refuse(status, nil, fault(mcp.PARSE_ERROR, "cannot read the message: %v", err))
		return
	}
	m, refused := parse(body)
	if refused != nil {
		out.refuse(http.StatusBadRequest, m.ID, refused)
		return
	}
	if m.Method != "" && m.HasID() {
		t.request(out, r, m)
		return
	}
	switch modern := mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)); {
	case modern && m.Method == "":
		out.refuse(http.StatusBadRequest, m.ID, fault(mcp.INVALID_REQUEST, "this protocol version has no requests of the server, and no responses to them"))
	case modern:
		out.w.WriteHeader(http.StatusAccepted) // none matters: closing the stream cancels a request
	default:
		t.withSession(out, r, func(s *session) {
			if m.Method != "" {
				t.protocol.handleNotification(s.client, m)
			} else if !s.answered(m) {
				out.refuse(http.StatusBadRequest, m.ID, fault(mcp.INVALID_REQUEST, "no request is waiting for this response"))
				return
			}
			out.w.WriteHeader(http.StatusAccepted)
		})
	}
}

// request answers a request.
func (t *transport) request(out *stream, r *http.Request, m jsonrpc.Message) {
	req, refused := parseRequest(m, r.Header)
	switch {
	case refused != nil:
		out.refuse(statusOf(req, refused), m.ID, refused)
	case req.modern:
		t.answer(out, r, req, newClient(nil))
	case m.Method == string(mcp.MethodInitialize):
		s := newSession()
		out.w.Header().Set(mcp.HeaderSessionID, s.id)
		if !t.add(s) {
			out.w.Header().Del(mcp.HeaderSessionID)
			out.refuse(http.StatusServiceUnavailable, m.ID, fault(mcp.INTERNAL_ERROR, "%d sessions are in use: wait for one of them to end", maxSessions))
			return
		}
		defer t.release(s)
		t.answer(out, r, req, s.client)
	default:
		t.withSession(out, r, func(s *session) { t.answer(out, r, req, s.client) })
	}
}

// answer handles a request of a client and sends the response.
func (t *transport) answer(out *stream, r *http.Request, req *request, c *client) {
	req.client, req.send = c, out.send
	ctx, done, refused := c.begin(r.Context(), req.ID)
	if refused != nil {
		out.refuse(statusOf(req, refused), req.ID, refused)
		return
	}
	defer c.work.Done()
	defer done()
	answer := t.protocol.answer(ctx, req)
	done()
	out.finish(statusOf(req, answer.Error), answer)
}

// statusOf returns the HTTP status of a response. Only the modern protocol has
// error statuses.
func statusOf(r *request, err *jsonrpc.Error) int {
	if err == nil || !r.modern {
		return http.StatusOK
	}
	switch err.Code {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION, mcp.INVALID_REQUEST, mcp.INVALID_PARAMS:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// listen sends messages that belong to no request, as long as the client listens.
// Each goes to one of its streams.
func (t *transport) listen(out *stream, r *http.Request, s *session) {
	if out.begin() != nil {
		return
	}
	for {
		select {
		case <-s.changed:
			if out.send(notification(mcp.MethodNotificationToolsListChanged, nil)) != nil {
				return
			}
		case <-s.left:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func newSession() *session {
	s := &session{id: rand.Text(), changed: make(chan struct{}, 1)}
	s.client = newClient(func() { signal(s.changed) })
	return s
}

// add registers a session, which the caller releases. It evicts sessions that
// were idle for too long and, at the limit, the idle one whose last request came
// first; false means that all are in use. Requests count from their beginning:
// they end only after their client has the answer, in any order.
func (t *transport) add(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var oldest *session
	for _, old := range t.sessions {
		if old.busy > 0 {
			continue
		}
		if time.Since(old.ended) > sessionsIdle {
			t.forget(old)
		} else if oldest == nil || old.request < oldest.request {
			oldest = old
		}
	}
	if len(t.sessions) >= maxSessions {
		if oldest == nil {
			return false
		}
		t.forget(oldest)
	}
	t.sessions[s.id] = s
	t.use(s)
	return true
}

// use marks a session as in use until release. The caller holds the lock.
func (t *transport) use(s *session) {
	t.requests++
	s.request = t.requests
	s.busy++
}

// forget ends a session. The caller holds the lock.
func (t *transport) forget(s *session) {
	delete(t.sessions, s.id)
	t.protocol.unwatch(s.client)
	s.leave()
}

func (t *transport) drop(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(s)
}

func (t *transport) release(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.busy--
	s.ended = time.Now()
}

// withSession calls do with the session of a request, or rejects the request.
func (t *transport) withSession(out *stream, r *http.Request, do func(s *session)) {
	if v := r.Header.Get(mcp.HeaderProtocolVersion); v != "" && !mcp.IsValidProtocolVersion(v) {
		out.refuse(http.StatusBadRequest, nil, unsupported(v))
		return
	}
	id := r.Header.Get(mcp.HeaderSessionID)
	if id == "" {
		out.refuse(http.StatusBadRequest, nil, fault(mcp.INVALID_REQUEST, "missing header %s: see the response to initialize", mcp.HeaderSessionID))
		return
	}
	t.mu.Lock()
	s := t.sessions[id]
	if s != nil {
		t.use(s)
	}
	t.mu.Unlock()
	if s == nil {
		out.refuse(http.StatusNotFound, nil, fault(mcp.INVALID_REQUEST, "unknown or expired session: initialize again"))
		return
	}
	defer t.release(s)
	do(s)
}

// stream is the response to an HTTP request. It is used by one goroutine.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	wait    time.Duration // timeout of a write
	events  bool          // the response is an event stream
}

// begin makes the response an event stream.
func (s *stream) begin() error {
	if s.events {
		return nil
	}
	s.events = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.extendDeadline()
	s.w.WriteHeader(http.StatusOK)
	return s.control.Flush()
}

// extendDeadline sets the deadline of the next write.
func (s *stream) extendDeadline() { _ = s.control.SetWriteDeadline(time.Now().Add(s.wait)) }

// send implements sendFunc.
func (s *stream) send(m jsonrpc.Message) error {
	if err := s.begin(); err != nil {
		return err
	}
	s.extendDeadline()
	event := append([]byte("event: message\ndata: "), jsonrpc.Encode(m)...)
	if _, err := s.w.Write(append(event, "\n\n"...)); err != nil {
		return err
	}
	return s.control.Flush()
}

// finish sends the last message. Errors are ignored: the client is gone.
func (s *stream) finish(status int, m jsonrpc.Message) {
	if s.events {
		_ = s.send(m)
		return
	}
	body := jsonrpc.Encode(m)
	s.w.Header().Set("Content-Type", "application/json")
	s.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	s.extendDeadline()
	s.w.WriteHeader(status)
	if _, err := s.w.Write(body); err == nil {
		_ = s.control.Flush()
	}
}

func (s *stream) refuse(status int, id []byte, err *jsonrpc.Error) {
	s.finish(status, errorResponse(id, err))
}

// close resets the connection for the next request.
func (s *stream) close() { _ = s.control.SetWriteDeadline(time.Time{}) }
