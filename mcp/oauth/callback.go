package oauth

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// listener waits on a local port for the browser's redirect.
type listener struct {
	ln       net.Listener
	redirect *url.URL
	server   *http.Server
	running  sync.WaitGroup
}

// parseRedirect parses a loopback redirect URL.
func parseRedirect(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || !isLoopbackName(u.Hostname()) || u.Port() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("invalid redirect URL %q: expected http://127.0.0.1:PORT/PATH (or localhost)", address)
	}
	return u, nil
}

// listen opens the port, that of the registered redirect URL if possible.
func (t *Transport) listen(registered string) (*listener, error) {
	if t.redirect != nil {
		return listenAt(t.redirect)
	}
	if u, err := parseRedirect(registered); err == nil {
		if l, err := listenAt(u); err == nil {
			return l, nil
		}
	}
	return listenAt(&url.URL{Scheme: "http", Host: "127.0.0.1:0", Path: "/callback"})
}

func listenAt(u *url.URL) (*listener, error) {
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, u.Port()))
	if err != nil {
		return nil, fmt.Errorf("port for the redirect: %w", err)
	}
	own := *u
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		_ = ln.Close()
		return nil, err
	}
	own.Host = net.JoinHostPort(u.Hostname(), port)
	return &listener{ln: ln, redirect: &own}, nil
}

func (l *listener) url() string { return l.redirect.String() }

// rename replaces the redirect URL by another one with the same port.
func (l *listener) rename(address string) error {
	u, err := parseRedirect(address)
	if err != nil {
		return err
	}
	if u.Port() == l.redirect.Port() {
		l.redirect = u
	}
	return nil
}

// serve starts the server. The channel receives the first response with the right
// state; all other requests are rejected, so that no other web page can end the
// sign-in.
func (l *listener) serve(state string) <-chan url.Values {
	answers := make(chan url.Values, 1)
	l.server = &http.Server{
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			switch {
			case r.Method != http.MethodGet || r.URL.Path != l.redirect.Path || !strings.EqualFold(r.Host, l.redirect.Host):
				http.NotFound(w, r)
			case !equalSecret(q.Get("state"), state):
				page(w, http.StatusBadRequest, "This page does not belong to the current sign-in.")
			default:
				page(w, http.StatusOK, "You can close this page and return to the terminal, which shows the result of the sign-in.")
				select {
				case answers <- q:
				default: // only the first counts
				}
			}
		}),
	}
	l.running.Go(func() { _ = l.server.Serve(l.ln) })
	return answers
}

// page responds with a fixed text, which contains nothing of the request.
func page(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the URL contains the code
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Connection", "close")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html><title>Sign-in</title><p>%s</p>\n", text)
}

// close waits for the response to the browser and closes the port.
func (l *listener) close() {
	if l.server == nil {
		_ = l.ln.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
	l.running.Wait()
}
