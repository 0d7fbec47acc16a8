package server

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

const (
	// Path is the path of the server's URL.
	Path = "/mcp"

	maxRequest   = 16 << 20 // bytes
	headerWait   = 10 * time.Second
	bodyWait     = 30 * time.Second // for reading a request
	writeWait    = 30 * time.Second
	sessionsIdle = time.Hour
	maxSessions  = 256
	shutdownWait = 5 * time.Second
	drainWait    = 2 * time.Second // for writing the last responses over stdio
)

// ServeHTTP serves clients that have the token on a loopback address. It owns the
// listener, and returns nil when ctx is done.
func (s *Server) ServeHTTP(ctx context.Context, ln net.Listener, token string) error {
	if len(token) < 16 {
		_ = ln.Close()
		return errors.New("the token is too short: expected at least 16 random characters")
	}
	addr, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil || !addr.Addr().IsLoopback() {
		_ = ln.Close()
		return fmt.Errorf("%s is not a loopback address: expected 127.0.0.1 or [::1], since clients can run commands", ln.Addr())
	}
	web := &http.Server{
		Handler: guard(newTransport(s.protocol), token), ReadHeaderTimeout: headerWait, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return s.ctx },
		ErrorLog:    slogLines(s.opts.Logger),
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		err = nil
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWait)
	defer cancel()
	s.end() // cancels requests and streams
	if web.Shutdown(stopping) != nil {
		_ = web.Close()
	}
	if err == nil {
		<-served
		return nil
	}
	return fmt.Errorf("mcp over HTTP: %w", err)
}

// guard rejects requests without the token, and those that a browser sends for a
// web page, either from a foreign origin or under a foreign host name (DNS
// rebinding). An empty token disables the former check.
func guard(next http.Handler, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !localHost(r.Host):
			http.Error(w, "Forbidden: Host header is not a loopback address", http.StatusForbidden)
		case !localOrigin(r.Header.Values("Origin")):
			http.Error(w, "Forbidden: request from a web page (Origin header)", http.StatusForbidden)
		case token != "" && !hasToken(r.Header.Get("Authorization"), token):
			w.Header().Set("WWW-Authenticate", `Bearer realm="agent"`)
			http.Error(w, "Unauthorized: expected the header Authorization: Bearer TOKEN, with the token printed by agent mcp serve", http.StatusUnauthorized)
		case r.URL.Path != Path:
			http.NotFound(w, r)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
			next.ServeHTTP(w, r)
		}
	})
}

func hasToken(header, token string) bool {
	scheme, given, _ := strings.Cut(header, " ")
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(given)), []byte(token)) == 1
}

// localHost reports whether a host, with or without port, is a loopback one.
func localHost(host string) bool {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host {
		return false
	}
	if strings.EqualFold(u.Hostname(), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.Unmap().IsLoopback()
}

// localOrigin reports whether a request does not come from a web page, or from a
// local one.
func localOrigin(origins []string) bool {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !localHost(u.Host) {
			return false
		}
	}
	return true
}
