package api

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
)

// Scope is something that a token may do.
type Scope string

// The scopes.
const (
	ScopeRead   Scope = "read"   // list and follow sessions
	ScopeRun    Scope = "run"    // create and delete sessions, and send them commands but answers
	ScopeAnswer Scope = "answer" // answer questions
)

// Token is a token that the API accepts.
type Token struct {
	Hash   string  `json:"hash"` // see [Hash]
	Tenant string  `json:"tenant"`
	Scopes []Scope `json:"scopes"`
}

// Hash returns what is stored of a token.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Options configure the API. Engine and Tokens are required.
type Options struct {
	Engine service.Engine
	Tokens []Token
	// Hosts are the names under which the API is reached, without ports. Requests for
	// others are refused; those for localhost and addresses of loopback never are.
	Hosts []string
	// Check says what is wrong with a new session, such as its Spec; nil takes all.
	Check  func(service.Session) error
	Logger *slog.Logger // nil discards
}

//go:embed openapi.json
var document []byte

// API is an [http.Handler].
type API struct {
	opts   Options
	tokens map[string]Token
	mux    *http.ServeMux
}

// New returns the API of an engine.
func New(o Options) (*API, error) {
	if o.Engine == nil || len(o.Tokens) == 0 {
		return nil, errors.New("api.New: Engine and Tokens are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a := &API{opts: o, tokens: map[string]Token{}, mux: http.NewServeMux()}
	for _, t := range o.Tokens {
		if err := store.CheckID(t.Tenant); err != nil || len(t.Hash) != 2*sha256.Size {
			return nil, fmt.Errorf("api.New: the token of tenant %.40q needs a tenant of letters and digits, and a hash made by api.Hash", t.Tenant)
		}
		a.tokens[t.Hash] = t
	}
	for pattern, r := range a.routes() {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) { a.serve(w, req, r) })
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		a.fail(w, req, &failure{http.StatusNotFound, "not_found", "there is no " + req.Method + " " + req.URL.Path + ": see /v1/openapi.json"})
	})
	return a, nil
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !a.known(req.Host) {
		a.fail(w, req, &failure{http.StatusMisdirectedRequest, "host", fmt.Sprintf("this is not %.100q: use the address that the service was given", req.Host)})
		return
	}
	a.mux.ServeHTTP(w, req)
}

// known reports whether a request is for this service: a page of another site may have
// its name lead here.
func (a *API) known(hostport string) bool {
	name := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback() || slices.Contains(a.opts.Hosts, name)
}

// route is a method and a path. Without a scope it needs no token.
type route struct {
	scope Scope
	serve func(w http.ResponseWriter, req *http.Request, t Token) error
}

func (a *API) routes() map[string]route {
	return map[string]route{
		"GET /healthz":                    {serve: a.health},
		"GET /v1/openapi.json":            {serve: a.document},
		"POST /v1/sessions":               {ScopeRun, a.create},
		"GET /v1/sessions":                {ScopeRead, a.list},
		"GET /v1/sessions/{id}":           {ScopeRead, a.get},
		"DELETE /v1/sessions/{id}":        {ScopeRun, a.remove},
		"POST /v1/sessions/{id}/commands": {ScopeRun, a.command},
		"POST /v1/sessions/{id}/answers":  {ScopeAnswer, a.answer},
		"GET /v1/sessions/{id}/events":    {ScopeRead, a.events},
	}
}

func (a *API) serve(w http.ResponseWriter, req *http.Request, r route) {
	var t Token
	if r.scope != "" {
		text, bearer := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		token, ok := a.tokens[Hash(text)]
		switch {
		case !bearer || !ok:
			w.Header().Set("WWW-Authenticate", "Bearer")
			a.fail(w, req, &failure{http.StatusUnauthorized, "unauthorized", "send a token of the service: Authorization: Bearer TOKEN"})
			return
		case !slices.Contains(token.Scopes, r.scope):
			a.fail(w, req, &failure{http.StatusForbidden, "forbidden", fmt.Sprintf("the token lacks the scope %s", r.scope)})
			return
		}
		t = token
	}
	if err := r.serve(w, req, t); err != nil {
		a.fail(w, req, err)
	}
}

// failure is the error of a request.
type failure struct {
	status  int
	code    string
	message string
}

// Error implements error.
func (f *failure) Error() string { return f.message }

func invalid(format string, args ...any) error {
	return &failure{http.StatusBadRequest, "invalid", fmt.Sprintf(format, args...)}
}

// fail answers with an error. What went wrong inside is logged, not shown.
func (a *API) fail(w http.ResponseWriter, req *http.Request, err error) {
	var f *failure
	var command *host.Error
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &f):
	case errors.As(err, &command):
		f = &failure{http.StatusBadRequest, "invalid", command.Message}
	case errors.As(err, &long):
		f = &failure{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is longer than %d bytes", long.Limit)}
	case errors.Is(err, fs.ErrNotExist):
		f = &failure{http.StatusNotFound, "not_found", "there is no such session"}
	case errors.Is(err, fs.ErrExist):
		f = &failure{http.StatusConflict, "exists", "there is a session with this id"}
	case errors.Is(err, fs.ErrInvalid):
		f = &failure{http.StatusBadRequest, "invalid", err.Error()}
	default:
		if req.Context().Err() == nil {
			a.opts.Logger.ErrorContext(req.Context(), "a request failed", "method", req.Method, "path", req.URL.Path, "error", err)
		}
		f = &failure{http.StatusInternalServerError, "failed", "the service could not do it: try again, or see its log"}
	}
	a.answerWith(w, f.status, map[string]any{"error": map[string]string{"code": f.code, "message": f.message}})
}

func (a *API) answerWith(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":{"code":"failed","message":"the answer cannot be written"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}
