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
	// webTimeout bounds one exchange with an issuer.
	webTimeout = 30 * time.Second
	// maxDocument is the number of bytes that a document may have.
	maxDocument = 1 << 20
	// maxHops is the number of redirects that are followed to a document.
	maxHops = 3
)

// reach says how near an address is. The nearer one is, the less may lead to it.
type reach int

const (
	reachPublic   reach = iota // on the internet
	reachPrivate               // in a network of one's own
	reachLoopback              // on this machine
	reachNowhere               // link-local (where clouds keep their keys), multicast, unspecified
)

func reachOf(ip netip.Addr) reach {
	ip = ip.Unmap()
	switch {
	case ip.IsLoopback():
		return reachLoopback
	case !ip.IsValid(), ip.IsUnspecified(), ip.IsMulticast(), ip.IsLinkLocalUnicast():
		return reachNowhere
	case ip.IsPrivate(), sharedSpace.Contains(ip), nat64.Contains(ip):
		return reachPrivate
	}
	return reachPublic
}

var (
	sharedSpace = netip.MustParsePrefix("100.64.0.0/10") // of carriers and overlay networks (RFC 6598)
	nat64       = netip.MustParsePrefix("64:ff9b::/96")  // may stand for any IPv4 address (RFC 6052)
)

// isLoopbackName reports whether a host of an address is this machine by name.
func isLoopbackName(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// web talks to addresses that came from the network. It connects to none that
// is nearer than the server whose sign-in it is for: a public server must not
// make this machine ask the router, the cloud's metadata service or a database.
type web struct {
	server  *url.URL
	get     *http.Client // follows redirects
	post    *http.Client // does not: what it sends is secret
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
	direct.DisableKeepAlives = true // there are few requests, and nobody who would close idle connections
	w.proxied.(*http.Transport).DisableKeepAlives = true
	w.direct = direct
	w.post = &http.Client{Transport: w, Timeout: webTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	w.get = &http.Client{Transport: w, Timeout: webTimeout, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxHops {
			return fmt.Errorf("more than %d redirects", maxHops)
		}
		return nil // RoundTrip looks at each address
	}}
	return w
}

// check refuses an address that a sign-in must not lead to, as far as it shows.
func (w *web) check(u *url.URL) error {
	secure := u.Scheme == "https" || u.Scheme == "http" && isLoopbackName(u.Hostname())
	switch {
	case u.Host == "" || !secure:
		return fmt.Errorf("the address %s is refused: expected https://HOST/…", shown(u))
	case u.User != nil:
		return fmt.Errorf("the address %s is refused: it holds a user or password", shown(u))
	case isLoopbackName(u.Hostname()) && !isLoopbackName(w.server.Hostname()):
		return &reachError{addr: u.Host, server: w.server.Host}
	}
	return nil
}

// parse reads an address that came from the network.
func (w *web) parse(what, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%s: not an address", what)
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
		if through != nil { // it looks up the name; only what is written out can be checked here
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

// serverReach is how near the server is: as far as its farthest address, so
// that a public one cannot claim to be near, too.
func (w *web) serverReach(ctx context.Context) reach {
	if isLoopbackName(w.server.Hostname()) {
		return reachLoopback
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), webTimeout) // the answer holds for all later requests
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", w.server.Hostname())
	if err != nil || len(ips) == 0 {
		return reachPublic // behind a proxy, names may have no address here
	}
	nearest := reachLoopback
	for _, ip := range ips {
		nearest = min(nearest, reachOf(ip))
	}
	return nearest
}

// control looks at the address that a connection is made to, after all names
// were looked up: what is checked is what is used.
func (w *web) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address %s cannot be checked: %w", address, err)
	}
	if reachOf(to.Addr().WithZone("")) > w.allowed {
		return &reachError{addr: address, server: w.server.Host}
	}
	return nil
}

// reachError refuses to connect to a near address for a farther server.
type reachError struct{ addr, server string }

func (e *reachError) Error() string {
	return fmt.Sprintf("the address %s is refused: it lies nearer than the server %s, which led there", e.addr, e.server)
}

// statusError is an answer that is not the document that was asked for.
type statusError struct {
	url    string
	status int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s answers with HTTP status %d", e.url, e.status)
}

// document reads the JSON document at an address.
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
		return &statusError{url: shown(u), status: res.StatusCode}
	}
	return decode(res, shown(u), into)
}

// decode reads an answer that should be a JSON object.
func decode(res *http.Response, from string, into any) error {
	data, err := io.ReadAll(res.Body)
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return fmt.Errorf("%s answers with more than %d bytes", from, tooBig.Limit)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '<' {
		return fmt.Errorf("%s answers with a web page; expected a JSON object", from)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s answers with no valid JSON object of the expected form", from) // its text may hold a secret
	}
	return nil
}

// shown is an address as messages name it: without user, query and fragment.
func shown(u *url.URL) string {
	return clean((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
}

// clean makes foreign text fit for a message: one line, no control characters,
// not too long, and none of the secrets.
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
