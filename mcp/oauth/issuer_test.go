package oauth_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/mcp/oauth"
)

// issuer is an authorisation server: it registers clients, lets them sign in
// without asking anybody, checks PKCE, resource, redirect and how the client
// shows who it is, rotates refresh tokens and takes each once.
type issuer struct {
	*httptest.Server
	t *testing.T

	// What it does otherwise than it should, or may; set before use.
	edit             func(metadata map[string]any) // of its description
	iss              *string                       // in the answer: nil = none
	method           string                        // token_endpoint_auth_method; empty = none
	lifetime         int                           // of access tokens in seconds; 0 = 3600
	noRefresh        bool
	tokenReply       func(w http.ResponseWriter, r *http.Request) bool // answers in its place
	authError        string
	grant            func(asked []string) []string
	wantRedirectHost string

	mu       sync.Mutex
	clients  map[string]registered
	codes    map[string]grantedCode
	refresh  map[string]grantedCode
	access   map[string]grantedCode
	log      []string // "register", "authorize SCOPES", "code", "refresh", "revoke", "reuse"
	forms    []url.Values
	rotation int
}

type registered struct {
	secret    string
	redirects []string
}

type grantedCode struct {
	client, redirect, challenge, resource string
	scopes                                []string
}

func newIssuer(t *testing.T) *issuer {
	a := &issuer{
		t: t, clients: map[string]registered{}, codes: map[string]grantedCode{}, refresh: map[string]grantedCode{}, access: map[string]grantedCode{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", a.describe)
	mux.HandleFunc("POST /register", a.register)
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", a.token)
	mux.HandleFunc("POST /revoke", a.revoke)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *issuer) note(text string) {
	a.log = append(a.log, text)
}

// did returns what was done so far.
func (a *issuer) did() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.log)
}

func (a *issuer) count(what string) int {
	n := 0
	for _, d := range a.did() {
		if d == what || strings.HasPrefix(d, what+" ") {
			n++
		}
	}
	return n
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (a *issuer) describe(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
		"registration_endpoint": a.URL + "/register", "revocation_endpoint": a.URL + "/revoke",
		"code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"},
	}
	if a.method != "" {
		m["token_endpoint_auth_methods_supported"] = []string{a.method}
	}
	if a.iss != nil {
		m["authorization_response_iss_parameter_supported"] = true
	}
	if a.edit != nil {
		a.edit(m)
	}
	reply(w, http.StatusOK, m)
}

