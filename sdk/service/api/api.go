package api

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// Scope is something that a token may do.
type Scope string

// The scopes.
const (
	ScopeRead   Scope = "read"   // list and follow sessions
	ScopeRun    Scope = "run"    // create and delete sessions, and send them commands but answers
	ScopeAnswer Scope = "answer" // answer questions
	ScopeAdmin  Scope = "admin"  // read the metrics of all tenants
)

// Token is a token that the API accepts.
type Token struct {
	Hash   string  `json:"hash"` // see [Hash]
	Tenant string  `json:"tenant"`
	Scopes []Scope `json:"scopes"`
	Name   string  `json:"name,omitempty"` // for the audit log
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
	// Quotas bound tenants; give them to the workers, too, for their schedules.
	Quotas *service.Quotas
	// Audit gets a line of JSON for each request that changes something, and for each
	// that was refused for its token, host or origin. Nil writes none.
	Audit io.Writer
	// Workspaces has the directories of sessions; without it, none can have one.
	Workspaces *workspace.Root
	// MaxArchive is how many bytes a session that moves here may have, with its outputs and
	// files; 0 = 2 GiB.
	MaxArchive int64
	// Check says what is wrong with a new session, such as its Spec; nil takes all.
	Check func(service.Session) error
	// PrivateWebhooks is what workers have: see [service.WorkerOptions].
	PrivateWebhooks bool

	Logger *slog.Logger // nil discards
}

//go:embed openapi.json
var document []byte

// API is an [http.Handler].
type API struct {
	opts    Options
	tokens  atomic.Pointer[map[string]Token]
	mux     *http.ServeMux
	answers answers

	mu sync.Mutex // of the audit log
}

