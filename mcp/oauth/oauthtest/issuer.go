package oauthtest

import (
	"bytes"
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
	"time"
)

// Issuer is an authorization server: it registers clients, signs them in without
// asking, checks PKCE, resource, redirect and client authentication, and rotates
// refresh tokens, each of which it accepts once.
type Issuer struct {
	*httptest.Server

	// Deviations from the default behaviour; set before use.
	Edit         func(metadata map[string]any) // changes its metadata
	Iss          *string                       // iss in the response; nil = none
	Method       string                        // token_endpoint_auth_method; empty = none
	Lifetime     int                           // of access tokens in seconds; 0 = 3600
	NoRefresh    bool
	TokenReply   func(w http.ResponseWriter, r *http.Request) bool // responds instead of it
	AuthError    string
	Grant        func(asked []string) []string
	RedirectHost string

	Mu       sync.Mutex
	Clients  map[string]Client
	codes    map[string]grantedCode
	Refresh  map[string]grantedCode
	Access   map[string]grantedCode
	log      []string // "register", "authorize SCOPES", "code", "refresh", "revoke", "reuse"
	Forms    []url.Values
	rotation int
}

// Client is a registered client.
type Client struct {
	Secret    string
	Redirects []string
}

// Owner is a test that servers are closed with, such as a *testing.T.
type Owner interface{ Cleanup(f func()) }

type grantedCode struct {
	client, redirect, challenge, resource string
	scopes                                []string
}

