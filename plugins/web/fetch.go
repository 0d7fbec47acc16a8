package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	maxRedirects   = 5
	maxHeader      = 64 << 10
	maxURL         = 4 << 10
	headerPatience = 15 * time.Second
	connections    = 2 // per host
)

// options configure a [fetcher]. The zero value means the defaults.
type options struct {
	Version  string        // of the program, for the User-Agent
	MaxBytes int64         // of a page, uncompressed; 0 = 5 MiB
	Timeout  time.Duration // of a fetch; 0 = 30 s
	// AllowPrivate are addresses that may be fetched although they are not
	// public, as host:port of the URL, such as localhost:8080 for a local server.
	AllowPrivate []string
	// Resolve resolves a host; nil means the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// page is a fetched page.
type page struct {
	URL       string // after redirects
	Title     string
	Text      string // HTML is converted to Markdown
	Type      string // the media type, without parameters
	Truncated bool   // the page is larger than MaxBytes
	// Redirect is the URL of the page on another host. Then there is no text.
	Redirect string
}

// statusError is a response without a page.
type statusError struct {
	Status     int
	RetryAfter string // the header; may be empty
	Text       string // of the response, shortened
}

// Error implements error.
func (e *statusError) Error() string {
	text := fmt.Sprintf("the server responded %d %s", e.Status, http.StatusText(e.Status))
	if e.RetryAfter != "" {
		text += ", try again after " + e.RetryAfter
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// refusedError is the reason for which a URL is not fetched.
type refusedError struct{ Reason string }

// Error implements error.
func (e *refusedError) Error() string { return e.Reason }

// fetcher fetches pages. It is safe for concurrent use.
type fetcher struct {
	options options
	client  *http.Client
	cache   cache
}

// newFetcher returns a fetcher.
func newFetcher(o options) *fetcher {
	o.MaxBytes = cmp.Or(o.MaxBytes, 5<<20)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	f := &fetcher{options: o}
	f.client = &http.Client{
		Transport: &http.Transport{
			// No proxy, since it would resolve the names.
			DialContext: f.dial, ForceAttemptHTTP2: true, MaxConnsPerHost: connections, MaxIdleConns: 16, IdleConnTimeout: 30 * time.Second,
			TLSHandshakeTimeout: headerPatience, ResponseHeaderTimeout: headerPatience, MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: checkRedirect,
	}
	return f
}

// close closes idle connections.
func (f *fetcher) close() { f.client.CloseIdleConnections() }

// fetch fetches a page. With raw, HTML is not converted. Errors are a
// [refusedError], a [statusError], or network errors.
func (f *fetcher) fetch(ctx context.Context, address string, raw bool) (*page, error) {
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.options.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, &refusedError{err.Error()}
	}
	req.Header.Set("User-Agent", "agent/"+cmp.Or(f.options.Version, "dev")+" (web_fetch; on behalf of a user)")
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5")
	cached := f.cache.condition(req)
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, explain(err)
	}
	defer resp.Body.Close()
	switch location := resp.Header.Get("Location"); {
	case resp.StatusCode == http.StatusNotModified && cached != nil && resp.Request.URL.String() == cached.url.String():
		return cached.page(raw)
	case resp.StatusCode/100 == 3 && location != "":
		return f.moved(resp, location)
	case resp.StatusCode/100 != 2:
		return nil, f.failed(resp)
	}
	doc, err := f.read(resp)
	if err != nil {
		return nil, err
	}
	f.cache.keep(req, resp, doc)
	return doc.page(raw)
}

// parseURL parses a URL and refuses anything unusual. The host must be
// unambiguous, since permission is given for it.
func parseURL(address string) (*url.URL, error) {
	if len(address) > maxURL {
		return nil, &refusedError{fmt.Sprintf("the URL is longer than %d bytes", maxURL)}
	}
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return nil, &refusedError{fmt.Sprintf("invalid URL: %v", err)}
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, &refusedError{fmt.Sprintf("%q: only http:// and https:// URLs are supported", address)}
	case u.User != nil:
		return nil, &refusedError{"the URL contains a user name: remove it"}
	case host == "" || strings.HasSuffix(host, "."):
		return nil, &refusedError{fmt.Sprintf("%q has no valid host", address)}
	case strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`%\@/?#`, r) }):
		return nil, &refusedError{fmt.Sprintf("the host %q must be ASCII: use the xn-- form of an international name", host)}
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n != 80 && n != 443 && n < 1024 || n > 65535 {
			return nil, &refusedError{fmt.Sprintf("port %s is not allowed", port)}
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// checkRedirect follows redirects that stay on the host.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first, last := via[0].URL, via[len(via)-1].URL
	if len(via) > maxRedirects {
		return &refusedError{fmt.Sprintf("the page redirects more than %d times", maxRedirects)}
	}
	downgraded := last.Scheme == "https" && req.URL.Scheme == "http"
	if !strings.EqualFold(req.URL.Hostname(), first.Hostname()) || req.URL.User != nil || downgraded || !samePort(first, req.URL) {
		return http.ErrUseLastResponse
	}
	_, err := parseURL(req.URL.String())
	return err
}

