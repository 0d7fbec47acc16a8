package oauth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/mcp/oauth"
	"github.com/seed-009c0928/agent/mcp/oauth/oauthtest"
)

func ExampleTransport() {
	signIn, err := oauth.New(oauth.Options{
		Server: "https://mcp.example.com/mcp",
		Store:  oauth.NewStore("/home/me/.agent/mcp-auth", nil),
		HowTo:  "run agent mcp login example",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: signIn} // for the MCP client
	status, err := signIn.Status(context.Background())
	fmt.Println(client.Transport == signIn, status.SignedIn, err)
	// Output: true false <nil>
}

// TestSignIn: the first request is sent unchanged, signing in is transparent to
// the caller, and the token is stored.
func TestSignIn(t *testing.T) {
	for _, method := range []string{"", "none", "client_secret_basic", "client_secret_post"} {
		t.Run("method "+method, func(t *testing.T) {
			s := newSetup(t)
			s.issuer.Method = method
			s.issuer.Iss = &s.issuer.URL
			s.resource.Scope = "read"
			tr := s.transport(t)
			greets(t, tr, s)
			greets(t, tr, s)
			if got, want := s.issuer.Did(), []string{"register", "authorize read", "code"}; !slices.Equal(got, want) {
				t.Errorf("the issuer did %q, want %q", got, want)
			}
			if seen := s.resource.Seen; len(seen) != 3 || seen[0] != "" || seen[1] == "" || seen[1] != seen[2] {
				t.Errorf("the server saw %d requests, the first with %q", len(seen), seen[0])
			}
			if b := s.resource.Bodies; b[0] != "the request" || b[1] != "the request" {
				t.Errorf("bodies: %q", b)
			}
			q := s.issuer.Forms[0]
			if q.Get("resource") != s.opts.Server || !strings.HasPrefix(q.Get("redirect_uri"), "http://127.0.0.1:") || len(q.Get("state")) < 20 {
				t.Errorf("the page's address: %v", q)
			}
			s.user = nil
			s.opts.Browser = nil // another process uses the stored token
			greets(t, s.transport(t), s)
			if st, err := s.transport(t).Status(t.Context()); err != nil || !st.SignedIn || !st.Renewable || st.Issuer != s.issuer.URL || !slices.Equal(st.Scopes, []string{"read"}) || time.Until(st.Expires) < time.Minute {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
}

func TestNonInteractive(t *testing.T) {
	s := newSetup(t)
	s.opts.Browser = nil
	_, _, err := ask(t, s.transport(t), s.opts.Server)
	var want *oauth.SignInError
	if !errors.As(err, &want) || !strings.Contains(err.Error(), "requires signing in: run agent mcp login x") {
		t.Fatalf("%v", err)
	}
	if n := s.issuer.Count("register"); n != 0 {
		t.Errorf("registered %d times", n)
	}
	if err := s.transport(t).SignIn(t.Context()); !errors.As(err, &want) {
		t.Errorf("SignIn: %v", err)
	}
}

func TestManyRequestsOneSignIn(t *testing.T) {
	s := newSetup(t)
	tr := s.transport(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { greets(t, tr, s) })
	}
	wg.Wait()
	if n := s.user.Visited(); n != 1 {
		t.Errorf("the user was asked %d times", n)
	}
}

// TestRenewal: a rejected token is refreshed without the user; refresh tokens are
// rotated.
func TestRenewal(t *testing.T) {
	s := newSetup(t)
	s.issuer.Method = "client_secret_basic"
	tr := s.transport(t)
	greets(t, tr, s)
	for range 3 {
		s.issuer.Expire()
		greets(t, tr, s)
	}
	if v, r, b := s.user.Visited(), s.issuer.Count("refresh"), s.issuer.Count("reuse"); v != 1 || r != 3 || b != 0 {
		t.Errorf("%d visits, %d renewals, %d times an old refresh token", v, r, b)
	}
}

// TestRenewalAhead: a token about to expire is refreshed before it is sent.
func TestRenewalAhead(t *testing.T) {
	s := newSetup(t)
	s.issuer.Lifetime = 5 // within the renewal margin
	tr := s.transport(t)
	greets(t, tr, s)
	greets(t, tr, s)
	if n := len(s.resource.Seen); n != 3 || s.issuer.Count("refresh") != 1 {
		t.Errorf("%d requests, the issuer did %q", n, s.issuer.Did())
	}
}

func TestRefreshTokenRefused(t *testing.T) {
	s := newSetup(t)
	var logged bytes.Buffer
	s.opts.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	tr := s.transport(t)
	greets(t, tr, s)
	s.issuer.Expire()
	s.issuer.Mu.Lock()
	clear(s.issuer.Refresh)
	s.issuer.Mu.Unlock()
	s.opts.Browser = nil
	_, _, err := ask(t, s.transport(t), s.opts.Server)
	var want *oauth.SignInError
	if !errors.As(err, &want) || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("non-interactively: %v", err)
	}
	greets(t, tr, s) // the user signs in again
	if s.user.Visited() != 2 || s.issuer.Count("register") != 1 {
		t.Errorf("the issuer did %q", s.issuer.Did())
	}
	// The issuer's error contained all that it was sent.
	if text := logged.String(); strings.Contains(text, "refresh-") || strings.Contains(text, "access-") {
		t.Errorf("a token is in the log: %s", text)
	}
}

// TestIssuerAway: temporary failures do not cost the sign-in.
func TestIssuerAway(t *testing.T) {
	s := newSetup(t)
	tr := s.transport(t)
	greets(t, tr, s)
	s.issuer.Expire()
	down := true
	s.issuer.TokenReply = func(w http.ResponseWriter, _ *http.Request) bool {
		if down {
			http.Error(w, "<html>down for refresh-maintenance", http.StatusBadGateway)
		}
		return down
	}
	_, _, err := ask(t, tr, s.opts.Server)
	if err == nil || !strings.Contains(err.Error(), "HTTP status 502") || strings.Contains(err.Error(), "maintenance") {
		t.Errorf("%v", err)
	}
	down = false
	greets(t, tr, s)
	if s.user.Visited() != 1 {
		t.Error("a sign-in for a passing fault")
	}
}

func TestClientForgotten(t *testing.T) {
	s := newSetup(t)
	tr := s.transport(t)
	greets(t, tr, s)
	s.issuer.Expire()
	s.issuer.Mu.Lock()
	clear(s.issuer.Clients)
	s.issuer.Mu.Unlock()
	greets(t, tr, s)
	if n := s.issuer.Count("register"); n != 2 {
		t.Errorf("registered %d times", n)
	}
}

// TestStepUp: the server demands another scope, which is requested in addition.
func TestStepUp(t *testing.T) {
	s := newSetup(t)
	s.resource.Scope = "read"
	tr := s.transport(t)
	greets(t, tr, s)
	s.resource.Mu.Lock()
	s.resource.Need = []string{"read", "write"}
	s.resource.Mu.Unlock()
	greets(t, tr, s)
	if got, want := s.issuer.Did(), []string{"register", "authorize read", "code", "authorize read write", "code"}; !slices.Equal(got, want) {
		t.Errorf("the issuer did %q, want %q", got, want)
	}
	s.resource.Mu.Lock()
	s.resource.Need = []string{"admin"}
	s.resource.Mu.Unlock()
	s.issuer.Grant = func([]string) []string { return []string{"read"} } // and no more
	for range 5 {
		if status, _, err := ask(t, tr, s.opts.Server); err != nil || status != http.StatusForbidden {
			t.Errorf("status %d, %v", status, err)
		}
	}
	if n := s.user.Visited(); n != 4 {
		t.Errorf("the user was asked %d times", n)
	}
	s.opts.Browser = nil
	_, _, err := ask(t, s.transport(t), s.opts.Server)
	var want *oauth.SignInError
	if !errors.As(err, &want) || !strings.Contains(err.Error(), "it demands more scopes") {
		t.Errorf("non-interactively: %v", err)
	}
}

// TestStepUpLater: scopes demanded non-interactively are requested by the next
// sign-in.
func TestStepUpLater(t *testing.T) {
	s := newSetup(t)
	s.resource.Scope = "read"
	greets(t, s.transport(t), s)
	s.resource.Mu.Lock()
	s.resource.Need = []string{"write"}
	s.resource.Mu.Unlock()
	user := s.opts.Browser
	s.opts.Browser = nil
	var want *oauth.SignInError
	if _, _, err := ask(t, s.transport(t), s.opts.Server); !errors.As(err, &want) {
		t.Fatalf("%v", err)
	}
	s.opts.Browser = user
	if err := s.transport(t).SignIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.opts.Browser = nil
	greets(t, s.transport(t), s)
	if got := s.issuer.Did(); !slices.Contains(got, "authorize read write") {
		t.Errorf("the issuer did %q", got)
	}
}

// TestNewTokenRefused: a server that rejects all tokens does not make the user sign
// in forever.
func TestNewTokenRefused(t *testing.T) {
	s := newSetup(t)
	s.issuer.Lifetime = 3600
	s.resource.Edit = func(d map[string]any) { d["resource"] = s.resource.URL } // tokens are then for another resource than serve requires
	status, _, err := ask(t, s.transport(t), s.opts.Server)
	if err != nil || status != http.StatusUnauthorized || s.user.Visited() != 1 {
		t.Errorf("status %d, %v, %d visits", status, err, s.user.Visited())
	}
}

// TestAnotherIssuer: a server's new issuer gets no credentials of the old one.
func TestAnotherIssuer(t *testing.T) {
	s := newSetup(t)
	tr := s.transport(t)
	greets(t, tr, s)
	second := oauthtest.NewIssuer(t)
	first := s.issuer.Did()
	s.resource.Mu.Lock()
	s.resource.Issuer = second
	s.resource.Mu.Unlock()
	greets(t, tr, s)
	if got, want := second.Did(), []string{"register", "authorize", "code"}; !slices.Equal(got, want) {
		t.Errorf("the second issuer did %q, want %q", got, want)
	}
	if got := s.issuer.Did(); !slices.Equal(got, first) {
		t.Errorf("the first issuer did %q", got)
	}
	for _, form := range second.Forms {
		if text := form.Encode(); strings.Contains(text, "refresh-") || slices.Contains(form["client_id"], s.issuer.Forms[0].Get("client_id")) {
			t.Errorf("the second issuer saw %s", text)
		}
	}
}

// TestMixUp: a response of another issuer is refused before its code is sent
// anywhere, and so is one without the announced issuer.
func TestMixUp(t *testing.T) {
	other, none := "https://honest.example", ""
	for name, tt := range map[string]struct {
		iss  *string
		edit func(map[string]any)
		want string
	}{
		"another issuer":      {&other, nil, "another issuer"},
		"trailing slash":      {nil, nil, "another issuer"},
		"empty":               {&none, nil, "another issuer"},
		"promised, not there": {nil, func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = true }, "does not name its issuer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.issuer.Iss, s.issuer.Edit = tt.iss, tt.edit
			if name == "trailing slash" {
				slash := s.issuer.URL + "/"
				s.issuer.Iss = &slash
			}
			_, _, err := ask(t, s.transport(t), s.opts.Server)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
			if n := s.issuer.Count("code"); n != 0 {
				t.Error("the code was sent to the token endpoint")
			}
		})
	}
	t.Run("an error of another issuer is not shown", func(t *testing.T) {
		s := newSetup(t)
		s.issuer.Iss, s.issuer.AuthError = &other, "pay_first"
		if _, _, err := ask(t, s.transport(t), s.opts.Server); err == nil || strings.Contains(err.Error(), "pay_first") {
			t.Errorf("%v", err)
		}
	})
}

func TestRefusedByUser(t *testing.T) {
	s := newSetup(t)
	s.issuer.AuthError = "access_denied"
	_, _, err := ask(t, s.transport(t), s.opts.Server)
	if err == nil || !strings.Contains(err.Error(), "access_denied: not today[31m") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}
}

