package modeltest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Server is a fake service. It is safe for concurrent use; Key and Models must
// be set before the first request.
type Server struct {
	Key    string   // the required credential; empty accepts every request
	Models []string // the existing models; empty accepts every name

	api      API
	protocol protocol
	answer   func(*Request) Turn

	mu       sync.Mutex
	idle     *sync.Cond // active has become 0
	active   int        // requests being served
	requests []*Request
	issued   map[string]string // the text of each signature that was sent
}

// New returns a server that answers with the turns in order, then with errors of
// status 500.
func New(api API, turns ...Turn) *Server {
	var mu sync.Mutex
	return NewFunc(api, func(*Request) Turn {
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

// NewFunc returns a server that calls answer for each turn. answer must be safe
// for concurrent use if requests are concurrent.
func NewFunc(api API, answer func(*Request) Turn) *Server {
	s := &Server{api: api, protocol: api.protocol(), answer: answer, issued: map[string]string{}}
	s.idle = sync.NewCond(&s.mu)
	return s
}

// Chat is a Server that speaks [ChatCompletions].
type Chat = Server

// NewChat is New for [ChatCompletions].
func NewChat(turns ...Turn) *Chat { return New(ChatCompletions, turns...) }

// NewChatFunc is NewFunc for [ChatCompletions].
func NewChatFunc(answer func(*Request) Turn) *Chat { return NewFunc(ChatCompletions, answer) }

// Requests returns the requests for an answer so far, including rejected ones.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Wait returns when no request is being served.
func (s *Server) Wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.active > 0 {
		s.idle.Wait()
	}
}

func (s *Server) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active += n; s.active == 0 {
		s.idle.Broadcast()
	}
}

// Start listens on a free port of 127.0.0.1 and returns the API's base URL,
// including its version, if any. The caller must call stop, which closes all
// connections and waits until no request is being served.
func (s *Server) Start() (baseURL string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("fake %v server: %w", s.api, err)
	}
	srv := &http.Server{Handler: s}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(ln) // always http.ErrServerClosed, after stop
	}()
	return "http://" + ln.Addr().String() + s.api.base(), func() {
		_ = srv.Close()
		<-served
		s.Wait()
	}, nil
}

// Serve starts the server for the duration of a test and returns its base URL.
func (s *Server) Serve(tb testing.TB) string {
	tb.Helper()
	address, stop, err := s.Start()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(stop)
	return address
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.count(1)
	defer s.count(-1)
	to := s.protocol.route(r)
	switch {
	case to.task == unknownTask:
		s.refuse(w, &Fault{Status: http.StatusNotFound, Type: "invalid_request_error", Code: "unknown_url", Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"})
	case to.task == answerTask && r.Method != http.MethodPost, to.task == listTask && r.Method != http.MethodGet:
		s.refuse(w, &Fault{Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Code: "method_not_supported", Message: "Not allowed to " + r.Method + " on " + r.URL.Path + "."})
	case to.task == listTask:
		s.list(w, r)
	default:
		s.complete(w, r, to)
	}
}

// task is the kind of a request.
type task uint8

const (
	unknownTask task = iota
	answerTask
	listTask
)

// route is the meaning of a request's path.
type route struct {
	task   task
	model  string // empty if it is in the body
	stream bool   // false if it is in the body
}

// credential returns an error unless the request has the required key.
func (s *Server) credential(r *http.Request) *Fault {
	got := s.protocol.credential(r.Header)
	if s.Key == "" || got == s.Key {
		return nil
	}
	if got == "" {
		return &Fault{Status: http.StatusUnauthorized, kind: noKey}
	}
	return &Fault{Status: http.StatusUnauthorized, kind: wrongKey, name: got[:min(3, len(got))] + "****"}
}

func (s *Server) refuse(w http.ResponseWriter, f *Fault) {
	t := Turn{Fault: f}
	t.serveBody(w, s.protocol)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	if bad := s.credential(r); bad != nil {
		s.refuse(w, bad)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text(s.protocol.list(s.Models, r.URL.Path, r.URL.Query()))+"\n") // the client may be gone
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request, to route) {
	req, n, bad := s.record(r, to)
	id := s.protocol.name(w.Header(), n)
	if denied := s.credential(r); denied != nil {
		bad = denied
	}
	if bad == nil && len(s.Models) > 0 && !slices.Contains(s.Models, req.Model) {
		bad = NoSuchModel(req.Model).Fault
	}
	if bad != nil {
		s.refuse(w, bad)
		return
	}
	turn := s.answer(req)
	s.serve(r.Context(), w, &turn, req, id)
}

// record reads and records the request.
func (s *Server) record(r *http.Request, to route) (*Request, int, *Fault) {
	body, err := io.ReadAll(r.Body)
	req := &Request{Header: r.Header.Clone(), URL: r.URL, Body: body, Model: to.model, Stream: to.stream}
	var bad *Fault
	if err == nil {
		bad, err = s.protocol.read(s, req)
	}
	if err != nil {
		bad = refuse("", "We could not parse the JSON body of your request: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	return req, len(s.requests), bad
}

// issue records the text of a signature.
func (s *Server) issue(signature, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued[signature] = text
}

// signed returns the text of a signature, if it is one of the server's.
func (s *Server) signed(signature string) (text string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok = s.issued[signature]
	return text, ok
}

// page returns the names after the one called last, at most limit, and whether
// more follow.
func page(names []string, after string, limit int) (some []string, more bool) {
	if i := slices.Index(names, after); i >= 0 {
		names = names[i+1:]
	}
	if len(names) > limit {
		return names[:limit], true
	}
	return names, false
}

// queryInt returns a number of a query.
func queryInt(q url.Values, name string, otherwise int) int {
	n := otherwise
	if _, err := fmt.Sscan(q.Get(name), &n); err != nil {
		return otherwise
	}
	return n
}

// bearer returns the token of an Authorization header.
func bearer(h http.Header) string {
	token, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return token
}
