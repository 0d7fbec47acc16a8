package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// proxyPort is the port of the proxy on the loopback interface of a process with
// an allow-list of hosts.
const proxyPort = 3128

// Timeouts of the proxy.
const (
	dialTime   = 30 * time.Second
	headerTime = 30 * time.Second
)

// errRefused is wrapped by the error for a host that is not in the allow-list, or
// whose address may not be reached.
var errRefused = errors.New("refused by the sandbox")

// proxy lets a process reach the hosts of an allow-list over HTTP, HTTP CONNECT
// and SOCKS5, all on one port. It resolves names itself, and connects to exactly
// the address it has checked.
type proxy struct {
	hosts    []Host
	refused  func(host, reason string)
	resolve  func(ctx context.Context, name string) ([]netip.Addr, error)
	listener net.Listener
	forwards []net.Listener // of ports of this machine
	web      *http.Server
	handOver chan net.Conn   // HTTP connections
	ctx      context.Context // done when the proxy closes
	cancel   context.CancelFunc
	all      sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// newProxy serves the listener until Close.
func newProxy(listener net.Listener, n Network) (*proxy, error) {
	p := &proxy{refused: n.Refused, listener: listener, handOver: make(chan net.Conn), conns: map[net.Conn]struct{}{}, resolve: lookUp}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, text := range n.Hosts {
		h, err := ParseHost(text)
		if err != nil {
			p.cancel()
			return nil, errors.Join(err, listener.Close())
		}
		p.hosts = append(p.hosts, h)
	}
	forward := &httputil.ReverseProxy{
		Rewrite:      func(*httputil.ProxyRequest) {}, // the request names its target
		Transport:    &http.Transport{DialContext: p.dialAddress, DisableKeepAlives: true, DisableCompression: true},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { http.Error(w, err.Error(), statusOf(err)) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	p.web = &http.Server{
		ReadHeaderTimeout: headerTime,
		ErrorLog:          log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !p.enter() {
				return
			}
			defer p.all.Done()
			switch {
			case r.Method == http.MethodConnect:
				p.tunnel(w, r)
			case r.URL.Scheme == "http" && r.URL.Host != "":
				forward.ServeHTTP(w, r)
			default:
				http.Error(w, "this is a sandbox proxy, which accepts only requests for other hosts", http.StatusBadRequest)
			}
		}),
	}
	p.all.Go(func() { _ = p.web.Serve(webListener{p}) })
	p.all.Go(p.accept)
	return p, nil
}

func lookUp(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// Close ends all connections and waits for them.
func (p *proxy) Close() error {
	p.cancel()
	err := errors.Join(p.listener.Close(), p.web.Close())
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	for _, l := range p.forwards {
		l.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
	return err
}

// forward connects each connection to a listener with the same port of this machine.
func (p *proxy) forward(l net.Listener) {
	p.mu.Lock()
	p.forwards = append(p.forwards, l)
	p.mu.Unlock()
	_, port, _ := net.SplitHostPort(l.Addr().String()) // it has one
	p.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // Close closed it
			}
			if !p.own(c) {
				return
			}
			p.all.Go(func() {
				defer p.drop(c)
				for _, host := range []string{"127.0.0.1", "::1"} {
					if target, err := (&net.Dialer{Timeout: dialTime}).DialContext(p.ctx, "tcp", net.JoinHostPort(host, port)); err == nil {
						defer target.Close()
						p.join(c, c, target)
						return
					}
				}
			})
		}
	})
}

// own registers a connection, so that Close ends it. It is not ok when closing.
func (p *proxy) own(c net.Conn) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

// enter registers a request, so that Close waits for it. It is not ok when
// closing.
func (p *proxy) enter() (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.all.Add(1)
	return true
}

// drop closes a connection.
func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	c.Close()
}

// accept detects the protocol by the first byte.
func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // nothing else closes it
		}
		if !p.own(c) {
			return
		}
		p.all.Go(func() {
			_ = c.SetReadDeadline(time.Now().Add(headerTime))
			in := bufio.NewReader(c)
			first, err := in.Peek(1)
			switch {
			case err != nil:
				p.drop(c)
			case first[0] == socksVersion:
				defer p.drop(c)
				p.socks(c, in)
			default:
				_ = c.SetReadDeadline(time.Time{})
				select {
				case p.handOver <- &webConn{Conn: c, in: in, proxy: p}:
				case <-p.ctx.Done():
					p.drop(c)
				}
			}
		})
	}
}

// webListener passes connections to the HTTP server.
type webListener struct{ p *proxy }

func (l webListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.p.handOver:
		return c, nil
	case <-l.p.ctx.Done():
		return nil, net.ErrClosed
	}
}
func (l webListener) Close() error   { return nil }
func (l webListener) Addr() net.Addr { return l.p.listener.Addr() }