// NewIssuer starts an issuer, which is closed with the test.
func NewIssuer(t Owner) *Issuer {
	a := &Issuer{
		Clients: map[string]Client{}, codes: map[string]grantedCode{}, Refresh: map[string]grantedCode{}, Access: map[string]grantedCode{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", a.describe)
	mux.HandleFunc("POST /register", a.register)
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", a.token)
	mux.HandleFunc("POST /revoke", a.revoke)
	a.Server = httptest.NewUnstartedServer(mux) // handlers use a.URL
	a.Start()
	t.Cleanup(a.Close)
	return a
}

func (a *Issuer) note(text string) {
	a.log = append(a.log, text)
}

// Did returns the log so far.
func (a *Issuer) Did() []string {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return slices.Clone(a.log)
}

// Count returns how often something was logged.
func (a *Issuer) Count(what string) int {
	n := 0
	for _, d := range a.Did() {
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

func (a *Issuer) describe(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
		"registration_endpoint": a.URL + "/register", "revocation_endpoint": a.URL + "/revoke",
		"code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"},
	}
	if a.Method != "" {
		m["token_endpoint_auth_methods_supported"] = []string{a.Method}
	}
	if a.Iss != nil {
		m["authorization_response_iss_parameter_supported"] = true
	}
	if a.Edit != nil {
		a.Edit(m)
	}
	reply(w, http.StatusOK, m)
}

func (a *Issuer) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Redirects []string `json:"redirect_uris"`
		Type      string   `json:"application_type"`
		Grants    []string `json:"grant_types"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Type != "native" || len(in.Redirects) != 1 || !slices.Contains(in.Grants, "refresh_token") {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	if u, _ := url.Parse(in.Redirects[0]); a.RedirectHost != "" && u.Hostname() != a.RedirectHost {
		reply(w, http.StatusBadRequest, map[string]string{"error": "invalid_redirect_uri"})
		return
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.note("register")
	id, secret := "client-"+rand.Text(), ""
	out := map[string]any{"client_id": id, "redirect_uris": in.Redirects}
	if a.Method != "" && a.Method != "none" {
		secret = "secret-" + rand.Text() + "/+="
		out["client_secret"], out["token_endpoint_auth_method"] = secret, a.Method
	}
	a.Clients[id] = Client{Secret: secret, Redirects: in.Redirects}
	reply(w, http.StatusCreated, out)
}

func (a *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.note(strings.TrimSpace("authorize " + q.Get("scope")))
	a.Forms = append(a.Forms, q)
	c, known := a.Clients[q.Get("client_id")]
	redirect := q.Get("redirect_uri")
	if !known || !slices.Contains(c.Redirects, redirect) || q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" {
		http.Error(w, "unknown client, redirect or challenge", http.StatusBadRequest)
		return
	}
	back, _ := url.Parse(redirect)
	answer := url.Values{"state": {q.Get("state")}}
	if a.Iss != nil {
		answer.Set("iss", *a.Iss)
	}
	if a.AuthError != "" {
		answer.Set("error", a.AuthError)
		answer.Set("error_description", "not today\x1b[31m")
	} else {
		code := "code-" + rand.Text()
		scopes := strings.Fields(q.Get("scope"))
		if a.Grant != nil {
			scopes = a.Grant(scopes)
		}
		a.codes[code] = grantedCode{client: q.Get("client_id"), redirect: redirect, challenge: q.Get("code_challenge"), resource: q.Get("resource"), scopes: scopes}
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// caller returns the ID of the client of a token request, and whether it
// authenticated correctly.
func (a *Issuer) caller(r *http.Request) (string, bool) {
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
		return id, a.Method == "client_secret_basic" && a.Clients[id].Secret == secret
	}
	id = r.PostForm.Get("client_id")
	switch c, known := a.Clients[id]; {
	case !known:
		return id, false
	case a.Method == "client_secret_post":
		return id, c.Secret == r.PostForm.Get("client_secret")
	case a.Method == "" || a.Method == "none":
		return id, r.PostForm.Get("client_secret") == ""
	}
	return id, false
}

func (a *Issuer) token(w http.ResponseWriter, r *http.Request) {
	if a.TokenReply != nil && a.TokenReply(w, r) {
		return
	}
	_ = r.ParseForm()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.Forms = append(a.Forms, r.PostForm)
	fail := func(code string) {
		// Echo the request, as careless issuers do.
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
		if g, ok = a.Refresh[old]; !ok {
			a.note("reuse")
			fail("invalid_grant")
			return
		}
		delete(a.Refresh, old)
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
	a.Access[access] = g
	lifetime := a.Lifetime
	if lifetime == 0 {
		lifetime = 3600
	}
	out := map[string]any{"access_token": access, "token_type": "bearer", "expires_in": lifetime, "scope": strings.Join(g.scopes, " ")}
	if !a.NoRefresh {
		a.Refresh[refresh] = g
		out["refresh_token"] = refresh
	}
	reply(w, http.StatusOK, out)
}

func (a *Issuer) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if _, ok := a.caller(r); !ok {
		http.Error(w, "who?", http.StatusUnauthorized)
		return
	}
	a.note("revoke")
	delete(a.Access, r.PostForm.Get("token"))
	delete(a.Refresh, r.PostForm.Get("token"))
}

// Expire invalidates all access tokens.
func (a *Issuer) Expire() {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	clear(a.Access)
}

// Resource is an MCP server as far as signing in goes: it requires a token of its
// issuer with sufficient scopes.
type Resource struct {
	*httptest.Server
	Mu     sync.Mutex
	Issuer *Issuer
	Edit   func(metadata map[string]any)
	NoHint bool     // no URL of the metadata in the challenge
	Scope  string   // in the challenge
	Need   []string // required scopes, else 403
	Seen   []string // Authorization headers
	Bodies []string
	Hidden bool         // no metadata
	Serve  http.Handler // serves authorized requests; nil responds "hello" and the length of the body
}

// NewResource starts a configured server, which is closed with the test.
func NewResource(t Owner, a *Issuer, configure ...func(*Resource)) *Resource {
	m := &Resource{Issuer: a}
	for _, set := range configure {
		set(m)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", m.describe)
	mux.HandleFunc("/mcp", m.serve)
	m.Server = httptest.NewUnstartedServer(mux)
	m.Start()
	t.Cleanup(m.Close)
	return m
}

func (m *Resource) describe(w http.ResponseWriter, r *http.Request) {
	if m.Hidden {
		http.NotFound(w, r)
		return
	}
	m.Mu.Lock()
	defer m.Mu.Unlock()
	d := map[string]any{"resource": m.URL + "/mcp", "authorization_servers": []string{m.Issuer.URL}}
	if m.Edit != nil {
		m.Edit(d)
	}
	reply(w, http.StatusOK, d)
}

func (m *Resource) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.Mu.Lock()
	a, need := m.Issuer, m.Need
	m.Seen = append(m.Seen, r.Header.Get("Authorization"))
	m.Bodies = append(m.Bodies, string(body))
	m.Mu.Unlock()
	a.Mu.Lock()
	g, ok := a.Access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	a.Mu.Unlock()
	hint := fmt.Sprintf(`Basic realm="x, y", Bearer resource_metadata=%q`, m.URL+"/.well-known/oauth-protected-resource/mcp")
	if m.NoHint {
		hint = "Bearer"
	}
	if m.Scope != "" {
		hint += fmt.Sprintf(`, scope=%q`, m.Scope)
	}
	switch missing := slices.DeleteFunc(slices.Clone(need), func(s string) bool { return slices.Contains(g.scopes, s) }); {
	case !ok || g.resource != m.URL+"/mcp":
		w.Header().Set("WWW-Authenticate", hint)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	case len(missing) > 0:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, strings.Join(missing, " ")))
		http.Error(w, "not for you", http.StatusForbidden)
	case m.Serve != nil:
		r.Body = io.NopCloser(bytes.NewReader(body))
		m.Serve.ServeHTTP(w, r)
	default:
		fmt.Fprint(w, "hello ", len(body))
	}
}

// Browser is a user whose browser follows every redirect.
type Browser struct {
	Mu     sync.Mutex
	Visits int
	// Before is called with the page's URL, before the browser goes there.
	Before func(page *url.URL)
	Status int // of the last page
}

// Visit implements [oauth.Browser].
func (b *Browser) Visit(ctx context.Context, page string) (string, error) {
	b.Mu.Lock()
	b.Visits++
	b.Mu.Unlock()
	u, err := url.Parse(page)
	if err != nil {
		return "", err
	}
	if b.Before != nil {
		b.Before(u)
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
	b.Mu.Lock()
	b.Status = res.StatusCode
	b.Mu.Unlock()
	return "", nil
}

// Visited returns the number of visits.

func (b *Browser) Visited() int {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.Visits
}
