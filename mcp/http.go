package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxErrorBody limits what is read of an error response, in bytes.
const maxErrorBody = 64 << 10

// web makes requests to a server, for both HTTP transports.
type web struct {
	*session
	address *url.URL
	headers map[string]string // of the settings
	client  *http.Client

	maxMessage int64 // bytes
}

func newWeb(s *session, server Server, authorize func(http.RoundTripper) http.RoundTripper) (web, error) {
	address, err := url.Parse(server.URL)
	if err != nil {
		return web{}, fmt.Errorf("url: %w", err)
	}
	w := web{session: s, address: address, headers: server.Headers, maxMessage: server.maxMessage()}
	w.client, s.after = newHTTPClient(address, w.maxMessage, authorize)
	return w, nil
}

// do makes a request; without a body it asks for events. An error response
// becomes a [*statusError].
func (w *web) do(ctx context.Context, method, address string, body []byte, headers map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if body != nil {
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Content-Type", "application/json")
	}
	if version := w.version(); version != "" {
		req.Header.Set(mcp.HeaderProtocolVersion, version)
	}
	for _, more := range []map[string]string{headers, w.headers} {
		for name, value := range more {
			req.Header.Set(name, value)
		}
	}
	resp, err := w.client.Do(req)
	if err != nil || resp.StatusCode/100 == 2 {
		return resp, err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return nil, &statusError{resp.StatusCode, resp.Status, text}
}

// statusError is a response with a status other than 2xx.
type statusError struct {
	code   int
	status string
	body   []byte // up to maxErrorBody
}

// Error implements error.
func (e *statusError) Error() string {
	if e.code == http.StatusUnauthorized {
		return fmt.Sprintf("%v (HTTP status 401)", ErrSignIn)
	}
	if line := clip(cleanLine(string(e.body)), 300); line != "" {
		return fmt.Sprintf("HTTP status %s: %s", e.status, line)
	}
	return "HTTP status " + e.status
}

// Unwrap makes 401 an [ErrSignIn].
func (e *statusError) Unwrap() error {
	if e.code == http.StatusUnauthorized {
		return ErrSignIn
	}
	return nil
}

// newHTTPClient returns the client for requests to a server, and a function that
// closes its idle connections. The layers, outside in: response limits, sign-in,
// network.
func newHTTPClient(u *url.URL, maxMessage int64, authorize func(http.RoundTripper) http.RoundTripper) (*http.Client, func()) {
	network := http.DefaultTransport.(*http.Transport).Clone()
	network.DialContext = dialGuard{host: u.Hostname()}.dial
	network.MaxIdleConnsPerHost = 8
	var trip http.RoundTripper = network
	if authorize != nil {
		trip = authorize(trip)
	}
	client := &http.Client{
		Transport: &boundedTrip{next: trip, max: maxMessage},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			// Configured headers must not be sent to another host.
			if req.URL.Scheme != u.Scheme || req.URL.Host != u.Host {
				return fmt.Errorf("the server redirects to another host, %s: if that is right, set the url to it", req.URL.Redacted())
			}
			if len(via) >= 5 {
				return errors.New("too many redirects")
			}
			return nil
		},
	}
	return client, network.CloseIdleConnections
}

// dialGuard prevents DNS rebinding: it refuses to connect to a loopback or
// link-local address to which the owner of a public name points it.
type dialGuard struct{ host string }

func (g dialGuard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: defaultStartTimeout, KeepAlive: 30 * time.Second}
	// A proxy has another name, and is the user's choice.
	if host, _, err := net.SplitHostPort(addr); err == nil && host == g.host && !isLocalName(host) {
		d.ControlContext = func(_ context.Context, _, to string, _ syscall.RawConn) error { return g.check(to) }
	}
	return d.DialContext(ctx, network, addr)
}

// check validates the resolved address, right before connecting to it.
func (g dialGuard) check(to string) error {
	at, err := netip.ParseAddrPort(to)
	if err != nil {
		return fmt.Errorf("%s resolves to the invalid address %q", g.host, to)
	}
	ip := at.Addr().Unmap()
	if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
		return fmt.Errorf("%s resolves to %s, a local address: refused as possible DNS rebinding; if this is intended, use the address in the url", g.host, ip)
	}
	return nil
}

// isLocalName reports whether a host is localhost or an IP address.
func isLocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// boundedTrip limits responses and rejects web pages.
type boundedTrip struct {
	next http.RoundTripper
	max  int64
}

// RoundTrip implements [http.RoundTripper].
func (b *boundedTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && kind == "text/html" {
		resp.Body.Close()
		return nil, fmt.Errorf("%s returned a web page (text/html) instead of MCP: check the url", req.URL.Redacted())
	}
	if kind != "text/event-stream" { // of which readEvents bounds each event
		resp.Body = &boundedBody{resp.Body, b.max, b.max}
	}
	return resp, nil
}

// boundedBody fails when it is longer than max.
type boundedBody struct {
	io.ReadCloser
	left, max int64
}

// Read implements [io.Reader].
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, tooLong(b.max)
	}
	return n, err
}

func tooLong(limit int64) error {
	return fmt.Errorf("%w: more than %d MiB (maxMessageMb)", errMessageTooLong, limit>>20)
}
