package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resourceDocument is the protected resource metadata of a server (RFC 9728).
type resourceDocument struct {
	Resource string   `json:"resource"`
	Issuers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// issuerDocument is the metadata of an authorization server (RFC 8414 or OpenID
// Connect Discovery).
type issuerDocument struct {
	Issuer         string   `json:"issuer"`
	Authorize      string   `json:"authorization_endpoint"`
	Token          string   `json:"token_endpoint"`
	Register       string   `json:"registration_endpoint"`
	Revoke         string   `json:"revocation_endpoint"`
	AuthMethods    []string `json:"token_endpoint_auth_methods_supported"`
	Scopes         []string `json:"scopes_supported"`
	PKCE           []string `json:"code_challenge_methods_supported"`
	ClientMetadata bool     `json:"client_id_metadata_document_supported"`
	SendsIssuer    bool     `json:"authorization_response_iss_parameter_supported"`
}

// discovery is the result of discovery.
type discovery struct {
	resource string   // the resource of tokens (RFC 8707)
	scopes   []string // suggested by the server
	issuer   issuerDocument
}

// discover finds the authorization server of the server. hint is the URL of the
// server's metadata from its challenge, if any.
func (t *Transport) discover(ctx context.Context, hint string) (discovery, error) {
	doc, err := t.resourceDocument(ctx, hint)
	if err != nil {
		return discovery{}, err
	}
	if doc == nil { // as in 2025-03-26: the server's origin is the issuer
		issuer, err := t.ownIssuer(ctx)
		return discovery{resource: canonical(t.server), issuer: issuer}, err
	}
	if !covers(doc.Resource, t.server) {
		return discovery{}, fmt.Errorf("the server's metadata is for another resource, %q: its tokens would not be valid for %s", clean(doc.Resource), displayURL(t.server))
	}
	if len(doc.Issuers) == 0 {
		return discovery{}, errors.New("the server's metadata has no authorization server")
	}
	found := discovery{resource: doc.Resource, scopes: doc.Scopes}
	name := doc.Issuers[0]
	if c, err := t.current(ctx); err == nil && slices.Contains(doc.Issuers, c.Issuer) {
		name = c.Issuer // of the previous sign-in
	}
	found.issuer, err = t.issuerDocument(ctx, name)
	return found, err
}

// resourceDocument reads the server's metadata from the URL in its challenge or
// from the well-known URLs; nil if there is none.
func (t *Transport) resourceDocument(ctx context.Context, hint string) (*resourceDocument, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	var places []*url.URL
	if hint != "" {
		u, err := t.web.parse("resource_metadata", hint)
		if err != nil {
			return nil, err
		}
		places = append(places, u)
	}
	if path := strings.TrimSuffix(t.server.EscapedPath(), "/"); path != "" {
		places = append(places, at(t.server, wellKnown+path))
	}
	places = append(places, at(t.server, wellKnown))
	for _, u := range places {
		doc := &resourceDocument{}
		err := t.web.document(ctx, u, doc)
		if err == nil {
			return doc, nil
		}
		if !isNotFound(err) {
			return nil, fmt.Errorf("the server's metadata: %w", err)
		}
	}
	return nil, nil
}

// isNotFound reports whether an error means that there is no such document.
func isNotFound(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.status >= 400 && status.status < 500 && status.status != http.StatusTooManyRequests
}

// issuerDocument reads the metadata of an issuer from the well-known URLs, and
// checks that it is of that issuer.
func (t *Transport) issuerDocument(ctx context.Context, name string) (issuerDocument, error) {
	u, err := t.web.parse("authorization server", name)
	if err != nil {
		return issuerDocument{}, err
	}
	const rfc8414, oidc = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{rfc8414 + path, oidc + path}
	if path != "" {
		places = append(places, path+oidc)
	}
	var doc issuerDocument
	for _, place := range places {
		doc = issuerDocument{}
		if err = t.web.document(ctx, at(u, place), &doc); err == nil || !isNotFound(err) {
			break
		}
	}
	if err != nil {
		return issuerDocument{}, fmt.Errorf("authorization server %s: %w", displayURL(u), err)
	}
	// A trailing slash is ignored, since it makes no difference to the metadata
	// URLs. Otherwise names must be identical.
	if strings.TrimSuffix(doc.Issuer, "/") != strings.TrimSuffix(name, "/") {
		return issuerDocument{}, fmt.Errorf("authorization server %s: its metadata names another issuer, %q", displayURL(u), clean(doc.Issuer))
	}
	return doc, t.checkIssuer(doc)
}

// ownIssuer returns the issuer of a server without metadata.
func (t *Transport) ownIssuer(ctx context.Context) (issuerDocument, error) {
	doc := issuerDocument{}
	err := t.web.document(ctx, at(t.server, "/.well-known/oauth-authorization-server"), &doc)
	if err == nil {
		if doc.Issuer == "" {
			doc.Issuer = at(t.server, "").String()
		}
		if u, err := url.Parse(doc.Issuer); err != nil || !sameOrigin(u, t.server) {
			return issuerDocument{}, fmt.Errorf("authorization server %s: its metadata names another issuer, %q", displayURL(t.server), clean(doc.Issuer))
		}
		return doc, t.checkIssuer(doc)
	}
	if !isNotFound(err) {
		return issuerDocument{}, fmt.Errorf("authorization server: %w", err)
	}
	root := at(t.server, "")
	return issuerDocument{
		Issuer: root.String(), Authorize: root.JoinPath("authorize").String(), Token: root.JoinPath("token").String(),
		Register: root.JoinPath("register").String(), PKCE: []string{"S256"}, // required by the specification of that time
	}, nil
}

// checkIssuer checks the metadata's required fields and all URLs.
func (t *Transport) checkIssuer(doc issuerDocument) error {
	for _, e := range []struct {
		name, address string
		required      bool
	}{
		{"authorization_endpoint", doc.Authorize, true},
		{"token_endpoint", doc.Token, true},
		{"registration_endpoint", doc.Register, false},
		{"revocation_endpoint", doc.Revoke, false},
	} {
		if e.address == "" && !e.required {
			continue
		}
		if _, err := t.web.parse("the authorization server's "+e.name, e.address); err != nil {
			return err
		}
	}
	if slices.Contains(doc.PKCE, "S256") || t.opts.AssumePKCE && len(doc.PKCE) == 0 {
		return nil
	}
	return fmt.Errorf("authorization server %s does not announce PKCE with S256 (code_challenge_methods_supported), which protects the sign-in against stolen codes", clean(doc.Issuer))
}

// at returns the URL of a path on the origin of u.
func at(u *url.URL, path string) *url.URL {
	to := &url.URL{Scheme: u.Scheme, Host: u.Host}
	to.RawPath = path
	to.Path, _ = url.PathUnescape(path)
	return to
}

func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Host, b.Host)
}

// canonical returns the resource name of a server without metadata.
func canonical(u *url.URL) string {
	c := &url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: u.Path, RawPath: u.RawPath}
	return strings.TrimSuffix(c.String(), "/")
}

// covers reports whether a resource is the server or a parent path of it.
func covers(resource string, server *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || !sameOrigin(r, server) || r.RawQuery != "" || r.Fragment != "" {
		return false
	}
	outer, inner := strings.TrimSuffix(r.EscapedPath(), "/"), strings.TrimSuffix(server.EscapedPath(), "/")
	return inner == outer || strings.HasPrefix(inner, outer+"/")
}
