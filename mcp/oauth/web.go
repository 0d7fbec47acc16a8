package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// webTimeout limits one exchange with an issuer.
	webTimeout = 30 * time.Second
	// maxDocument limits a response, in bytes.
	maxDocument = 1 << 20
	// maxHops limits the redirects to a document.
	maxHops = 3
)

// reach says how near an address is. Fewer servers may lead to a nearer one.
type reach int

const (
	reachPublic    reach = iota // on the internet
	reachPrivate                // in a private network
	reachLoopback               // on this machine
	reachForbidden              // link-local (such as cloud metadata), multicast, unspecified
)

func reachOf(ip netip.Addr) reach {
	ip = ip.Unmap()
	switch {
	case ip.IsLoopback():
		return reachLoopback
	case !ip.IsValid(), ip.IsUnspecified(), ip.IsMulticast(), ip.IsLinkLocalUnicast():
		return reachForbidden
	case ip.IsPrivate(), sharedSpace.Contains(ip), nat64.Contains(ip):
		return reachPrivate
	}
	return reachPublic
}

var (
	sharedSpace = netip.MustParsePrefix("100.64.0.0/10") // carrier-grade NAT and overlay networks (RFC 6598)
	nat64       = netip.MustParsePrefix("64:ff9b::/96")  // may stand for any IPv4 address (RFC 6052)
)

// isLoopbackName reports whether a host is localhost or a loopback address.
func isLoopbackName(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// web makes requests to URLs that came from the network. It does not connect to an
// address nearer than the server to sign in to: a public server must not make
// this machine send requests to a router, a cloud's metadata service or a
// database.
type web struct {
	server  *url.URL
	get     *http.Client // follows redirects
	post    *http.Client // does not, as it sends secrets
	proxy   func(*http.Request) (*url.URL, error)
	proxied http.RoundTripper
	direct  http.RoundTripper

	once    sync.Once
	allowed reach
}

func newWeb(server *url.URL, base http.RoundTripper) *web {
	w := &web{server: server}
	own, ok := base.(*http.Transport)
	if !ok {
		own = http.DefaultTransport.(*http.Transport) //nolint:forcetypeassert // as net/http documents it
	}
	w.proxy = own.Proxy
	w.proxied = own.Clone()
	direct := own.Clone()
	direct.Proxy, direct.DialTLSContext = nil, nil
	dialer := &net.Dialer{Timeout: webTimeout, ControlContext: w.control}
	direct.DialContext = dialer.DialContext
	direct.DisableKeepAlives = true // there are few requests, and nothing closes idle connections
	w.proxied.(*http.Transport).DisableKeepAlives = true
	w.direct = direct
	w.post = &http.Client{Transport: w, Timeout: webTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	w.get = &http.Client{Transport: w, Timeout: webTimeout, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxHops {
			return fmt.Errorf("more than %d redirects", maxHops)
		}
		return nil // RoundTrip checks each URL
	}}
	return w
}

// check rejects a URL that a sign-in must not lead to.
func (w *web) check(u *url.URL) error {
	secure := u.Scheme == "https" || u.Scheme == "http" && isLoopbackName(u.Hostname())
	switch {
	case u.Host == "" || !secure:
		return fmt.Errorf("URL %s is refused: expected https://HOST/…", displayURL(u))
	case u.User != nil:
		return fmt.Errorf("URL %s is refused: it contains a user name or password", displayURL(u))
	case isLoopbackName(u.Hostname()) && !isLoopbackName(w.server.Hostname()):
		return &reachError{addr: u.Host, server: w.server.Host}
	}
	return nil
}

// parse parses and checks a URL that came from the network.
func (w *web) parse(what, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%s: invalid URL", what)
	}
	if err := w.check(u); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return u, nil
}

// RoundTrip implements [http.RoundTripper] for the two clients.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.check(req.URL); err != nil {
		return nil, err
	}
	w.once.Do(func() { w.allowed = w.serverReach(req.Context()) })
	next := w.direct
	if w.proxy != nil {
		through, err := w.proxy(req)
		if err != nil {
			return nil, err
		}
		if through != nil { // the proxy resolves names: only IP addresses can be checked here
			ip, err := netip.ParseAddr(req.URL.Hostname())
			if r := reachOf(ip); err == nil && r > w.allowed {
				return nil, &reachError{addr: req.URL.Host, server: w.server.Host}
			}
			next = w.proxied
		}
	}
	res, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	res.Body = http.MaxBytesReader(nil, res.Body, maxDocument)
	return res, nil
}

// serverReach returns the reach of the server's farthest address, so that a public
// server cannot claim to be a near one, too.
func (w *web) serverReach(ctx context.Context) reach {
	if isLoopbackName(w.server.Hostname()) {
		return reachLoopback
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), webTimeout) // the result is used for all later requests
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", w.server.Hostname())
	if err != nil || len(ips) == 0 {
		return reachPublic // behind a proxy, names may not be resolvable here
	}
	nearest := reachLoopback
	for _, ip := range ips {
		nearest = min(nearest, reachOf(ip))
	}
	return nearest
}

// control checks the resolved address, right before connecting to it.
func (w *web) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("cannot check the address %s: %w", address, err)
	}
	if reachOf(to.Addr().WithZone("")) > w.allowed {
		return &reachError{addr: address, server: w.server.Host}
	}
	return nil
}

// reachError is the error of a connection to a nearer address than the server's.
type reachError struct{ addr, server string }

func (e *reachError) Error() string {
	return fmt.Sprintf("address %s is refused: it is in a more private network than server %s, which led there", e.addr, e.server)
}

// statusError is an error response to a request for a document.
type statusError struct {
	url    string
	status int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s returned HTTP status %d", e.url, e.status)
}

// document reads the JSON document at a URL.
func (w *web) document(ctx context.Context, u *url.URL, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("MCP-Protocol-Version", "2025-11-25")
	res, err := w.get.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return &statusError{url: displayURL(u), status: res.StatusCode}
	}
	return decode(res, displayURL(u), into)
}

// decode decodes a response that should be a JSON object.
func decode(res *http.Response, from string, into any) error {
	data, err := io.ReadAll(res.Body)
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return fmt.Errorf("%s returned more than %d bytes", from, tooBig.Limit)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '<' {
		return fmt.Errorf("%s returned a web page; expected a JSON object", from)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s returned no valid JSON object of the expected form", from) // without err, which may contain a secret
	}
	return nil
}

// displayURL returns a URL for messages, without user, query and fragment.
func displayURL(u *url.URL) string {
	return clean((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
}

// clean makes untrusted text safe for a message: one line, no control characters,
// of limited length, and without the secrets.
func clean(text string, secrets ...string) string {
	const longest = 300
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[secret]")
		}
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0xfffd:
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return text
}
