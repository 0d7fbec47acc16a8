package agent

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/textproto"

	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/mcp/oauth"
)

// MCPSignIn signs in to HTTP MCP servers with OAuth.
type MCPSignIn struct {
	Store *oauth.Store
	// Browser lets the user sign in. If nil, a server that requires a sign-in is an
	// error that wraps mcp.ErrSignIn.
	Browser oauth.Browser
	// ClientMetadataURL is the URL of the program's client metadata document, for
	// issuers that accept one instead of a registration; empty = none.
	ClientMetadataURL string
	Logger            *slog.Logger
}

// Transport returns a transport that signs in to a server with expanded settings.
// Base performs the requests; nil is the default.
func (m MCPSignIn) Transport(s mcp.Server, base http.RoundTripper) (*oauth.Transport, error) {
	o := oauth.Options{
		Server: s.URL, Store: m.Store, Browser: m.Browser, Base: base, Logger: m.Logger,
		ClientID: s.OAuth.ClientID, ClientSecret: s.OAuth.ClientSecret, Scopes: s.OAuth.Scopes, ClientMetadataURL: m.ClientMetadataURL,
	}
	if s.OAuth.CallbackPort > 0 {
		o.RedirectURL = fmt.Sprintf("http://localhost:%d/callback", s.OAuth.CallbackPort)
	}
	return oauth.New(o)
}

// Authorizer returns m for [MCPOptions]. It does not change servers with an
// Authorization header in their settings, or for which sign-in is impossible.
func (m MCPSignIn) Authorizer() mcp.Authorizer {
	return func(_ string, s mcp.Server, base http.RoundTripper) http.RoundTripper {
		for name := range s.Headers {
			if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
				return base
			}
		}
		t, err := m.Transport(s, base)
		if err != nil {
			cmp.Or(m.Logger, slog.New(slog.DiscardHandler)).Debug("cannot sign in", "url", s.Describe(), "cause", err)
			return base
		}
		return signInTrip{t}
	}
}

// signInTrip turns a missing sign-in into mcp.ErrSignIn.
type signInTrip struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t signInTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if missing := (*oauth.SignInError)(nil); errors.As(err, &missing) {
		err = fmt.Errorf("%w: %w", mcp.ErrSignIn, err)
	}
	return res, err
}
