package mcp_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/seed-009c0928/agent/mcp"
)

// TestRebinding resolves public names to this machine, as their owner could.
func TestRebinding(t *testing.T) {
	resolveToLoopback(t)
	web := newWebServer(t)
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for host, refused := range map[string]bool{"localhost": false, "LOCALHOST.": false, "x.localhost": false, "127.0.0.1": false, "localhost.example.com": true, "rebound.example": true} {
		c, err := mcp.Connect(t.Context(), "test", mcp.Server{URL: "http://" + host + ":" + port}, old)
		if err == nil {
			_ = c.Close()
		}
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "127.0.0.1, a local address: refused") {
			t.Errorf("%s: %v", host, err)
		}
	}
	// A proxy may be on this machine.
	base := http.DefaultTransport.(*http.Transport)
	proxy := base.Proxy
	base.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.example:" + port})
	defer func() { base.Proxy = proxy }()
	connect(t, mcp.Server{URL: "http://rebound.example"}, old)
}

// resolveToLoopback resolves all names to 127.0.0.1, with a DNS server.
func resolveToLoopback(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for buf := make([]byte, 512); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
			}
			if reply, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	system := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = system
		_ = conn.Close()
		<-ended
	})
}
