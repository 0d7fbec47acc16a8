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

// Person brings a person to the page where they sign in.
//
// Visit shows the page, by opening a browser or by printing the address. The
// browser is sent back to a port of this machine, which the transport listens
// on; ctx is done as soon as it came. Where the browser runs on another
// machine, the person may copy the address at which it ended: Visit then
// returns it. With "" and no error the transport goes on waiting for the
// browser; an error ends the sign-in.
type Person interface {
	Visit(ctx context.Context, page string) (pasted string, err error)
}

// Options describe how to sign in to a server. Server and Store are required.
type Options struct {
	Server string // address of the MCP endpoint
	Store  *Store // where credentials are kept
	Person Person // nil = nobody is there: a *SignInError

	// ClientID and ClientSecret are those of a client that was registered by
	// hand. Without them the client's metadata document is used where the issuer
	// knows of such, else the client registers itself.
	ClientID     string
	ClientSecret string
	// ClientMetadataURL is the https address of the client's metadata document.
	ClientMetadataURL string
	// ClientName is what the issuer shows to the person; empty = "agent".
	ClientName string
	// RedirectURL is where the browser is sent back to, for a client that was
	// registered with a fixed one: http, on localhost, 127.0.0.1 or [::1], with
	// a port. Empty = http://127.0.0.1:PORT/callback with a free port.
	RedirectURL string
	// Scopes are asked for in place of those that the server suggests. Those
	// that it demands are always asked for.
	Scopes []string
	// AssumePKCE goes on with an issuer that does not say that it knows PKCE.
	AssumePKCE bool

	// HowTo is what SignInError says that a person can do.
	HowTo string
	// Base reaches the server; nil = http.DefaultTransport. If it is an
	// *http.Transport, its proxy and TLS settings hold for the issuer, too.
	Base   http.RoundTripper
	Logger *slog.Logger // nil = silent
}

// SignInError says that a server wants a person to sign in, and none is there.
type SignInError struct {
	Server string // its address
	Reason string // why what there was does not do; may be empty
	HowTo  string
}

// Error implements error.
func (e *SignInError) Error() string {
	text := e.Server + " wants a sign-in"
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

	obtaining chan struct{} // held by who renews a token or signs in

	mu     sync.Mutex
	loaded bool
	creds  credentials
	steps  map[string]int // sign-ins for more, by the scopes that were demanded
}

// New returns a transport for a server. It reads and asks nothing yet.
func New(opts Options) (*Transport, error) {
	server, err := url.Parse(opts.Server)
	if err != nil || server.Host == "" || server.User != nil {
		return nil, fmt.Errorf("the server's address: expected https://HOST/PATH")
	}
	if server.Scheme != "https" && !(server.Scheme == "http" && isLoopbackName(server.Hostname())) {
		return nil, fmt.Errorf("%s: a sign-in needs https, for others could read the token on its way", server.Redacted())
	}
	if opts.Store == nil {
		return nil, errors.New("oauth.New: a Store is required")
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
			return nil, fmt.Errorf("the client metadata address %q: expected https://HOST/PATH", opts.ClientMetadataURL)
		}
	}
	t.web = newWeb(server, t.base)
	return t, nil
}

// tried is what was done about one request.
type tried struct{ renewed, signedIn, steppedUp bool }

// RoundTrip implements [http.RoundTripper]. Requests to another origin than
// the server's, as after a redirect, pass untouched and without a token.
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
	var done tried
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
		if errors.Is(err, errNothingLeft) {
			return res, nil // the caller sees what the server said
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
		_ = res.Body.Close()
		if err != nil {
			return nil, err
		}
		token = next
	}
}

// errNothingLeft says that all that could be done about a refusal was done.
var errNothingLeft = errors.New("nothing is left to try")

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

// replayable returns a source of the request's body for each time that it is
// sent, nil if it has none. It takes the request's own body.
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

// refusal reports whether the server refused a request for want of a token, or
// of scopes, and what it demands.
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

// early is how long before its end a token is renewed.
const early = 10 * time.Second

// token returns the token to begin with: none, the one that is kept, or a new
// one if that has run out and can be renewed.
func (t *Transport) token(ctx context.Context) (string, error) {
	c, err := t.current(ctx)
	if err != nil {
		return "", err
	}
	if !c.expired() || c.Token.Refresh == "" {
		return c.Token.Access, nil // the server may be more patient than its word
	}
	release, err := t.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	switch token, err := t.renew(ctx, c.Token.Access, c.Resource); {
	case errors.Is(err, errNotRenewed):
		return "", nil // without one the server says what it wants
	default:
		return token, err
	}
}

