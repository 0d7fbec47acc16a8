package oauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
)

// config returns the client's configuration for golang.org/x/oauth2.
func (c credentials) config(redirect string) *oauth2.Config {
	config := &oauth2.Config{
		ClientID: c.Client.ID, ClientSecret: c.Client.Secret, RedirectURL: redirect, Scopes: c.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: c.TokenURL, AuthStyle: oauth2.AuthStyleInParams},
	}
	switch c.Client.Method {
	case "client_secret_basic":
		config.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	case "none":
		config.ClientSecret = ""
	}
	return config
}

// setToken sets a new token. Without a new refresh token, the old one is kept.
func (c *credentials) setToken(got *oauth2.Token) error {
	if !strings.EqualFold(got.Type(), "Bearer") {
		return fmt.Errorf("unsupported token type %s: expected Bearer", clean(got.Type()))
	}
	if strings.ContainsFunc(got.AccessToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("the token contains characters that are invalid in a header")
	}
	next := token{Access: got.AccessToken, Refresh: got.RefreshToken, Expires: got.Expiry, Granted: c.Scopes}
	if next.Refresh == "" {
		next.Refresh = c.Token.Refresh
	}
	if scope, ok := got.Extra("scope").(string); ok && scope != "" {
		next.Granted = strings.Fields(scope)
	}
	c.Token = next
	return nil
}

// errNotRenewed means that only signing in leads to a new token.
var errNotRenewed = errors.New("the token cannot be refreshed")

// renew returns a token to replace the old one: one that another process has
// obtained since, or a refreshed one. It holds the lock of the store, since
// issuers accept a refresh token only once.
func (t *Transport) renew(ctx context.Context, old, resource string) (access string, err error) {
	err = t.locked(ctx, func() error {
		c, err := t.reload(ctx)
		switch {
		case err != nil:
			return err
		case c.Token.Access != old && c.Token.Access != "" && !c.expired():
			access = c.Token.Access
			return nil
		case c.Token.Refresh == "":
			return errNotRenewed
		}
		got, err := c.config("").TokenSource(t.web.tokens(ctx, resource), &oauth2.Token{RefreshToken: c.Token.Refresh}).Token()
		if err != nil {
			return t.notRenewed(ctx, c, err)
		}
		if err := c.setToken(got); err != nil {
			return err
		}
		access = c.Token.Access
		if err := t.save(ctx, c); err != nil {
			t.log.WarnContext(ctx, "the new token is stored in this process only", "cause", err)
		}
		return nil
	})
	return access, err
}

// notRenewed deletes credentials that the issuer rejects.
func (t *Transport) notRenewed(ctx context.Context, c credentials, err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.Response == nil || refused.Response.StatusCode >= 500 || refused.Response.StatusCode == http.StatusTooManyRequests {
		return fmt.Errorf("the token for %s has expired and cannot be refreshed now: %w", displayURL(t.server), tokenError(err, c.secrets()...))
	}
	t.log.InfoContext(ctx, "sign-in required", "server", displayURL(t.server), "cause", tokenError(err, c.secrets()...))
	c.Token = token{}
	if refused.ErrorCode == "invalid_client" || refused.ErrorCode == "unauthorized_client" {
		c.Client = client{}
	}
	return errors.Join(errNotRenewed, t.save(ctx, c))
}

// tokenError returns an error of the token endpoint without the secrets that were
// sent, and without the response body, which may contain tokens.
func tokenError(err error, secrets ...string) error {
	var refused *oauth2.RetrieveError
	var network *url.Error
	switch {
	case errors.As(err, &refused):
		text := "the token endpoint returned an error"
		if refused.Response != nil {
			text = fmt.Sprintf("the token endpoint returned HTTP status %d", refused.Response.StatusCode)
		}
		if refused.ErrorCode != "" {
			text += ": " + clean(refused.ErrorCode, secrets...)
		}
		if refused.ErrorDescription != "" {
			text += ": " + clean(refused.ErrorDescription, secrets...)
		}
		return errors.New(text)
	case errors.As(err, &network):
		return fmt.Errorf("token endpoint: %w", network)
	}
	return errors.New("the token endpoint returned no valid token")
}

// tokens returns a context in which golang.org/x/oauth2 uses the guarded client,
// which also adds the resource if it is set: the library cannot when refreshing.
func (w *web) tokens(ctx context.Context, resource string) context.Context {
	c := *w.post
	c.Transport = resourceAdder{next: w, resource: resource}
	return context.WithValue(ctx, oauth2.HTTPClient, &c)
}

type resourceAdder struct {
	next     http.RoundTripper
	resource string
}

// RoundTrip implements [http.RoundTripper].
func (a resourceAdder) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.resource == "" || req.Body == nil {
		return a.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	form.Set("resource", a.resource)
	body = []byte(form.Encode())
	clone := req.Clone(req.Context())
	clone.Body, clone.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return a.next.RoundTrip(clone)
}

// revoke revokes the tokens (RFC 7009), the refresh token first: most issuers then
// revoke the access token, too.
func (t *Transport) revoke(ctx context.Context, c credentials) bool {
	if c.Revoke == "" {
		return false
	}
	revoked := false
	for _, one := range []struct{ token, hint string }{{c.Token.Refresh, "refresh_token"}, {c.Token.Access, "access_token"}} {
		if one.token == "" {
			continue
		}
		form := url.Values{"token": {one.token}, "token_type_hint": {one.hint}}
		if c.Client.Method != "client_secret_basic" {
			form.Set("client_id", c.Client.ID)
			if c.Client.Method == "client_secret_post" {
				form.Set("client_secret", c.Client.Secret)
			}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Revoke, strings.NewReader(form.Encode()))
		if err != nil {
			return false
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if c.Client.Method == "client_secret_basic" {
			req.SetBasicAuth(url.QueryEscape(c.Client.ID), url.QueryEscape(c.Client.Secret))
		}
		res, err := t.web.post.Do(req)
		if err != nil {
			t.log.InfoContext(ctx, "a token was not revoked", "hint", one.hint, "cause", err)
			return false
		}
		_ = res.Body.Close()
		if revoked = res.StatusCode == http.StatusOK; !revoked {
			return false
		}
	}
	return revoked
}