// samePort reports whether two URLs have the same port, treating the default
// ports of http and https as equal.
func samePort(a, b *url.URL) bool {
	usual := func(u *url.URL) bool {
		return u.Port() == "" || u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443"
	}
	return a.Port() == b.Port() || usual(a) && usual(b)
}

// moved returns a redirect to another host.
func (f *fetcher) moved(resp *http.Response, location string) (*page, error) {
	u, err := resp.Request.URL.Parse(location)
	if err != nil {
		return nil, &refusedError{"the page redirects to an invalid URL"}
	}
	if u, err = parseURL(u.String()); err != nil {
		return nil, &refusedError{"the page redirects to a URL that cannot be fetched: " + err.Error()}
	}
	return &page{URL: resp.Request.URL.String(), Redirect: u.String()}, nil
}

// failed reads an error response.
func (f *fetcher) failed(resp *http.Response) error {
	e := &statusError{Status: resp.StatusCode, RetryAfter: clip(resp.Header.Get("Retry-After"), 64)}
	resp.Body = io.NopCloser(io.LimitReader(resp.Body, 64<<10))
	doc, err := f.read(resp)
	if err != nil {
		return e
	}
	if page, err := doc.page(false); err == nil {
		e.Text = clip(strings.Join(strings.Fields(page.Text), " "), 300)
	}
	return e
}

// read reads a page's bytes.
func (f *fetcher) read(resp *http.Response) (*document, error) {
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	if err := readable(kind); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, f.options.MaxBytes+1))
	if err != nil {
		return nil, explain(err)
	}
	d := &document{url: resp.Request.URL, kind: kind, charset: params["charset"], data: data}
	if int64(len(data)) > f.options.MaxBytes {
		d.data, d.truncated = data[:f.options.MaxBytes], true
	}
	if d.kind == "" || d.kind == "application/octet-stream" {
		d.kind, _, _ = mime.ParseMediaType(http.DetectContentType(data)) // always valid
		if err := readable(strings.Replace(d.kind, "octet-stream", "unknown data", 1)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// dial connects to a checked address of a host.
func (f *fetcher) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := f.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	allowed := slices.Contains(f.options.AllowPrivate, net.JoinHostPort(host, port))
	for _, a := range addrs {
		if err := checkAddress(a); err != nil && !allowed {
			return nil, &refusedError{fmt.Sprintf("refusing to connect to %s: %v", host, err)}
		}
	}
	d := net.Dialer{Timeout: headerPatience, ControlContext: func(_ context.Context, _, dialled string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(dialled)
		if err == nil && !allowed {
			err = checkAddress(at.Addr())
		}
		return err
	}}
	var errs []error
	for _, a := range addrs {
		conn, err := d.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// resolve returns the addresses of a host, IPv4 first.
func (f *fetcher) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	addrs, err := f.options.Resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%s has no address", host)
	}
	const most = 8
	addrs = slices.Clone(addrs[:min(len(addrs), most)])
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) })
	return addrs, nil
}

// explain returns a readable network error.
func explain(err error) error {
	var refused *refusedError
	var dns *net.DNSError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("no such host %q: check the URL", dns.Name)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the server did not respond in time: %w", context.DeadlineExceeded)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which the caller knows
	}
	return fmt.Errorf("cannot fetch the page: %w", err)
}

// clip truncates a text to at most n bytes.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
