package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// checkURL refuses what is not the address of a named host, or of this machine.
func checkURL(text string) error {
	if text == "" {
		return errors.New(`a hook of type http needs "url"`)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return fmt.Errorf("url %q: expected http:// or https:// and a host", text)
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && !ip.IsLoopback() {
		return fmt.Errorf("url %q: expected a host's name, or this machine (127.0.0.1, localhost)", text)
	}
	return nil
}

// newClient returns a client that follows no redirects, and does not reach the
// addresses at which clouds give away credentials.
func newClient() *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsLinkLocalUnicast() {
			return fmt.Errorf("%s is a link-local address", host)
		}
		return err
	}}
	return &http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post sends the input to a server. What it answers counts only with a status of 2xx.
func (e *Engine) post(ctx context.Context, d *Definition, input []byte) (reply, error) {
	h := &d.Handler
	address := d.Source.expand(h.URL)
	if err := checkURL(address); err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(input))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range h.Headers {
		req.Header.Set(name, substitute(d.Source.expand(value), func(name string) string {
			if e.opts.Getenv == nil || !slices.Contains(h.AllowedEnvVars, name) {
				return ""
			}
			return e.opts.Getenv(name)
		}))
	}
	resp, err := e.opts.Client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	switch {
	case err != nil:
		return reply{}, err
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return reply{}, fmt.Errorf("the server answered %s", resp.Status)
	case len(body) > maxOutput:
		return reply{}, errors.New("the server sent more than 1 MiB")
	}
	return reply{out: body}, nil
}