// TestStrayRequests: requests of other pages to the redirect port neither end nor
// complete the sign-in.
func TestStrayRequests(t *testing.T) {
	s := newSetup(t)
	var statuses []int
	s.user.Before = func(page *url.URL) {
		redirect := page.Query().Get("redirect_uri")
		for _, r := range []struct{ method, address, host string }{
			{"GET", redirect + "?code=evil", ""},
			{"GET", redirect + "?code=evil&state=guess", ""},
			{"POST", redirect + "?code=evil&state=" + page.Query().Get("state"), ""},
			{"GET", strings.Replace(redirect, "/callback", "/other", 1) + "?code=evil&state=" + page.Query().Get("state"), ""},
			{"GET", redirect + "?code=evil&state=" + page.Query().Get("state"), "attacker.example"},
		} {
			req, err := http.NewRequestWithContext(t.Context(), r.method, r.address, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if r.host != "" {
				req.Host = r.host
			}
			res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			_ = res.Body.Close()
			statuses = append(statuses, res.StatusCode)
		}
	}
	greets(t, s.transport(t), s)
	if want := []int{400, 400, 404, 404, 404}; !slices.Equal(statuses, want) {
		t.Errorf("statuses %v, want %v", statuses, want)
	}
	if s.user.Status != http.StatusOK {
		t.Errorf("the browser ended at a page with status %d", s.user.Status)
	}
}

// pasting is a user on another machine, who pastes a URL.
type pasting func(page string) (string, error)

func (p pasting) Visit(_ context.Context, page string) (string, error) { return p(page) }

func TestPasted(t *testing.T) {
	s := newSetup(t)
	s.opts.Browser = pasting(func(page string) (string, error) {
		web := &http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		res, err := web.Get(page)
		if err != nil {
			return "", err
		}
		_ = res.Body.Close()
		return "  " + res.Header.Get("Location") + "\n", nil
	})
	greets(t, s.transport(t), s)

	for name, tt := range map[string]struct {
		paste string
		err   error
		want  string
	}{
		"nonsense":      {"code-secret", nil, "is not the URL"},
		"another state": {"http://127.0.0.1:1/callback?code=code-secret&state=x", nil, "state mismatch"},
		"given up":      {"", errors.New("the user gave up"), "the user gave up"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.opts.Browser = pasting(func(string) (string, error) { return tt.paste, tt.err })
			_, _, err := ask(t, s.transport(t), s.opts.Server)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "code-secret") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	s := newSetup(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.opts.Browser = pasting(func(string) (string, error) {
		cancel()
		return "", nil // the browser never comes
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.opts.Server, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.transport(t).RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestDiscovery: where metadata is found, and what is refused.
func TestDiscovery(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(*setup)
		want    string // in the error; empty = the sign-in succeeds
	}{
		"without a hint": {func(s *setup) { s.resource.NoHint = true }, ""},
		"suggested scopes": {func(s *setup) {
			s.resource.Edit = func(d map[string]any) { d["scopes_supported"] = []string{"a", "b"} }
		}, ""},
		"the server's own": {func(s *setup) { s.resource.Hidden = true }, "does not register clients (HTTP status 404)"},
		"another resource": {func(s *setup) {
			s.resource.Edit = func(d map[string]any) { d["resource"] = "https://bank.example/mcp" }
		}, "is for another resource"},
		"a longer path":          {func(s *setup) { s.resource.Edit = func(d map[string]any) { d["resource"] = s.resource.URL + "/mc" } }, "is for another resource"},
		"no issuer":              {func(s *setup) { s.resource.Edit = func(d map[string]any) { d["authorization_servers"] = []string{} } }, "has no authorization server"},
		"issuer in clear text":   {issuerAt("http://issuer.example"), "expected https"},
		"issuer of another kind": {issuerAt("file:///etc/passwd"), "expected https"},
		"issuer with a password": {issuerAt("https://me:hunter2@issuer.example"), "user name or password"},
		"issuer in the cloud":    {issuerAt("https://169.254.169.254"), "more private network than server"},
		"another issuer's words": {func(s *setup) { s.issuer.Edit = func(m map[string]any) { m["issuer"] = "https://honest.example" } }, "its metadata names another issuer"},
		"no PKCE": {func(s *setup) {
			s.issuer.Edit = func(m map[string]any) { delete(m, "code_challenge_methods_supported") }
		}, "PKCE"},
		"plain PKCE": {func(s *setup) {
			s.issuer.Edit = func(m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }
			s.opts.AssumePKCE = true
		}, "PKCE"},
		"PKCE assumed": {func(s *setup) {
			s.issuer.Edit = func(m map[string]any) { delete(m, "code_challenge_methods_supported") }
			s.opts.AssumePKCE = true
		}, ""},
		"a page that runs a program": {func(s *setup) {
			s.issuer.Edit = func(m map[string]any) { m["authorization_endpoint"] = "calculator:$(open)" }
		}, "authorization_endpoint"},
		"token endpoint in clear text": {func(s *setup) {
			s.issuer.Edit = func(m map[string]any) { m["token_endpoint"] = "http://issuer.example/token" }
		}, "token_endpoint"},
		"no registration": {func(s *setup) {
			s.issuer.Edit = func(m map[string]any) { delete(m, "registration_endpoint") }
		}, "does not support dynamic client registration"},
		"redirect by name": {func(s *setup) { s.issuer.RedirectHost = "localhost" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			tt.prepare(s)
			status, _, err := ask(t, s.transport(t), s.opts.Server)
			switch {
			case tt.want == "" && (err != nil || status != http.StatusOK):
				t.Errorf("status %d, %v", status, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2")):
				t.Errorf("%v; want %q", err, tt.want)
			}
		})
	}
}

func issuerAt(address string) func(*setup) {
	return func(s *setup) {
		s.resource.Edit = func(d map[string]any) { d["authorization_servers"] = []string{address} }
	}
}

func TestScopes(t *testing.T) {
	for name, tt := range map[string]struct {
		challenge          string
		suggested, offered []string
		configured         []string
		want               string
	}{
		"none":                  {want: "authorize"},
		"demanded":              {challenge: "x y", suggested: []string{"a"}, want: "authorize x y"},
		"suggested":             {suggested: []string{"a", "b"}, want: "authorize a b"},
		"configured":            {suggested: []string{"a", "b"}, configured: []string{"c"}, want: "authorize c"},
		"configured + demanded": {challenge: "x", configured: []string{"c"}, want: "authorize c x"},
		"offline":               {challenge: "x", offered: []string{"x", "offline_access"}, want: "authorize x offline_access"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			s.resource.Scope, s.opts.Scopes = tt.challenge, tt.configured
			s.resource.Edit = func(d map[string]any) { d["scopes_supported"] = tt.suggested }
			s.issuer.Edit = func(m map[string]any) { m["scopes_supported"] = tt.offered }
			greets(t, s.transport(t), s)
			if got := s.issuer.Did()[1]; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestHostileAnswers: web pages, endless bodies, redirects.
func TestHostileAnswers(t *testing.T) {
	endless := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"x": "`)
		chunk := bytes.Repeat([]byte("x"), 64<<10)
		for range 64 << 20 / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	for name, tt := range map[string]struct {
		path   string
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
		"web page":  {"/description", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "\n<!doctype html>") }, "returned a web page"},
		"no JSON":   {"/description", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[1]") }, "no valid JSON object"},
		"endless":   {"/description", func(w http.ResponseWriter, _ *http.Request) { endless(w) }, "more than 1048576 bytes"},
		"fault":     {"/description", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "HTTP status 500"},
		"redirects": {"/description", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "more than 3 redirects"},
		"redirect to a file": {"/description", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, "file"},
		"redirect to the cloud": {"/description", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://169.254.169.254/latest/meta-data/", http.StatusFound)
		}, "more private network than server"},
		"token endless": {"/token", func(w http.ResponseWriter, _ *http.Request) { endless(w) }, "token endpoint"},
		"token redirect": {"/token", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "HTTP status 307"},
		"token of another type": {"/token", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"access_token": "access-1", "token_type": "DPoP"}`)
		}, "expected Bearer"},
		"token with a line break": {"/token", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"access_token": "access-1\r\nX-Evil: 1", "token_type": "Bearer"}`)
		}, "invalid in a header"},
		"token missing": {"/token", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id": "access-1"}`) }, "no valid token"},
		"registration redirect": {"/register", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
		}, "HTTP status 308"},
		"registration closed": {"/register", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "does not register clients (HTTP status 401)"},
		"registration page":   {"/register", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "returned a web page"},
		"registration empty":  {"/register", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }, "returned no client_id"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			elsewhere := false
			hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					elsewhere = true
				}
				w.Header().Set("Content-Type", "application/json")
				tt.answer(w, r)
			}))
			defer hostile.Close()
			switch tt.path {
			case "/description":
				s.resource.Edit = func(d map[string]any) { d["authorization_servers"] = []string{hostile.URL} }
			case "/token":
				s.issuer.Edit = func(m map[string]any) { m["token_endpoint"] = hostile.URL + "/token" }
			case "/register":
				s.issuer.Edit = func(m map[string]any) { m["registration_endpoint"] = hostile.URL + "/register" }
			}
			_, _, err := ask(t, s.transport(t), s.opts.Server)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "access-1") || elsewhere {
				t.Errorf("%v (went elsewhere: %v); want %q", err, elsewhere, tt.want)
			}
		})
	}
}