// webConn is a connection with data already read.
type webConn struct {
	net.Conn
	in    *bufio.Reader
	proxy *proxy
}

func (c *webConn) Read(b []byte) (int, error) { return c.in.Read(b) }

func (c *webConn) Close() error {
	c.proxy.drop(c.Conn)
	return nil
}

// tunnel serves CONNECT.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := p.dialAddress(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	defer target.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		p.join(client, buffered, target)
	}
}

func statusOf(err error) int {
	if errors.Is(err, errRefused) {
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

// join copies bytes both ways until both directions have ended.
func (p *proxy) join(client net.Conn, in io.Reader, target net.Conn) {
	if !p.own(target) {
		return
	}
	defer p.drop(target)
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(target, in) // an error ends this direction
		closeWrite(target)
	})
	_, _ = io.Copy(client, target)
	closeWrite(client)
	both.Wait()
}

// closeWrite ends one direction of a connection.
func closeWrite(c net.Conn) {
	if w, ok := c.(*webConn); ok {
		c = w.Conn
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	c.Close()
}

// dialAddress connects to "host:port", if allowed.
func (p *proxy) dialAddress(ctx context.Context, _, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port of %q: %w", address, err)
	}
	return p.dial(ctx, host, uint16(port))
}

// dial connects to a host, if allowed.
func (p *proxy) dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	addrs, err := p.check(ctx, host, port)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	var errs []error
	for _, addr := range addrs {
		c, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, port).String())
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// check returns the addresses of a host that may be reached.
func (p *proxy) check(ctx context.Context, host string, port uint16) ([]netip.Addr, error) {
	refuse := func(reason string) ([]netip.Addr, error) {
		at := net.JoinHostPort(host, strconv.Itoa(int(port)))
		if p.refused != nil {
			p.refused(at, reason)
		}
		return nil, fmt.Errorf("%s: %w: %s", at, errRefused, reason)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr = addr.Unmap().WithZone(""); !p.lists(addr, port) {
			return refuse("the address is not in the list of allowed hosts")
		}
		return []netip.Addr{addr}, nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if !p.listsName(name, port) {
		return refuse("the host is not in the list of allowed hosts, or not with this port")
	}
	found, err := p.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, addr := range found {
		addr = addr.Unmap().WithZone("")
		if Public(addr) || p.lists(addr, port) || addr.IsLoopback() && name == "localhost" {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) == 0 {
		return refuse(fmt.Sprintf("it resolves to %v, which is not a public address; to allow that, list the address too", found))
	}
	return addrs, nil
}

func (p *proxy) lists(addr netip.Addr, port uint16) bool {
	for _, h := range p.hosts {
		if h.holds(addr) && h.fits(port) {
			return true
		}
	}
	return false
}

func (p *proxy) listsName(name string, port uint16) bool {
	for _, h := range p.hosts {
		if h.names(name) && h.fits(port) {
			return true
		}
	}
	return false
}

// special are networks of the IANA registries of special-purpose addresses that
// package netip does not know.
var special = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// Public reports whether an address is on the internet, and neither on this machine nor in
// a private network.
func Public(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return false
	}
	for _, s := range special {
		if s.Contains(addr) {
			return false
		}
	}
	return true
}

// proxyEnv are the variables that name the proxy, also to programs that ignore the
// common ones. Set are variables that are set already.
func proxyEnv(n *Network, set []string) []string {
	if n.Full || len(n.Hosts) == 0 {
		return nil
	}
	at := "127.0.0.1:" + strconv.Itoa(proxyPort)
	direct := "localhost,127.0.0.1,::1"
	java := "-Daether.connector.http.useSystemProperties=true"
	for _, scheme := range []string{"http", "https"} {
		java += fmt.Sprintf(" -D%s.proxyHost=127.0.0.1 -D%s.proxyPort=%d", scheme, scheme, proxyPort)
	}
	options := func(name string) string {
		for _, entry := range set {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return name + "=" + value + " " + java
			}
		}
		return name + "=" + java
	}
	return []string{
		"HTTP_PROXY=http://" + at, "http_proxy=http://" + at, "HTTPS_PROXY=http://" + at, "https_proxy=http://" + at,
		"ALL_PROXY=socks5h://" + at, "all_proxy=socks5h://" + at, "NO_PROXY=" + direct, "no_proxy=" + direct,
		"NODE_USE_ENV_PROXY=1", "YARN_HTTP_PROXY=http://" + at, "YARN_HTTPS_PROXY=http://" + at,
		options("MAVEN_OPTS"), options("GRADLE_OPTS"), options("SBT_OPTS"),
	}
}
