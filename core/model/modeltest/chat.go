package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Chat is a fake OpenAI Chat Completions server: POST /v1/chat/completions,
// streaming and not, and GET /v1/models. It is safe for concurrent use; Key
// and Models must be set before the first request.
type Chat struct {
	Key    string   // the bearer token to ask for; empty accepts every request
	Models []string // the models that exist; empty accepts every name

	answer func(*Request) Turn

	mu       sync.Mutex
	idle     *sync.Cond // active has become 0
	active   int        // requests being served
	requests []*Request
}

// NewChat returns a server that answers with the turns in order. A request
// beyond the last turn is answered with a 500 that says so.
func NewChat(turns ...Turn) *Chat {
	var mu sync.Mutex
	return NewChatFunc(func(*Request) Turn {
		mu.Lock()
		defer mu.Unlock()
		if len(turns) == 0 {
			return Failure(http.StatusInternalServerError, "server_error", "", "the script of the fake server has no turn left")
		}
		t := turns[0]
		turns = turns[1:]
		return t
	})
}

// NewChatFunc returns a server that asks answer for each turn. answer must be
// safe for concurrent use if requests are concurrent.
func NewChatFunc(answer func(*Request) Turn) *Chat {
	c := &Chat{answer: answer}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// Requests returns the chat completion requests so far, also those that were
// refused.
func (c *Chat) Requests() []*Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// Wait returns when no request is being served.
func (c *Chat) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.active > 0 {
		c.idle.Wait()
	}
}

func (c *Chat) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active += n; c.active == 0 {
		c.idle.Broadcast()
	}
}

// Start listens on a free port of 127.0.0.1 and returns the API's base URL,
// which ends in /v1. The caller must call stop; it ends all connections and
// returns when no request is being served.
func (c *Chat) Start() (baseURL string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("fake chat server: %w", err)
	}
	srv := &http.Server{Handler: c}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(ln) // always http.ErrServerClosed, after stop
	}()
	return "http://" + ln.Addr().String() + "/v1", func() {
		_ = srv.Close()
		<-served
		c.Wait()
	}, nil
}

// Serve starts the server for the length of a test and returns its base URL.
func (c *Chat) Serve(tb testing.TB) string {
	tb.Helper()
	url, stop, err := c.Start()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(stop)
	return url
}

// ServeHTTP implements [http.Handler].
func (c *Chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.count(1)
	defer c.count(-1)
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
		c.listModels(w, r)
	case r.URL.Path != "/v1/chat/completions":
		fail(w, http.StatusNotFound, "invalid_request_error", "unknown_url", "Invalid URL ("+r.Method+" "+r.URL.Path+")")
	case r.Method != http.MethodPost:
		fail(w, http.StatusMethodNotAllowed, "invalid_request_error", "method_not_supported", "Not allowed to "+r.Method+" on /v1/chat/completions.")
	default:
		c.complete(w, r)
	}
}

// authorized reports whether the request has the key, if one is asked for.
func (c *Chat) authorized(r *http.Request) bool {
	return c.Key == "" || r.Header.Get("Authorization") == "Bearer "+c.Key
}

func (c *Chat) listModels(w http.ResponseWriter, r *http.Request) {
	if !c.authorized(r) {
		refuseKey(w)
		return
	}
	list := []any{}
	for _, id := range c.Models {
		list = append(list, map[string]any{"id": id, "object": "model", "created": created, "owned_by": "modeltest"})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": list}) // the client may be gone
}

func (c *Chat) complete(w http.ResponseWriter, r *http.Request) {
	req, n, err := c.record(r)
	id := fmt.Sprintf("chatcmpl-%06d", n)
	w.Header().Set("X-Request-Id", fmt.Sprintf("req_%06d", n))
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, "invalid_request_error", "", "We could not parse the JSON body of your request: "+err.Error())
		return
	case !c.authorized(r):
		refuseKey(w)
		return
	case len(c.Models) > 0 && req.Model != "" && !slices.Contains(c.Models, req.Model):
		t := NoSuchModel(req.Model)
		t.serveBody(w)
		return
	}
	if bad := req.check(); bad != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", bad.code, bad.message)
		return
	}
	turn := c.answer(req)
	turn.serve(r.Context(), w, req, id)
}

// record reads and keeps the request.
func (c *Chat) record(r *http.Request) (*Request, int, error) {
	body, err := io.ReadAll(r.Body)
	req := &Request{Header: r.Header.Clone(), Body: body}
	if err == nil {
		err = json.Unmarshal(body, req)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, req)
	return req, len(c.requests), err
}

func fail(w http.ResponseWriter, status int, kind, code, message string) {
	t := Failure(status, kind, code, message)
	t.serveBody(w)
}

func refuseKey(w http.ResponseWriter) {
	fail(w, http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.")
}

// serve writes the turn.
func (t *Turn) serve(ctx context.Context, w http.ResponseWriter, req *Request, id string) {
	if t.Gate != nil {
		t.Gate(ctx, -1)
	}
	for name, values := range t.Header {
		w.Header()[name] = values
	}
	if t.Status != 0 && t.Status != http.StatusOK {
		t.serveBody(w)
		return
	}
	name := req.Model
	if t.Model != "" {
		name = t.Model
	}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, t.completion(id, name)) // the client may be gone
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	out := &stream{w: w, rc: http.NewResponseController(w), turn: t, left: -1}
	if t.Break != nil {
		out.left = t.Break.After
	}
	for i, f := range t.frames(id, name, req.StreamOptions != nil && req.StreamOptions.IncludeUsage) {
		if t.Gate != nil {
			t.Gate(ctx, i)
		}
		if out.write(f) != nil {
			return
		}
	}
}

func (t *Turn) serveBody(w http.ResponseWriter) {
	if w.Header().Get("Content-Type") == "" {
		kind := "application/json"
		if !strings.HasPrefix(t.Body, "{") {
			kind = "text/html"
		}
		w.Header().Set("Content-Type", kind)
	}
	w.WriteHeader(t.Status)
	_, _ = io.WriteString(w, t.Body) // the client may be gone
}

// stream writes frames until the turn's break.
type stream struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	turn *Turn
	left int // bytes until the break; negative means that there is none
}

var errBroken = errors.New("the stream breaks off here")

func (s *stream) write(frame string) error {
	broken := s.left >= 0 && s.left <= len(frame)
	if broken {
		frame = frame[:s.left]
	}
	s.left -= len(frame)
	step := s.turn.Split
	if step <= 0 {
		step = max(len(frame), 1)
	}
	for ; len(frame) > 0; frame = frame[min(step, len(frame)):] {
		if _, err := io.WriteString(s.w, frame[:min(step, len(frame))]); err != nil {
			return err
		}
		if err := s.rc.Flush(); err != nil {
			return err
		}
	}
	if !broken {
		return nil
	}
	return s.end()
}

// end breaks the stream off.
func (s *stream) end() error {
	switch s.turn.Break.How {
	case End:
		return errBroken
	case Abort:
		panic(http.ErrAbortHandler)
	}
	conn, _, err := s.rc.Hijack()
	if err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // makes Close send a reset; without it, the close alone must do
	}
	_ = conn.Close()
	return errBroken
}
