package oauth

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Browser takes the user to the sign-in page.
//
// Visit shows the page, by opening a browser or by printing the URL. The browser
// is redirected to a local port on which the transport listens; ctx is then done.
// If the browser runs on another machine, the user may copy the URL that it was
// redirected to: Visit then returns it. After "" without an error the transport
// keeps waiting for the browser; an error ends the sign-in.
type Browser interface {
	Visit(ctx context.Context, page string) (pasted string, err error)
}

// Options configure signing in to a server. Server and Store are required.
type Options struct {
	Server  string  // URL of the MCP endpoint
	Store   *Store  // stores credentials
	Browser Browser // nil = non-interactive: a *SignInError

	// ClientID and ClientSecret are those of a manually registered client.
	// Without them the client uses its metadata document, if the issuer supports
	// it, or registers dynamically.
	ClientID     string
	ClientSecret string
	// ClientMetadataURL is the https URL of the client's metadata document.
	ClientMetadataURL string
	// ClientName is what the issuer shows to the user; empty = "agent".
	ClientName string
	// RedirectURL is the redirect URL of a client that was registered with a
	// fixed one: http, on localhost, 127.0.0.1 or [::1], with a port. Empty =
	// http://127.0.0.1:PORT/callback with a free port.
	RedirectURL string
	// Scopes are requested instead of those that the server suggests. Those that
	// it demands are always requested.
	Scopes []string
	// AssumePKCE accepts an issuer that does not announce PKCE.
	AssumePKCE bool

	// HowTo is the advice in SignInError.
	HowTo string
	// Base sends the requests; nil = http.DefaultTransport. If it is an
	// *http.Transport, its proxy and TLS settings apply to the issuer, too.
	Base   http.RoundTripper
	Logger *slog.Logger // nil = none
}

// SignInError means that a server requires the user to sign in, which is not
// possible non-interactively.
type SignInError struct {
	Server string // its URL
	Reason string // why the stored credentials are not sufficient; may be empty
	HowTo  string
}

// Error implements error.
func (e *SignInError) Error() string {
	text := e.Server + " requires signing in"
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	if e.HowTo != "" {
		text += ": " + e.HowTo
	}
	return text
}

// Transport is an [http.RoundTripper] that signs in. It is safe for concurrent
// use: requests that need a token at the same time wait for one sign-in.
type Transport struct {
	opts     Options
	server   *url.URL
	key      string
	base     http.RoundTripper
	web      *web
	log      *slog.Logger
	redirect *url.URL // nil = any port

	obtaining chan struct{} // held while obtaining a token

	mu     sync.Mutex
	loaded bool
	creds  credentials
	steps  map[string]int // sign-ins for more scopes, by demanded scopes
}

// New returns a transport for a server, without reading credentials yet.
func New(opts Options) (*Transport, error) {
	server, err := url.Parse(opts.Server)
	if err != nil || server.Host == "" || server.User != nil {
		return nil, fmt.Errorf("invalid server URL: expected https://HOST/PATH")
	}
	if server.Scheme != "https" && !(server.Scheme == "http" && isLoopbackName(server.Hostname())) {
		return nil, fmt.Errorf("%s: signing in requires https, to protect the token", server.Redacted())
	}
	if opts.Store == nil {
		return nil, errors.New("oauth.New: Store is required")
	}
	t := &Transport{
		opts: opts, server: server, key: storeKey(server), base: cmp.Or[http.RoundTripper](opts.Base, http.DefaultTransport),
		log: opts.Logger, obtaining: make(chan struct{}, 1), steps: map[string]int{},
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.opts.ClientName = cmp.Or(opts.ClientName, "agent")
	if opts.RedirectURL != "" {
		if t.redirect, err = parseRedirect(opts.RedirectURL); err != nil {
			return nil, err
		}
	}
	if opts.ClientMetadataURL != "" {
		u, err := url.Parse(opts.ClientMetadataURL)
		if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") == "" {
			return nil, fmt.Errorf("client metadata URL %q: expected https://HOST/PATH", opts.ClientMetadataURL)
		}
	}
	t.web = newWeb(server, t.base)
	return t, nil
}

// attempts are the attempts made for one request.
type attempts struct{ renewed, signedIn, steppedUp bool }

// RoundTrip implements [http.RoundTripper]. Requests to another origin than the
// server's, as after a redirect, are sent unchanged and without a token.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != t.server.Scheme || !strings.EqualFold(req.URL.Host, t.server.Host) {
		return t.base.RoundTrip(req)
	}
	body, err := replayable(req)
	if err != nil {
		return nil, err
	}
	ctx := req.Context()
	token, err := t.token(ctx)
	if err != nil {
		return nil, err
	}
	var done attempts
	for {
		res, err := t.send(req, body, token)
		if err != nil {
			return nil, err
		}
		ch, refused := refusal(res)
		if !refused {
			return res, nil
		}
		next, err := t.obtain(ctx, token, ch, &done)
		if errors.Is(err, errExhausted) {
			return res, nil // the caller sees the server's response
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
		_ = res.Body.Close()
		if err != nil {
			return nil, err
		}
		token = next
	}
}