// acquire waits until no other request of this transport obtains a token.
func (t *Transport) acquire(ctx context.Context) (release func(), err error) {
	select {
	case t.obtaining <- struct{}{}:
		return func() { <-t.obtaining }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// current returns the credentials as this process knows them.
func (t *Transport) current(ctx context.Context) (credentials, error) {
	t.mu.Lock()
	c, loaded := t.creds, t.loaded
	t.mu.Unlock()
	if loaded {
		return c, nil
	}
	return t.reload(ctx)
}

// reload reads the credentials anew: another process may have changed them.
// Those of another client than the one that is configured do not count.
func (t *Transport) reload(ctx context.Context) (credentials, error) {
	c, err := t.opts.Store.load(ctx, t.key)
	if err != nil {
		return credentials{}, fmt.Errorf("the credentials for %s: %w", t.server.Redacted(), err)
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

// save keeps the credentials, for this process also if that fails.
func (t *Transport) save(ctx context.Context, c credentials) error {
	c.Server = t.server.String()
	t.remember(c)
	if err := t.opts.Store.save(ctx, t.key, c); err != nil {
		return fmt.Errorf("the credentials for %s cannot be kept: %w", t.server.Redacted(), err)
	}
	return nil
}

// obtain gets a token in place of the one that was refused: that which another
// request or process got meanwhile, else a renewed one, else by a sign-in.
func (t *Transport) obtain(ctx context.Context, refused string, ch challenge, done *tried) (string, error) {
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
		return "", errNothingLeft
	}
	found, err := t.discover(ctx, ch.metadata)
	if err != nil {
		return "", fmt.Errorf("sign-in to %s: %w", t.server.Redacted(), err)
	}
	reason := ""
	if c.Issuer != "" && c.Issuer != found.issuer.Issuer { // never show one issuer what another gave
		c, reason = credentials{}, "its tokens come from another issuer now"
	}
	if !ch.more && !done.renewed && c.Token.Refresh != "" {
		done.renewed = true
		switch token, err := t.renew(ctx, refused, found.resource); {
		case errors.Is(err, errNotRenewed):
			if c, err = t.current(ctx); err != nil {
				return "", err
			}
			reason = "the last one has run out"
		default:
			return token, err
		}
	}
	if ch.more {
		done.steppedUp, reason = true, "for more than was granted"
	} else {
		done.signedIn = true
	}
	if t.opts.Person == nil {
		if ch.more && c.Token.Access != "" { // the next sign-in asks for it
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
		t.log.WarnContext(ctx, "signed in, but only until this program ends", "cause", err)
	}
	return c.Token.Access, nil
}

// mayStepUp counts the sign-ins for more, and reports whether another one for
// what the server demands may help: what two did not get, a third does not.
func (t *Transport) mayStepUp(ch challenge) bool {
	const times = 2
	key := strings.Join(slices.Sorted(slices.Values(ch.scopes)), " ")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps[key]++
	return t.steps[key] <= times
}

// lockPatience bounds the wait for another process that renews a token.
const lockPatience = 45 * time.Second

// locked runs f while no other process changes the credentials.
func (t *Transport) locked(ctx context.Context, f func() error) error {
	waiting, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err := t.opts.Store.lock(waiting, t.key)
	if err != nil {
		return err
	}
	return errors.Join(f(), unlock())
}

// SignIn signs in, whatever is kept. It asks the server first what it wants.
func (t *Transport) SignIn(ctx context.Context) error {
	if t.opts.Person == nil {
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

// ping is a request that changes nothing, also where it is answered.
const ping = `{"jsonrpc":"2.0","id":"sign-in","method":"ping"}`

// probe sends the server a request without a token, to see what it demands.
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
		return challenge{}, fmt.Errorf("%s cannot be reached: %w", t.server.Redacted(), err)
	}
	_ = res.Body.Close()
	ch, _ := refusal(res)
	return ch, nil
}

// SignOut forgets what is kept for the server and tells the issuer, where it
// wants to know, that the tokens are not used any more. Whatever the issuer
// says, nothing is kept afterwards; revoked says whether it agreed.
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

// Status is what is kept for a server.
type Status struct {
	SignedIn  bool
	Issuer    string
	Scopes    []string  // that were granted
	Expires   time.Time // of the token; zero = it does not say
	Renewable bool      // without a person
}

// Status reads what is kept. It asks nobody.
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