// New returns the API of an engine.
func New(o Options) (*API, error) {
	if o.Engine == nil || len(o.Tokens) == 0 {
		return nil, errors.New("api.New: Engine and Tokens are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxArchive <= 0 {
		o.MaxArchive = maxArchive
	}
	a := &API{
		opts: o, mux: http.NewServeMux(),
		answers: answers{count: map[answered]int{}, took: map[string]time.Duration{}},
	}
	if err := a.SetTokens(o.Tokens); err != nil {
		return nil, err
	}
	for pattern, r := range a.routes() {
		a.mux.Handle(pattern, a.noted(pattern, r.scope, r.serve))
	}
	a.mux.Handle("/", a.noted("/", "", func(_ http.ResponseWriter, req *http.Request, _ Token) error {
		return &failure{http.StatusNotFound, "not_found", fmt.Sprintf("there is no %.20s %.200s: see /v1/openapi.json", req.Method, req.URL.Path)}
	}))
	return a, nil
}

// SetTokens replaces the tokens. Requests that are being answered are not affected.
func (a *API) SetTokens(list []Token) error {
	tokens := map[string]Token{}
	for _, t := range list {
		if err := store.CheckID(t.Tenant); err != nil || len(t.Hash) != 2*sha256.Size {
			return fmt.Errorf("api: the token of tenant %.40q needs a tenant of letters and digits, and a hash made by api.Hash", t.Tenant)
		}
		tokens[t.Hash] = t
	}
	a.tokens.Store(&tokens)
	return nil
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, req *http.Request) { a.mux.ServeHTTP(w, req) }

// Handler returns a handler behind the checks of the API: of the host, the origin, and a
// token with the scope, unless that is empty. Errors are answered like those of the API,
// and the request is counted and audited as one of the pattern.
func (a *API) Handler(pattern string, scope Scope, serve func(w http.ResponseWriter, req *http.Request, t Token) error) http.Handler {
	return a.noted(pattern, scope, serve)
}

func (a *API) noted(pattern string, scope Scope, serve func(w http.ResponseWriter, req *http.Request, t Token) error) http.Handler {
	return http.HandlerFunc(func(to http.ResponseWriter, req *http.Request) {
		w, began := &recorder{to, http.StatusOK}, time.Now()
		t, err := a.check(w, req, scope)
		if err == nil {
			err = serve(w, req, t)
		}
		if err != nil {
			a.fail(w, req, err)
		}
		a.note(req, pattern, t, w.status, began)
	})
}

// check returns the token of a request that may be answered.
func (a *API) check(w http.ResponseWriter, req *http.Request, scope Scope) (Token, error) {
	if err := a.guard(w, req); err != nil || scope == "" {
		return Token{}, err
	}
	text, bearer := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	t, ok := (*a.tokens.Load())[Hash(text)]
	switch {
	case !bearer || !ok:
		w.Header().Set("WWW-Authenticate", "Bearer")
		return Token{}, &failure{http.StatusUnauthorized, "unauthorized", "send a token of the service: Authorization: Bearer TOKEN"}
	case !slices.Contains(t.Scopes, scope):
		return t, lacks(scope)
	}
	return t, nil
}

func lacks(scope Scope) error {
	return &failure{http.StatusForbidden, "forbidden", fmt.Sprintf("the token lacks the scope %s", scope)}
}

// guard refuses what a page of another site may have sent.
func (a *API) guard(w http.ResponseWriter, req *http.Request) error {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !a.known(req.Host) {
		return &failure{http.StatusMisdirectedRequest, "host", fmt.Sprintf("this is not %.100q: use the address that the service was given", req.Host)}
	}
	if text := req.Header.Get("Origin"); text != "" {
		if origin, err := url.Parse(text); err != nil || origin.Host != req.Host {
			return &failure{http.StatusForbidden, "origin", "requests of pages of other sites are refused"}
		}
	}
	return nil
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
		"GET /healthz":                          {serve: a.health},
		"GET /v1/openapi.json":                  {serve: a.document},
		"GET /readyz":                           {serve: a.ready},
		"GET /metrics":                          {ScopeAdmin, a.metrics},
		"GET /v1/usage":                         {ScopeRead, a.usage},
		"POST /v1/schedules":                    {ScopeRun, a.schedule},
		"GET /v1/schedules":                     {ScopeRead, a.schedules},
		"DELETE /v1/schedules/{id}":             {ScopeRun, a.unschedule},
		"POST /v1/webhooks":                     {ScopeRun, a.hook},
		"GET /v1/webhooks":                      {ScopeRead, a.hooks},
		"DELETE /v1/webhooks/{id}":              {ScopeRun, a.unhook},
		"POST /v1/sessions":                     {ScopeRun, a.create},
		"GET /v1/sessions":                      {ScopeRead, a.list},
		"GET /v1/sessions/{id}":                 {ScopeRead, a.get},
		"PUT /v1/sessions/{id}":                 {ScopeRun, a.move},
		"DELETE /v1/sessions/{id}":              {ScopeRun, a.remove},
		"POST /v1/sessions/{id}/commands":       {ScopeRun, a.command},
		"POST /v1/sessions/{id}/answers":        {ScopeAnswer, a.answer},
		"GET /v1/sessions/{id}/events":          {ScopeRead, a.events},
		"GET /v1/sessions/{id}/questions":       {ScopeRead, a.questions},
		"GET /v1/questions":                     {ScopeRead, a.allQuestions},
		"GET /v1/sessions/{id}/diff":            {ScopeRead, a.diff},
		"GET /v1/sessions/{id}/files/{path...}": {ScopeRead, a.file},
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
	var refused *workspace.RefusedError
	var quota *service.QuotaError
	switch {
	case errors.As(err, &f):
	case errors.As(err, &command):
		f = &failure{http.StatusBadRequest, "invalid", command.Message}
	case errors.As(err, &long):
		f = &failure{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is longer than %d bytes", long.Limit)}
	case errors.As(err, &quota):
		f = &failure{http.StatusTooManyRequests, "quota", quota.Message}
	case errors.As(err, &refused):
		f = &failure{http.StatusBadRequest, "invalid", refused.Message}
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
	data = append(data, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
