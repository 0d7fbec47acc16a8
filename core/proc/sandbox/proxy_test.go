package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseHost(t *testing.T) {
	prefix := netip.MustParsePrefix
	for text, want := range map[string]Host{
		"example.org":        {Name: "example.org"},
		"Example.ORG.":       {Name: "example.org"},
		"*.example.org":      {Name: "example.org", Below: true},
		"example.org:8443":   {Name: "example.org", Port: 8443},
		"192.0.2.7":          {Prefix: prefix("192.0.2.7/32")},
		"192.0.2.7:22":       {Prefix: prefix("192.0.2.7/32"), Port: 22},
		"10.1.2.3/8":         {Prefix: prefix("10.0.0.0/8")},
		"10.0.0.0/8:5432":    {Prefix: prefix("10.0.0.0/8"), Port: 5432},
		"2001:db8::1":        {Prefix: prefix("2001:db8::1/128")},
		"[2001:db8::1]:8080": {Prefix: prefix("2001:db8::1/128"), Port: 8080},
		"::ffff:192.0.2.7":   {Prefix: prefix("192.0.2.7/32")},
	} {
		if got, err := ParseHost(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "*", "*.", "a b", "http://example.org", "example.org/path", "a..b", "a:0", "a:70000", "a:x", "a.*.b", "foo*", "a\x00b", "ex\u00e4mple.org", "[::1", "user@host"} {
		if got, err := ParseHost(text); err == nil {
			t.Errorf("%q became %+v", text, got)
		} else if !strings.Contains(err.Error(), "expected a name") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// testProxy is a proxy with its own name resolution.
type testProxy struct {
	*proxy
	mu      sync.Mutex
	refused []string
	url     *url.URL
}

func newTestProxy(t *testing.T, names map[string]string, hosts ...string) *testProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tp := &testProxy{url: &url.URL{Scheme: "http", Host: l.Addr().String()}}
	p, err := newProxy(l, Network{Hosts: hosts, Refused: func(host, _ string) {
		tp.mu.Lock()
		defer tp.mu.Unlock()
		tp.refused = append(tp.refused, host)
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.resolve = func(_ context.Context, name string) ([]netip.Addr, error) {
		var addrs []netip.Addr
		for _, text := range strings.Fields(names[name]) {
			addrs = append(addrs, netip.MustParseAddr(text))
		}
		if len(addrs) == 0 {
			return nil, errors.New("no such host")
		}
		return addrs, nil
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	tp.proxy = p
	return tp
}

func (p *testProxy) client(scheme string) *http.Client {
	u := *p.url
	u.Scheme = scheme
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{Proxy: http.ProxyURL(&u), DisableKeepAlives: true}}
}

func TestProxy(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hello from "+r.Host)
	}))
	defer plain.Close()
	_, port, _ := net.SplitHostPort(plain.Listener.Addr().String())
	names := map[string]string{
		"good.test": "127.0.0.1", "sub.good.test": "127.0.0.1", "private.test": "127.0.0.1", "rebound.test": "10.0.0.1 127.0.0.1",
		"localhost": "127.0.0.1",
	}
	// The local addresses of some names are listed; 127.0.0.2 is not.
	p := newTestProxy(t, names, "good.test:"+port, "*.good.test:"+port, "127.0.0.1:"+port)
	strict := newTestProxy(t, names, "private.test:"+port, "rebound.test:"+port, "localhost:"+port, "169.254.169.254", "good.test")
	for _, scheme := range []string{"http", "socks5", "connect"} {
		t.Run(scheme, func(t *testing.T) {
			get := func(p *testProxy, host string) (string, error) {
				if scheme == "connect" {
					return connect(p, host, port)
				}
				resp, err := p.client(scheme).Get("http://" + net.JoinHostPort(host, port))
				if err != nil {
					return "", err
				}
				defer resp.Body.Close()
				b, err := io.ReadAll(resp.Body)
				if resp.StatusCode != http.StatusOK {
					return "", errors.New(string(b))
				}
				return string(b), err
			}
			for _, host := range []string{"good.test", "GOOD.test", "sub.good.test", "127.0.0.1"} {
				if got, err := get(p, host); err != nil || !strings.HasPrefix(got, "hello from ") {
					t.Errorf("%s: %q, %v", host, got, err)
				}
			}
			if got, err := get(strict, "localhost"); err != nil || !strings.HasPrefix(got, "hello") {
				t.Errorf("a listed localhost: %q, %v", got, err)
			}
			for _, refused := range []struct {
				p    *testProxy
				host string
			}{
				{p, "evil.test"},
				{p, "notgood.test"},
				{p, "good.test.evil.test"},
				{p, "127.0.0.2"},
				{p, "private.test"},
				{strict, "private.test"},
				{strict, "rebound.test"},
				{strict, "127.0.0.1"},
				{strict, "169.254.169.254"},
				{strict, "good.test"},
			} {
				if got, err := get(refused.p, refused.host); err == nil {
					t.Errorf("%s was reached: %q", refused.host, got)
				}
				refused.p.mu.Lock()
				if !slices.Contains(refused.p.refused, net.JoinHostPort(refused.host, port)) {
					t.Errorf("%s was not reported: %q", refused.host, refused.p.refused)
				}
				refused.p.mu.Unlock()
			}
		})
	}
}

// connect makes a request through a tunnel.
func connect(p *testProxy, host, port string) (string, error) {
	c, err := net.Dial("tcp", p.url.Host)
	if err != nil {
		return "", err
	}
	defer c.Close()
	at := net.JoinHostPort(host, port)
	_, _ = io.WriteString(c, "CONNECT "+at+" HTTP/1.1\r\nHost: "+at+"\r\n\r\n")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		return "", errors.New(string(b))
	}
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+at+"\r\nConnection: close\r\n\r\n")
	if resp, err = http.ReadResponse(in, nil); err != nil {
		return "", err
	}
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"93.184.215.14": true, "2606:2800:21f:cb07:6820:80da:af6b:8b2c": true,
		"10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "127.0.0.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false, "240.0.0.1": false,
		"::1": false, "::": false, "fe80::1": false, "fd00::1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "ff02::1": false,
	} {
		if got := Public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
}