// publicServer is an MCP server on the internet whose challenge leads elsewhere.
type publicServer struct{ hint string }

func (p publicServer) RoundTrip(*http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	rec.Header().Set("WWW-Authenticate", "Bearer resource_metadata="+p.hint)
	rec.WriteHeader(http.StatusUnauthorized)
	return rec.Result(), nil
}

// TestNoWayIntoThisMachine: a server on the internet cannot cause requests to this
// machine, its network or its cloud. Without the guard the first address would be
// requested.
func TestNoWayIntoThisMachine(t *testing.T) {
	asked := false
	local := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer local.Close()
	for _, hint := range []string{
		local.URL, strings.Replace(local.URL, "127.0.0.1", "localhost", 1), "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:127.0.0.1]/",
		"https://169.254.169.254/", "https://10.0.0.1/", "https://192.168.1.1/", "https://[fe80::1]/", "https://[fd00::1]/", "https://0.0.0.0/", "https://100.100.100.200/",
	} {
		tr, err := oauth.New(oauth.Options{Server: "https://203.0.113.1/mcp", Store: oauth.NewStore(t.TempDir(), nil), Base: publicServer{hint}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ask(t, tr, "https://203.0.113.1/mcp"); err == nil || !strings.Contains(err.Error(), "more private network than server") {
			t.Errorf("%s: %v", hint, err)
		}
	}
	if asked {
		t.Error("a server of this machine was asked")
	}
}

// TestServerRedirect: the token is only sent to the server's origin.
func TestServerRedirect(t *testing.T) {
	s := newSetup(t)
	tr := s.transport(t)
	greets(t, tr, s)
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer other.Close()
	before := s.user.Visited()
	if status, _, err := ask(t, tr, other.URL); err != nil || status != http.StatusUnauthorized {
		t.Errorf("status %d, %v", status, err)
	}
	if len(got) != 1 || got[0] != "" || s.user.Visited() != before {
		t.Errorf("the other server saw %q", got)
	}
}

func TestManualClient(t *testing.T) {
	s := newSetup(t)
	s.issuer.Method = "client_secret_post"
	s.issuer.Edit = func(m map[string]any) { delete(m, "registration_endpoint") }
	free := httptest.NewServer(nil)
	s.opts.RedirectURL = strings.Replace(free.URL, "127.0.0.1", "localhost", 1) + "/back"
	free.Close()
	s.opts.ClientID, s.opts.ClientSecret = "by-hand", "secret by hand"
	s.issuer.Clients["by-hand"] = oauthtest.Client{Secret: "secret by hand", Redirects: []string{s.opts.RedirectURL}}
	tr := s.transport(t)
	greets(t, tr, s)
	s.issuer.Expire()
	greets(t, tr, s)
	if got, want := s.issuer.Did(), []string{"authorize", "code", "refresh"}; !slices.Equal(got, want) {
		t.Errorf("the issuer did %q, want %q", got, want)
	}
	// Credentials of another client are ignored.
	s.opts.ClientID, s.opts.Browser = "another", nil
	var want *oauth.SignInError
	if _, _, err := ask(t, s.transport(t), s.opts.Server); !errors.As(err, &want) {
		t.Errorf("%v", err)
	}
}

func TestMetadataDocument(t *testing.T) {
	s := newSetup(t)
	s.opts.ClientMetadataURL = "https://agent.example/client.json"
	s.issuer.Edit = func(m map[string]any) { m["client_id_metadata_document_supported"] = true }
	s.user.Before = func(page *url.URL) { // the issuer has read the document
		s.issuer.Mu.Lock()
		defer s.issuer.Mu.Unlock()
		s.issuer.Clients[s.opts.ClientMetadataURL] = oauthtest.Client{Redirects: []string{page.Query().Get("redirect_uri")}}
	}
	greets(t, s.transport(t), s)
	if got, want := s.issuer.Did(), []string{"authorize", "code"}; !slices.Equal(got, want) {
		t.Errorf("the issuer did %q, want %q", got, want)
	}
}

func TestSignInAndOut(t *testing.T) {
	s := newSetup(t)
	tr := s.transport(t)
	if err := tr.SignIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b := s.resource.Bodies; len(b) != 1 || !strings.Contains(b[0], `"ping"`) {
		t.Errorf("the server got %q", b)
	}
	greets(t, tr, s)
	if err := tr.SignIn(t.Context()); err != nil || s.user.Visited() != 2 || s.issuer.Count("register") != 1 {
		t.Errorf("again: %v, the issuer did %q", err, s.issuer.Did())
	}
	if revoked, err := tr.SignOut(t.Context()); err != nil || !revoked || s.issuer.Count("revoke") != 2 {
		t.Errorf("revoked %v, %v, the issuer did %q", revoked, err, s.issuer.Did())
	}
	if st, err := tr.Status(t.Context()); err != nil || st.SignedIn {
		t.Errorf("%+v, %v", st, err)
	}
	s.opts.Browser = nil
	var want *oauth.SignInError
	if _, _, err := ask(t, s.transport(t), s.opts.Server); !errors.As(err, &want) {
		t.Errorf("%v", err)
	}
	if revoked, err := s.transport(t).SignOut(t.Context()); err != nil || revoked {
		t.Errorf("signed out twice: %v, %v", revoked, err)
	}
}

func TestNew(t *testing.T) {
	store := oauth.NewStore(t.TempDir(), nil)
	for address, want := range map[string]string{
		"https://mcp.example/mcp":      "",
		"http://localhost:8080/mcp":    "",
		"http://[::1]:8080/mcp":        "",
		"http://mcp.example/mcp":       "requires https",
		"http://10.0.0.1/mcp":          "requires https",
		"mcp.example":                  "expected https://",
		"https://me:pass@mcp.example/": "expected https://",
		"ftp://mcp.example/":           "requires https",
	} {
		_, err := oauth.New(oauth.Options{Server: address, Store: store})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	for _, o := range []oauth.Options{
		{Server: "https://mcp.example"},
		{Server: "https://mcp.example", Store: store, RedirectURL: "https://localhost:1/x"},
		{Server: "https://mcp.example", Store: store, RedirectURL: "http://evil.example:1/x"},
		{Server: "https://mcp.example", Store: store, RedirectURL: "http://127.0.0.1/x"},
		{Server: "https://mcp.example", Store: store, ClientMetadataURL: "http://agent.example/x"},
		{Server: "https://mcp.example", Store: store, ClientMetadataURL: "https://agent.example/"},
	} {
		if _, err := oauth.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// keyring is an in-memory keyring; full makes writes fail.
type keyring struct {
	mu   sync.Mutex
	m    map[string]string
	full bool
}

func (k *keyring) Get(_ context.Context, name string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.m[name]
	if !ok {
		return "", fmt.Errorf("entry %s: %w", name, fs.ErrNotExist)
	}
	return v, nil
}

func (k *keyring) Set(_ context.Context, name, value string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full {
		return errors.New("too big")
	}
	k.m[name] = value
	return nil
}

func (k *keyring) Delete(_ context.Context, name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.m[name]; !ok {
		return fs.ErrNotExist
	}
	delete(k.m, name)
	return nil
}

// TestStore: credentials are in the keyring or in a file that only its owner can
// read, never in both.
func TestStore(t *testing.T) {
	s := newSetup(t)
	keys := &keyring{m: map[string]string{}}
	s.opts.Store = oauth.NewStore(s.store, keys)
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(s.store, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	tr := s.transport(t)
	greets(t, tr, s)
	if len(keys.m) != 1 || len(files()) != 0 {
		t.Errorf("%d entries in the keyring, files %v", len(keys.m), files())
	}
	keys.full = true
	s.issuer.Expire()
	greets(t, tr, s)
	if len(keys.m) != 0 || len(files()) != 1 {
		t.Errorf("a full keyring: %d entries, files %v", len(keys.m), files())
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(files()[0]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	greets(t, s.transport(t), s)
	keys.full = false
	s.issuer.Expire()
	greets(t, s.transport(t), s)
	if len(keys.m) != 1 || len(files()) != 0 || s.user.Visited() != 1 {
		t.Errorf("back: %d entries, files %v, %d visits", len(keys.m), files(), s.user.Visited())
	}
	if _, err := tr.SignOut(t.Context()); err != nil || len(keys.m) != 0 {
		t.Errorf("signed out: %v, %d entries", err, len(keys.m))
	}
}

func TestBrokenRecord(t *testing.T) {
	s := newSetup(t)
	greets(t, s.transport(t), s)
	found, err := filepath.Glob(filepath.Join(s.store, "*.json"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	for text, want := range map[string]string{"{": "", `{"version": 99}`: "newer version", `{"version": 1, "server": "https://other.example"}`: ""} {
		if err := os.WriteFile(found[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := ask(t, s.transport(t), s.opts.Server)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// otherProcess is the process of TestTwoProcesses: a request with the stored
// credentials.
func otherProcess(server, store string) int {
	tr, err := oauth.New(oauth.Options{Server: server, Store: oauth.NewStore(store, nil)})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server, strings.NewReader("the request"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer res.Body.Close()
	fmt.Print(res.StatusCode)
	return 0
}

// TestTwoProcesses: the token is rejected for several processes at the same time.
// One refreshes it and the others use the result: an issuer that sees a refresh
// token twice revokes all tokens.
func TestTwoProcesses(t *testing.T) {
	s := newSetup(t)
	greets(t, s.transport(t), s)
	s.issuer.Expire()
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "OAUTH_TEST_SERVER="+s.opts.Server, "OAUTH_TEST_STORE="+s.store)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "200" {
				t.Errorf("%s, %v", out, err)
			}
		})
	}
	wg.Wait()
	if r, b := s.issuer.Count("refresh"), s.issuer.Count("reuse"); r != 1 || b != 0 {
		t.Errorf("%d renewals, %d times an old refresh token", r, b)
	}
}

// TestRecord: the stored credentials are all that a later process needs, and name
// their server.
func TestRecord(t *testing.T) {
	s := newSetup(t)
	greets(t, s.transport(t), s)
	found, err := filepath.Glob(filepath.Join(s.store, "*.json"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var record struct {
		Version                            int
		Server, Issuer, Resource, TokenURL string
	}
	if err := json.Unmarshal(data, &record); err != nil || record.Version != 1 || record.Server != s.opts.Server || record.Issuer != s.issuer.URL || record.Resource != s.opts.Server {
		t.Errorf("%v, %+v", err, record)
	}
}