// errExhausted means that there is nothing left to try for a rejected request.
var errExhausted = errors.New("nothing left to try")

// send sends a copy of the request with the token, if there is one.
func (t *Transport) send(req *http.Request, body func() (io.ReadCloser, error), token string) (*http.Response, error) {
	clone := req.Clone(req.Context())
	if body != nil {
		b, err := body()
		if err != nil {
			return nil, err
		}
		clone.Body = b
	}
	if token != "" {
		clone.Header.Set("Authorization", "Bearer "+token)
	}
	return t.base.RoundTrip(clone)
}

// replayable returns a function that returns the request's body anew each time,
// nil if it has none. It consumes the request's own body.
func replayable(req *http.Request) (func() (io.ReadCloser, error), error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	defer req.Body.Close()
	if req.GetBody != nil {
		return req.GetBody, nil
	}
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, nil
}

// refusal reports whether the server rejected a request for lack of a token or of
// scopes, and what it demands.
func refusal(res *http.Response) (challenge, bool) {
	ch := bearerChallenge(res.Header.Values("WWW-Authenticate"))
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		return ch, true
	case res.StatusCode == http.StatusForbidden && ch.err == "insufficient_scope":
		ch.more = true
		return ch, true
	}
	return ch, false
}

// renewMargin is how long before its expiry a token is refreshed.
const renewMargin = 10 * time.Second

// token returns the token for the first attempt: none, the stored one, or a
// refreshed one if that has expired.
func (t *Transport) token(ctx context.Context) (string, error) {
	c, err := t.current(ctx)
	if err != nil {
		return "", err
	}
	if !c.expired() || c.Token.Refresh == "" {
		return c.Token.Access, nil // the server may still accept it
	}
	release, err := t.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	switch token, err := t.renew(ctx, c.Token.Access, c.Resource); {
	case errors.Is(err, errNotRenewed):
		return "", nil // without one the server says what it demands
	default:
		return token, err
	}
}