// TestProxyRefusesNonsense checks that invalid requests are dropped, and that
// Close ends hanging connections.
func TestProxyRefusesNonsense(t *testing.T) {
	p := newTestProxy(t, nil, "good.test")
	for name, text := range map[string]string{
		"garbage": "\x00\x01\x02\r\n\r\n", "own page": "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "ftp": "GET ftp://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"SOCKS without a method": "\x05\x00", "SOCKS bind": "\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50",
		"SOCKS odd address": "\x05\x01\x00\x05\x01\x00\x09\x7f\x00\x00\x01\x00\x50", "SOCKS password only": "\x05\x01\x02",
	} {
		c, err := net.Dial("tcp", p.url.Host)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, text)
		_ = c.(*net.TCPConn).CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		b, err := io.ReadAll(c)
		if err != nil && !strings.Contains(err.Error(), "reset") || bytes.Contains(b, []byte(" 200 ")) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		c.Close()
	}
	hanging, err := net.Dial("tcp", p.url.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer hanging.Close()
	_, _ = io.WriteString(hanging, "\x05\x01")
}

func FuzzSOCKS(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x04good\x00\x50"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x04aaaaaaaaaaaaaaaa\x00\x50"))
	f.Fuzz(func(t *testing.T, b []byte) {
		host, _, answer, err := socksRequest(io.Discard, bufio.NewReader(bytes.NewReader(b)))
		if err != nil && host != "" || err == nil && answer != socksOK || len(host) > 255 {
			t.Errorf("host %q, answer %d, error %v", host, answer, err)
		}
	})
}

// FuzzConnect sends anything as the request of a tunnel: the proxy asks only for
// the addresses of hosts in its list, and opens no tunnel to another.
func FuzzConnect(f *testing.F) {
	for _, request := range []string{
		"CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n", "CONNECT GOOD.test.:443 HTTP/1.0\r\n\r\n",
		"CONNECT bad.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\r\n", "CONNECT [::1]:443 HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"CONNECT good.test:443@bad.test:443 HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT 0x7f.1:80 HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT good.test:99999 HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT good.test\x00.bad.test:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT http://good.test:443/ HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT bad.test:1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
	} {
		f.Add([]byte(request))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		// The only listed host has no address: no request may succeed.
		p := &proxy{hosts: []Host{{Name: "good.test", Port: 443}}, conns: map[net.Conn]struct{}{}}
		p.ctx, p.cancel = context.WithCancel(t.Context())
		defer p.cancel()
		p.resolve = func(_ context.Context, name string) ([]netip.Addr, error) {
			if name != "good.test" {
				t.Errorf("%q made the proxy look up %q", request, name)
			}
			return nil, errors.New("no such host")
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil || r.Method != http.MethodConnect {
			return
		}
		w := httptest.NewRecorder()
		p.tunnel(w, r)
		if w.Code != http.StatusForbidden && w.Code != http.StatusBadGateway {
			t.Errorf("%q was answered with %d", request, w.Code)
		}
	})
}