func (a *issuer) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Redirects []string `json:"redirect_uris"`
		Type      string   `json:"application_type"`
		Grants    []string `json:"grant_types"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Type != "native" || len(in.Redirects) != 1 || !slices.Contains(in.Grants, "refresh_token") {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	if u, _ := url.Parse(in.Redirects[0]); a.wantRedirectHost != "" && u.Hostname() != a.wantRedirectHost {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_redirect_uri"})
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note("register")
	id, secret := "client-"+rand.Text(), ""
	out := map[string]any{"client_id": id, "redirect_uris": in.Redirects}
	if a.method != "" && a.method != "none" {
		secret = "secret-" + rand.Text() + "/+="
		out["client_secret"], out["token_endpoint_auth_method"] = secret, a.method
	}
	a.clients[id] = registered{secret: secret, redirects: in.Redirects}
	reply(w, http.StatusCreated, out)
}

func (a *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(strings.TrimSpace("authorize " + q.Get("scope")))
	a.forms = append(a.forms, q)
	c, known := a.clients[q.Get("client_id")]
	redirect := q.Get("redirect_uri")
	if !known || !slices.Contains(c.redirects, redirect) || q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" {
		http.Error(w, "unknown client, redirect or challenge", http.StatusBadRequest)
		return
	}
	back, _ := url.Parse(redirect)
	answer := url.Values{"state": {q.Get("state")}}
	if a.iss != nil {
		answer.Set("iss", *a.iss)
	}
	if a.authError != "" {
		answer.Set("error", a.authError)
		answer.Set("error_description", "not today\x1b[31m")
	} else {
		code := "code-" + rand.Text()
		scopes := strings.Fields(q.Get("scope"))
		if a.grant != nil {
			scopes = a.grant(scopes)
		}
		a.codes[code] = grantedCode{client: q.Get("client_id"), redirect: redirect, challenge: q.Get("code_challenge"), resource: q.Get("resource"), scopes: scopes}
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// caller returns the id of the client that a request to the token endpoint
// comes from, and whether it showed who it is as it should.
func (a *issuer) caller(r *http.Request) (string, bool) {
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
		return id, a.method == "client_secret_basic" && a.clients[id].secret == secret
	}
	id = r.PostForm.Get("client_id")
	switch c, known := a.clients[id]; {
	case !known:
		return id, false
	case a.method == "client_secret_post":
		return id, c.secret == r.PostForm.Get("client_secret")
	case a.method == "" || a.method == "none":
		return id, r.PostForm.Get("client_secret") == ""
	}
	return id, false
}

func (a *issuer) token(w http.ResponseWriter, r *http.Request) {
	if a.tokenReply != nil && a.tokenReply(w, r) {
		return
	}
	_ = r.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forms = append(a.forms, r.PostForm)
	fail := func(code string) {
		// A clumsy issuer says everything that it got.
		reply(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": "refused: " + r.PostForm.Encode() + " " + r.PostForm.Get("refresh_token") + r.PostForm.Get("code")})
	}
	id, ok := a.caller(r)
	if !ok {
		fail("invalid_client")
		return
	}
	var g grantedCode
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		g, ok = a.codes[r.PostForm.Get("code")]
		delete(a.codes, r.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if !ok || g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) || g.redirect != r.PostForm.Get("redirect_uri") {
			fail("invalid_grant")
			return
		}
		a.note("code")
	case "refresh_token":
		old := r.PostForm.Get("refresh_token")
		if g, ok = a.refresh[old]; !ok {
			a.note("reuse")
			fail("invalid_grant")
			return
		}
		delete(a.refresh, old)
		a.note("refresh")
	default:
		fail("unsupported_grant_type")
		return
	}
	if g.client != id || g.resource != r.PostForm.Get("resource") || g.resource == "" {
		fail("invalid_target")
		return
	}
	a.rotation++
	access, refresh := fmt.Sprintf("access-%d-%s", a.rotation, rand.Text()), "refresh-"+rand.Text()
	a.access[access] = g
	lifetime := a.lifetime
	if lifetime == 0 {
		lifetime = 3600
	}
	out := map[string]any{"access_token": access, "token_type": "bearer", "expires_in": lifetime, "scope": strings.Join(g.scopes, " ")}
	if !a.noRefresh {
		a.refresh[refresh] = g
		out["refresh_token"] = refresh
	}
	reply(w, http.StatusOK, out)
}

func (a *issuer) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.caller(r); !ok {
		http.Error(w, "who?", http.StatusUnauthorized)
		return
	}
	a.note("revoke")
	delete(a.access, r.PostForm.Get("token"))
	delete(a.refresh, r.PostForm.Get("token"))
}

// expire makes all access tokens invalid.
func (a *issuer) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
}

// resource is an MCP server, as far as a sign-in goes: it answers "hello" to
// who has a token of its issuer with the scopes for it.
type resource struct {
	*httptest.Server
	mu     sync.Mutex
	issuer *issuer
	edit   func(description map[string]any)
	noHint bool     // the challenge does not say where the description is
	scope  string   // in the challenge
	need   []string // scopes, else 403
	seen   []string // Authorization headers
	bodies []string
	hidden bool // there is no description
}

func newResource(t *testing.T, a *issuer) *resource {
	m := &resource{issuer: a}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", m.describe)
	mux.HandleFunc("/mcp", m.serve)
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

func (m *resource) describe(w http.ResponseWriter, r *http.Request) {
	if m.hidden {
		http.NotFound(w, r)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := map[string]any{"resource": m.URL + "/mcp", "authorization_servers": []string{m.issuer.URL}}
	if m.edit != nil {
		m.edit(d)
	}
	reply(w, http.StatusOK, d)
}

func (m *resource) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	a, need := m.issuer, m.need
	m.seen = append(m.seen, r.Header.Get("Authorization"))
	m.bodies = append(m.bodies, string(body))
	m.mu.Unlock()
	a.mu.Lock()
	g, ok := a.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	a.mu.Unlock()
	hint := fmt.Sprintf(`Basic realm="x, y", Bearer resource_metadata=%q`, m.URL+"/.well-known/oauth-protected-resource/mcp")
	if m.noHint {
		hint = "Bearer"
	}
	if m.scope != "" {
		hint += fmt.Sprintf(`, scope=%q`, m.scope)
	}
	switch missing := slices.DeleteFunc(slices.Clone(need), func(s string) bool { return slices.Contains(g.scopes, s) }); {
	case !ok || g.resource != m.URL+"/mcp":
		w.Header().Set("WWW-Authenticate", hint)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	case len(missing) > 0:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, strings.Join(missing, " ")))
		http.Error(w, "not for you", http.StatusForbidden)
	default:
		fmt.Fprint(w, "hello ", len(body))
	}
}

// browser is a person whose browser follows every redirect.
type browser struct {
	mu     sync.Mutex
	visits int
	// before is called with the page's address, before the browser goes there.
	before func(page *url.URL)
	status int // of the page at which it ended
}

// Visit implements [oauth.Person].
func (b *browser) Visit(ctx context.Context, page string) (string, error) {
	b.mu.Lock()
	b.visits++
	b.mu.Unlock()
	u, err := url.Parse(page)
	if err != nil {
		return "", err
	}
	if b.before != nil {
		b.before(u)
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	res, err := web.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b.mu.Lock()
	b.status = res.StatusCode
	b.mu.Unlock()
	return "", nil
}

func (b *browser) visited() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.visits
}

// setup is a server, its issuer and a transport.
type setup struct {
	issuer   *issuer
	resource *resource
	person   *browser
	store    string
	opts     oauth.Options
}

func newSetup(t *testing.T) *setup {
	a := newIssuer(t)
	m := newResource(t, a)
	s := &setup{issuer: a, resource: m, person: &browser{}, store: t.TempDir()}
	base := &http.Transport{DisableKeepAlives: true}
	s.opts = oauth.Options{Server: m.URL + "/mcp", Store: oauth.NewStore(s.store, nil), Person: s.person, HowTo: "run agent mcp login x", Base: base}
	return s
}

func (s *setup) transport(t *testing.T) *oauth.Transport {
	t.Helper()
	tr, err := oauth.New(s.opts)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// ask sends a request and returns the status and the body.
func ask(t *testing.T, rt http.RoundTripper, address string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("the request"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

// greets fails the test unless the server lets the transport in.
func greets(t *testing.T, rt http.RoundTripper, s *setup) {
	t.Helper()
	status, body, err := ask(t, rt, s.opts.Server)
	if err != nil || status != http.StatusOK || body != "hello 11" {
		t.Fatalf("status %d, body %q, error %v", status, body, err)
	}
}
