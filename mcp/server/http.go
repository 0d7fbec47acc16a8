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
	// Path is where the server is, over HTTP.
	Path = "/mcp"

	maxRequest   = 16 << 20 // bytes
	headerWait   = 10 * time.Second
	bodyWait     = 30 * time.Second // for a whole request
	writeWait    = 30 * time.Second
	sessionsIdle = time.Hour
	maxSessions  = 256
	shutdownWait = 5 * time.Second
	drainWait    = 2 * time.Second // for answers over stdio that nobody reads
)

// ServeHTTP serves clients that know the token, on a port of this machine. It
// owns the listener, and returns nil when ctx is done.
func (s *Server) ServeHTTP(ctx context.Context, ln net.Listener, token string) error {
	if len(token) < 16 {
		_ = ln.Close()
		return errors.New("the token is too short: expected at least 16 characters that nobody can guess")
	}
	addr, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil || !addr.Addr().IsLoopback() {
		_ = ln.Close()
		return fmt.Errorf("the address %s is not of this machine: expected 127.0.0.1 or [::1], for who reaches it may run commands here", ln.Addr())
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
	s.end() // with it ends what is under way, and every stream
	if web.Shutdown(stopping) != nil {
		_ = web.Close()
	}
	if err == nil {
		<-served
		return nil
	}
	return fmt.Errorf("mcp over HTTP: %w", err)
}

// guard turns away what does not come from a client that was let in: requests
// that a browser sends for a web page, be it from a foreign origin or under a
// foreign name that leads here (DNS rebinding), and such without the token. An
// empty token lets everybody in who passes the rest.
func guard(next http.Handler, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !localHost(r.Host):
			http.Error(w, "Forbidden: the Host header names another machine", http.StatusForbidden)
		case !localOrigin(r.Header.Values("Origin")):
			http.Error(w, "Forbidden: web pages are not let in (Origin header)", http.StatusForbidden)
		case token != "" && !knows(r.Header.Get("Authorization"), token):
			w.Header().Set("WWW-Authenticate", `Bearer realm="agent"`)
			http.Error(w, "Unauthorized: expected the header Authorization: Bearer TOKEN, with the token that agent mcp serve prints", http.StatusUnauthorized)
		case r.URL.Path != Path:
			http.NotFound(w, r)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
			next.ServeHTTP(w, r)
		}
	})
}

func knows(header, token string) bool {
	scheme, given, _ := strings.Cut(header, " ")
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(given)), []byte(token)) == 1
}

// localHost reports whether a host with or without a port is this machine.
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

// localOrigin reports whether a request comes from no web page, or from one of
// this machine.
func localOrigin(origins []string) bool {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !localHost(u.Host) {
			return false
		}
	}
	return true
}