// acquire waits until no other request of this transport is obtaining a token.
func (t *Transport) acquire(ctx context.Context) (release func(), err error) {
	select {
	case t.obtaining <- struct{}{}:
		return func() { <-t.obtaining }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// current returns the credentials as cached in this process.
func (t *Transport) current(ctx context.Context) (credentials, error) {
	t.mu.Lock()
	c, loaded := t.creds, t.loaded
	t.mu.Unlock()
	if loaded {
		return c, nil
	}
	return t.reload(ctx)
}

// reload rereads the credentials, which another process may have changed. It
// ignores those of another client than the configured one.
func (t *Transport) reload(ctx context.Context) (credentials, error) {
	c, err := t.opts.Store.load(ctx, t.key)
	if err != nil {
		return credentials{}, fmt.Errorf("credentials for %s: %w", t.server.Redacted(), err)
	}
	if c.Server != t.server.String() || t.opts.ClientID != "" && c.Client.ID != t.opts.ClientID {
		c = credentials{}
	}
	t.remember(c)
	return c, nil
}

func (t *Transport) remember(c credentials) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.creds, t.loaded = c, true
}

// save stores the credentials. This process uses them even if that fails.
func (t *Transport) save(ctx context.Context, c credentials) error {
	c.Server = t.server.String()
	t.remember(c)
	if err := t.opts.Store.save(ctx, t.key, c); err != nil {
		return fmt.Errorf("cannot save the credentials for %s: %w", t.server.Redacted(), err)
	}
	return nil
}

// obtain returns a token to replace the rejected one: one that another request or
// process has obtained since, a refreshed one, or one from signing in.
func (t *Transport) obtain(ctx context.Context, refused string, ch challenge, done *attempts) (string, error) {
	release, err := t.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	c, err := t.reload(ctx)
	if err != nil {
		return "", err
	}
	if c.Token.Access != "" && c.Token.Access != refused && !c.expired() {
		return c.Token.Access, nil
	}
	if done.signedIn && !ch.more || done.steppedUp && ch.more || ch.more && !t.mayStepUp(ch) {
		return "", errExhausted
	}
	found, err := t.discover(ctx, ch.metadata)
	if err != nil {
		return "", fmt.Errorf("sign-in to %s: %w", t.server.Redacted(), err)
	}
	reason := ""
	if c.Issuer != "" && c.Issuer != found.issuer.Issuer { // never send credentials to another issuer
		c, reason = credentials{}, "it has changed its authorization server"
	}
	if !ch.more && !done.renewed && c.Token.Refresh != "" {
		done.renewed = true
		switch token, err := t.renew(ctx, refused, found.resource); {
		case errors.Is(err, errNotRenewed):
			if c, err = t.current(ctx); err != nil {
				return "", err
			}
			reason = "the previous sign-in has expired"
		default:
			return token, err
		}
	}
	if ch.more {
		done.steppedUp, reason = true, "it demands more scopes"
	} else {
		done.signedIn = true
	}
	if t.opts.Browser == nil {
		if ch.more && c.Token.Access != "" { // for the next sign-in
			c.Scopes = t.scopes(c, found, ch)
			err = t.locked(ctx, func() error { return t.save(ctx, c) })
		}
		return "", errors.Join(&SignInError{Server: t.server.Redacted(), Reason: reason, HowTo: t.opts.HowTo}, err)
	}
	c, err = t.signIn(ctx, c, found, ch)
	if err != nil {
		return "", fmt.Errorf("sign-in to %s: %w", t.server.Redacted(), err)
	}
	if err := t.locked(ctx, func() error { return t.save(ctx, c) }); err != nil {
		t.log.WarnContext(ctx, "signed in for this process only", "cause", err)
	}
	return c.Token.Access, nil
}

// mayStepUp counts the sign-ins for more scopes, and reports whether to try
// another one: after two for the same scopes, a third would not help.
func (t *Transport) mayStepUp(ch challenge) bool {
	const times = 2
	key := strings.Join(slices.Sorted(slices.Values(ch.scopes)), " ")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps[key]++
	return t.steps[key] <= times
}

// lockTimeout limits the wait for another process that refreshes a token.
const lockTimeout = 45 * time.Second

// locked runs f while no other process changes the credentials.
func (t *Transport) locked(ctx context.Context, f func() error) error {
	waiting, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	unlock, err := t.opts.Store.lock(waiting, t.key)
	if err != nil {
		return err
	}
	return errors.Join(f(), unlock())
}

// SignIn signs in, even if there are valid credentials.
func (t *Transport) SignIn(ctx context.Context) error {
	if t.opts.Browser == nil {
		return &SignInError{Server: t.server.Redacted(), HowTo: t.opts.HowTo}
	}
	release, err := t.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	ch, err := t.probe(ctx)
	if err != nil {
		return err
	}
	found, err := t.discover(ctx, ch.metadata)
	if err != nil {
		return fmt.Errorf("sign-in to %s: %w", t.server.Redacted(), err)
	}
	c, err := t.reload(ctx)
	if err != nil {
		return err
	}
	if c.Issuer != found.issuer.Issuer {
		c = credentials{}
	}
	if c, err = t.signIn(ctx, c, found, ch); err != nil {
		return fmt.Errorf("sign-in to %s: %w", t.server.Redacted(), err)
	}
	return t.locked(ctx, func() error { return t.save(ctx, c) })
}

// ping is a request without side effects.
const ping = `{"jsonrpc":"2.0","id":"sign-in","method":"ping"}`

// probe sends a request without a token, to find out what the server demands.
func (t *Transport) probe(ctx context.Context) (challenge, error) {
	ctx, cancel := context.WithTimeout(ctx, webTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.server.String(), strings.NewReader(ping))
	if err != nil {
		return challenge{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := t.base.RoundTrip(req)
	if err != nil {
		return challenge{}, fmt.Errorf("cannot reach %s: %w", t.server.Redacted(), err)
	}
	_ = res.Body.Close()
	ch, _ := refusal(res)
	return ch, nil
}

// SignOut revokes the tokens, if the issuer supports it, and deletes the
// credentials in any case; revoked reports whether the issuer has revoked them.
func (t *Transport) SignOut(ctx context.Context) (revoked bool, err error) {
	release, err := t.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	err = t.locked(ctx, func() error {
		c, err := t.reload(ctx)
		if err != nil {
			return errors.Join(err, t.opts.Store.remove(ctx, t.key))
		}
		revoked = t.revoke(ctx, c)
		t.remember(credentials{})
		return t.opts.Store.remove(ctx, t.key)
	})
	return revoked, err
}

// Status describes the stored credentials of a server.
type Status struct {
	SignedIn  bool
	Issuer    string
	Scopes    []string  // granted ones
	Expires   time.Time // expiry of the token; zero = unknown
	Renewable bool      // there is a refresh token
}

// Status returns the status of the stored credentials, without network access.
func (t *Transport) Status(ctx context.Context) (Status, error) {
	c, err := t.reload(ctx)
	if err != nil {
		return Status{}, err
	}
	return Status{
		SignedIn: c.Token.Access != "" && (!c.expired() || c.Token.Refresh != ""), Issuer: c.Issuer, Scopes: c.Token.Granted,
		Expires: c.Token.Expires, Renewable: c.Token.Refresh != "",
	}, nil
}
