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

// MCPSignIn signs in to MCP servers that are reached by HTTP.
type MCPSignIn struct {
	Store  *oauth.Store
	Person oauth.Person // nil = nobody is there: a server that wants a sign-in is an error that wraps mcp.ErrSignIn
	// ClientMetadataURL is where a document about the program is, for issuers
	// that take one in place of a registration; empty = there is none.
	ClientMetadataURL string
	Logger            *slog.Logger
}

// Transport returns what signs in to a server, whose settings have their
// variables put in. base reaches the network; nil is the usual way.
func (m MCPSignIn) Transport(s mcp.Server, base http.RoundTripper) (*oauth.Transport, error) {
	o := oauth.Options{
		Server: s.URL, Store: m.Store, Person: m.Person, Base: base, Logger: m.Logger,
		ClientID: s.OAuth.ClientID, ClientSecret: s.OAuth.ClientSecret, Scopes: s.OAuth.Scopes, ClientMetadataURL: m.ClientMetadataURL,
	}
	if s.OAuth.CallbackPort > 0 {
		o.RedirectURL = fmt.Sprintf("http://localhost:%d/callback", s.OAuth.CallbackPort)
	}
	return oauth.New(o)
}

// Authorizer is m for [MCPOptions]. It leaves servers alone whose settings hold
// an Authorization header, and those that no sign-in is possible for.
func (m MCPSignIn) Authorizer() mcp.Authorizer {
	return func(_ string, s mcp.Server, base http.RoundTripper) http.RoundTripper {
		for name := range s.Headers {
			if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
				return base
			}
		}
		t, err := m.Transport(s, base)
		if err != nil {
			cmp.Or(m.Logger, slog.New(slog.DiscardHandler)).Debug("no sign-in is possible", "url", s.Describe(), "cause", err)
			return base
		}
		return signInTrip{t}
	}
}

// signInTrip makes a missing sign-in the error that package mcp knows.
type signInTrip struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t signInTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if missing := (*oauth.SignInError)(nil); errors.As(err, &missing) {
		err = fmt.Errorf("%w: %w", mcp.ErrSignIn, err)
	}
	return res, err
}
