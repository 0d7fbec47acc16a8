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
)

// answerTimeout bounds the delivery of an answer to a server's question. The
// person may have taken longer than the request that it came with lasts.
const answerTimeout = 30 * time.Second

// newHTTPClient returns the client that requests to a server go through, and
// what closes its idle connections. The layers, outside in: bounds on what
// comes back, sign-in, the network.
func newHTTPClient(s Server, authorize func(http.RoundTripper) http.RoundTripper) (*http.Client, func(), error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("url: %w", err)
	}
	network := http.DefaultTransport.(*http.Transport).Clone()
	network.DialContext = dialGuard{host: u.Hostname()}.dial
	network.MaxIdleConnsPerHost = 8
	var trip http.RoundTripper = network
	if authorize != nil {
		trip = authorize(trip)
	}
	client := &http.Client{
		Transport: &boundedTrip{next: trip, max: s.maxMessage()},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			// Headers that the settings give are the server's, nobody else's.
			if req.URL.Scheme != u.Scheme || req.URL.Host != u.Host {
				return fmt.Errorf("the server redirects to %s, which is not its own address: set the url to that one if it is right", req.URL.Redacted())
			}
			if len(via) >= 5 {
				return errors.New("the server redirects in a circle")
			}
			return nil
		},
	}
	return client, network.CloseIdleConnections, nil
}

// dialGuard connects, but not to this machine by somebody else's name. A name
// whose owner points it to a loopback or link-local address would have the
// agent send requests to what listens there (DNS rebinding).
type dialGuard struct{ host string }

func (g dialGuard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: DefaultStartTimeout, KeepAlive: 30 * time.Second}
	// A proxy has another name, and is the person's choice.
	if host, _, err := net.SplitHostPort(addr); err == nil && host == g.host && !isLocalName(host) {
		d.ControlContext = func(_ context.Context, _, to string, _ syscall.RawConn) error { return g.check(to) }
	}
	return d.DialContext(ctx, network, addr)
}

// check looks at the very address that is to be connected to.
func (g dialGuard) check(to string) error {
	at, err := netip.ParseAddrPort(to)
	if err != nil {
		return fmt.Errorf("%s leads to %q, which is no address", g.host, to)
	}
	ip := at.Addr().Unmap()
	if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() {
		return fmt.Errorf("%s leads to %s, an address of this machine or its link: refused, since a name that others control could point there; write the address itself into the url if it is meant", g.host, ip)
	}
	return nil
}

// isLocalName reports whether a host names this machine, or is an address and
// no name.
func isLocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// boundedTrip bounds what comes back, names what is no MCP, and lets answers to
// a server's questions out after the request that they came with has ended.
type boundedTrip struct {
	next http.RoundTripper
	max  int64
}

// RoundTrip implements [http.RoundTripper].
func (b *boundedTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	done := func() {}
	if answers, body, err := isAnswer(req); err != nil {
		return nil, err
	} else if answers {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), answerTimeout)
		done = cancel
		req = req.Clone(ctx)
		req.Body = body
	}
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		done()
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && kind == "text/html" {
		resp.Body.Close()
		done()
		return nil, fmt.Errorf("%s answers with a web page (text/html), not with MCP: check the url", req.URL.Redacted())
	}
	resp.Body = &boundedBody{body: resp.Body, max: b.max, events: kind == "text/event-stream", done: done}
	return resp, nil
}

// isAnswer reports whether a request carries a JSON-RPC response, which has no
// method. It returns the body anew.
func isAnswer(req *http.Request) (bool, io.ReadCloser, error) {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return false, nil, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return false, nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return false, nil, err
	}
	if m, err := parseMessage(data); err != nil || m.Method != "" {
		return false, nil, nil
	}
	return true, io.NopCloser(bytes.NewReader(data)), nil
}

// boundedBody fails when a message in it is longer than max: the whole body or,
// in an event stream, one event.
type boundedBody struct {
	body   io.ReadCloser
	max    int64
	events bool
	n      int64
	last   byte // the last byte that was no carriage return
	done   func()
}

// Read implements [io.Reader].
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.n > b.max {
		return 0, tooLong(b.max)
	}
	n, err := b.body.Read(p)
	b.n += int64(n)
	if b.events {
		b.newEvent(p[:n])
	}
	if b.n > b.max {
		return 0, tooLong(b.max)
	}
	return n, err
}

// newEvent counts from the last empty line on.
func (b *boundedBody) newEvent(p []byte) {
	for i, c := range p {
		if c == '\n' && b.last == '\n' {
			b.n = int64(len(p) - i - 1)
		}
		if c != '\r' {
			b.last = c
		}
	}
}

// Close implements [io.Closer].
func (b *boundedBody) Close() error {
	defer b.done()
	return b.body.Close()
}

func tooLong(limit int64) error {
	return fmt.Errorf("%w: more than %d MiB (maxMessageMb)", ErrMessageTooLong, limit>>20)
}
