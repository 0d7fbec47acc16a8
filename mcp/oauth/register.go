package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// register returns the client to sign in as: the manually registered one, the
// metadata document, the stored registration, or a new one.
func (t *Transport) register(ctx context.Context, stored client, issuer issuerDocument, redirect string) (client, error) {
	switch {
	case t.opts.ClientID != "":
		return client{ID: t.opts.ClientID, Secret: t.opts.ClientSecret, Method: authMethod(issuer.AuthMethods, t.opts.ClientSecret != "")}, nil
	case t.opts.ClientMetadataURL != "" && issuer.ClientMetadata:
		return client{ID: t.opts.ClientMetadataURL, Method: "none"}, nil
	case stored.ID != "" && stored.Redirect != "" && samePort(stored.Redirect, redirect) && (stored.Expires.IsZero() || time.Now().Before(stored.Expires)):
		return stored, nil
	case issuer.Register == "":
		return client{}, fmt.Errorf("%s does not support dynamic client registration: register a client manually, with the redirect URL http://127.0.0.1/callback, and set its client ID", clean(issuer.Issuer))
	}
	c, err := t.registerAnew(ctx, issuer, redirect)
	var refused *registrationError
	if errors.As(err, &refused) && refused.code == "invalid_redirect_uri" && t.redirect == nil {
		// RFC 8252 recommends 127.0.0.1, but some issuers require localhost.
		if byName := strings.Replace(redirect, "//127.0.0.1:", "//localhost:", 1); byName != redirect {
			return t.registerAnew(ctx, issuer, byName)
		}
	}
	return c, err
}

func samePort(a, b string) bool {
	x, err1 := url.Parse(a)
	y, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && x.Port() == y.Port()
}

// registrationError is an error response to a registration (RFC 7591, section
// 3.2.2).
type registrationError struct {
	status      int
	code, about string
}

func (e *registrationError) Error() string {
	text := fmt.Sprintf("client registration failed with HTTP status %d", e.status)
	if e.code != "" {
		text += ": " + clean(e.code)
	}
	if e.about != "" {
		text += ": " + clean(e.about)
	}
	return text
}

// registerAnew registers this program as a client (RFC 7591).
func (t *Transport) registerAnew(ctx context.Context, issuer issuerDocument, redirect string) (client, error) {
	body, err := json.Marshal(map[string]any{
		"client_name": t.opts.ClientName, "application_type": "native", "redirect_uris": []string{redirect},
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		"token_endpoint_auth_method": authMethod(issuer.AuthMethods, false),
	})
	if err != nil {
		return client{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, issuer.Register, bytes.NewReader(body))
	if err != nil {
		return client{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	res, err := t.web.post.Do(req)
	if err != nil {
		return client{}, fmt.Errorf("client registration: %w", err)
	}
	defer res.Body.Close()
	var answer struct {
		ID      string `json:"client_id"`
		Secret  string `json:"client_secret"`
		Method  string `json:"token_endpoint_auth_method"`
		Expires int64  `json:"client_secret_expires_at"` // seconds since 1970; 0 = never
		Error   string `json:"error"`
		About   string `json:"error_description"`
	}
	err = decode(res, displayURL(req.URL), &answer)
	switch {
	case answer.Error == "" && slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnauthorized, http.StatusForbidden}, res.StatusCode):
		return client{}, fmt.Errorf("%s does not register clients (HTTP status %d): the server requires signing in, but does not announce how; if it uses an API key, set it as a header", displayURL(req.URL), res.StatusCode)
	case res.StatusCode/100 != 2:
		return client{}, &registrationError{status: res.StatusCode, code: answer.Error, about: answer.About}
	case err != nil:
		return client{}, fmt.Errorf("client registration: %w", err)
	case answer.ID == "":
		return client{}, fmt.Errorf("client registration: %s returned no client_id", displayURL(req.URL))
	}
	c := client{ID: answer.ID, Secret: answer.Secret, Method: answer.Method, Redirect: redirect}
	if c.Method == "" || len(issuer.AuthMethods) > 0 && !slices.Contains(issuer.AuthMethods, c.Method) {
		c.Method = authMethod(issuer.AuthMethods, c.Secret != "")
	}
	if answer.Expires > 0 {
		c.Expires = time.Unix(answer.Expires, 0)
	}
	return c, nil
}

// authMethod selects how the client authenticates at the token endpoint.
func authMethod(supported []string, haveSecret bool) string {
	order := []string{"none", "client_secret_basic", "client_secret_post"}
	if haveSecret {
		order = []string{"client_secret_basic", "client_secret_post", "none"}
	}
	if len(supported) == 0 {
		return order[0]
	}
	for _, m := range order {
		if slices.Contains(supported, m) {
			return m
		}
	}
	return "none"
}
