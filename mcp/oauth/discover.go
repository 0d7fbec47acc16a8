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

// resourceDocument is the server's description of itself (RFC 9728).
type resourceDocument struct {
	Resource string   `json:"resource"`
	Issuers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// issuerDocument is the description of an authorisation server (RFC 8414, and
// OpenID Connect Discovery).
type issuerDocument struct {
	Issuer        string   `json:"issuer"`
	Authorize     string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Register      string   `json:"registration_endpoint"`
	Revoke        string   `json:"revocation_endpoint"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	Scopes        []string `json:"scopes_supported"`
	PKCE          []string `json:"code_challenge_methods_supported"`
	KnowsDocument bool     `json:"client_id_metadata_document_supported"`
	SendsIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
}

// discovery is where to sign in, and for what.
type discovery struct {
	resource string   // that tokens are for (RFC 8707)
	scopes   []string // that the server suggests
	issuer   issuerDocument
}

// discover finds out who issues tokens for the server. hint is the address of
// the server's description from its challenge, if it gave one.
func (t *Transport) discover(ctx context.Context, hint string) (discovery, error) {
	doc, err := t.resourceDocument(ctx, hint)
	if err != nil {
		return discovery{}, err
	}
	if doc == nil { // as in 2025-03-26: the server's own origin is the issuer
		issuer, err := t.ownIssuer(ctx)
		return discovery{resource: canonical(t.server), issuer: issuer}, err
	}
	if !covers(doc.Resource, t.server) {
		return discovery{}, fmt.Errorf("the server describes another resource, %q: its tokens would not be for %s", clean(doc.Resource), shown(t.server))
	}
	if len(doc.Issuers) == 0 {
		return discovery{}, errors.New("the server's description names no authorisation server")
	}
	found := discovery{resource: doc.Resource, scopes: doc.Scopes}
	name := doc.Issuers[0]
	if c, err := t.current(ctx); err == nil && slices.Contains(doc.Issuers, c.Issuer) {
		name = c.Issuer // where the person signed in before
	}
	found.issuer, err = t.issuerDocument(ctx, name)
	return found, err
}

// resourceDocument reads the server's description from where its challenge says
// that it is, else from the well-known places; nil if there is none.
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
		if !notThere(err) {
			return nil, fmt.Errorf("the server's description of itself: %w", err)
		}
	}
	return nil, nil
}

// notThere reports whether an error says that a document is elsewhere.
func notThere(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.status >= 400 && status.status < 500 && status.status != http.StatusTooManyRequests
}

// issuerDocument reads the description of an issuer from the well-known places
// and makes sure that it is that issuer's.
func (t *Transport) issuerDocument(ctx context.Context, name string) (issuerDocument, error) {
	u, err := t.web.parse("the authorisation server", name)
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
		if err = t.web.document(ctx, at(u, place), &doc); err == nil || !notThere(err) {
			break
		}
	}
	if err != nil {
		return issuerDocument{}, fmt.Errorf("the authorisation server %s: %w", shown(u), err)
	}
	// A slash at the end makes no difference here, because the two lead to the
	// same documents; else no two names are the same.
	if strings.TrimSuffix(doc.Issuer, "/") != strings.TrimSuffix(name, "/") {
		return issuerDocument{}, fmt.Errorf("the authorisation server %s says that it is %q: another must not speak for it", shown(u), clean(doc.Issuer))
	}
	return doc, t.checkIssuer(doc)
}

// ownIssuer is the issuer of a server that does not describe itself.
func (t *Transport) ownIssuer(ctx context.Context) (issuerDocument, error) {
	doc := issuerDocument{}
	err := t.web.document(ctx, at(t.server, "/.well-known/oauth-authorization-server"), &doc)
	if err == nil {
		if doc.Issuer == "" {
			doc.Issuer = at(t.server, "").String()
		}
		if u, err := url.Parse(doc.Issuer); err != nil || !sameOrigin(u, t.server) {
			return issuerDocument{}, fmt.Errorf("%s says that it is the authorisation server %q: another must not speak for it", shown(t.server), clean(doc.Issuer))
		}
		return doc, t.checkIssuer(doc)
	}
	if !notThere(err) {
		return issuerDocument{}, fmt.Errorf("the authorisation server: %w", err)
	}
	root := at(t.server, "")
	return issuerDocument{
		Issuer: root.String(), Authorize: root.JoinPath("authorize").String(), Token: root.JoinPath("token").String(),
		Register: root.JoinPath("register").String(), PKCE: []string{"S256"}, // nobody can say so, and the specification of that time requires it
	}, nil
}

// checkIssuer looks at what a description must have, and at every address.
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
		if _, err := t.web.parse("the authorisation server's "+e.name, e.address); err != nil {
			return err
		}
	}
	if slices.Contains(doc.PKCE, "S256") || t.opts.AssumePKCE && len(doc.PKCE) == 0 {
		return nil
	}
	return fmt.Errorf("the authorisation server %s does not say that it knows PKCE with S256 (code_challenge_methods_supported), without which a stolen code is a stolen token", clean(doc.Issuer))
}

// at is the address of a path on the origin of u.
func at(u *url.URL, path string) *url.URL {
	to := &url.URL{Scheme: u.Scheme, Host: u.Host}
	to.RawPath = path
	to.Path, _ = url.PathUnescape(path)
	return to
}

func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Host, b.Host)
}

// canonical is the name of a server that does not give itself one.
func canonical(u *url.URL) string {
	c := &url.URL{Scheme: strings.ToLower(u.Scheme), Host: strings.ToLower(u.Host), Path: u.Path, RawPath: u.RawPath}
	return strings.TrimSuffix(c.String(), "/")
}

// covers reports whether a resource is the server, or holds it by its path.
func covers(resource string, server *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || !sameOrigin(r, server) || r.RawQuery != "" || r.Fragment != "" {
		return false
	}
	outer, inner := strings.TrimSuffix(r.EscapedPath(), "/"), strings.TrimSuffix(server.EscapedPath(), "/")
	return inner == outer || strings.HasPrefix(inner, outer+"/")
}
