package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
)

// signIn signs the user in and returns the new credentials. old are the stored
// ones for the same issuer.
func (t *Transport) signIn(ctx context.Context, old credentials, found discovery, ch challenge) (credentials, error) {
	c := credentials{
		Issuer: found.issuer.Issuer, Resource: found.resource, TokenURL: found.issuer.Token, Revoke: found.issuer.Revoke,
		Client: old.Client, Scopes: t.scopes(old, found, ch),
	}
	back, err := t.listen(c.Client.Redirect)
	if err != nil {
		return credentials{}, err
	}
	defer back.close()
	if c.Client, err = t.register(ctx, c.Client, found.issuer, back.url()); err != nil {
		return credentials{}, err
	}
	if c.Client.Redirect != "" { // the issuer may have required localhost
		if err := back.rename(c.Client.Redirect); err != nil {
			return credentials{}, err
		}
	}
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	config := c.config(back.url())
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", found.resource)}
	if slices.Contains(c.Scopes, scopeOffline) { // otherwise OpenID Connect ignores that scope
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	config.Endpoint.AuthURL = found.issuer.Authorize
	answer, err := t.visit(ctx, back, config.AuthCodeURL(state, options...), state)
	if err != nil {
		return credentials{}, err
	}
	code, err := checkAnswer(answer, found.issuer)
	if err != nil {
		return credentials{}, err
	}
	got, err := config.Exchange(t.web.tokens(ctx, ""), code, oauth2.VerifierOption(verifier), oauth2.SetAuthURLParam("resource", found.resource))
	if err != nil {
		return credentials{}, tokenError(err, append(c.secrets(), code, verifier)...)
	}
	return c, c.setToken(got)
}

// scopeOffline is the scope for refresh tokens.
const scopeOffline = "offline_access"

// scopes returns the scopes to request: all that were requested before, and those
// that the server demands now. The first time, without a demand, those that it
// suggests.
func (t *Transport) scopes(old credentials, found discovery, ch challenge) []string {
	want := slices.Clone(old.Scopes)
	add := ch.scopes
	if len(want) == 0 {
		switch {
		case len(t.opts.Scopes) > 0:
			add = slices.Concat(t.opts.Scopes, ch.scopes)
		case len(ch.scopes) == 0:
			add = found.scopes
		}
	}
	if slices.Contains(found.issuer.Scopes, scopeOffline) {
		add = append(slices.Clone(add), scopeOffline)
	}
	for _, s := range add {
		if !slices.Contains(want, s) {
			want = append(want, s)
		}
	}
	return want
}

// visit takes the user to the page and waits until the browser is redirected, or
// the user pastes the URL that it was redirected to.
func (t *Transport) visit(ctx context.Context, back *listener, page, state string) (url.Values, error) {
	visiting, cancel := context.WithCancel(ctx)
	type pasted struct {
		address string
		err     error
	}
	done := make(chan pasted, 1)
	go func() {
		address, err := t.opts.Browser.Visit(visiting, page)
		done <- pasted{address, err}
	}()
	waiting := true
	defer func() {
		cancel()
		if waiting {
			<-done
		}
	}()
	answers := back.serve(state)
	for {
		select {
		case a := <-answers:
			return a, nil
		case p := <-done:
			waiting = false
			switch {
			case p.err != nil:
				return nil, p.err
			case p.address != "":
				return parsePasted(p.address, state)
			}
			done = nil // nothing pasted: keep waiting for the browser
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// parsePasted parses the URL that the browser was redirected to.
func parsePasted(address, state string) (url.Values, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.RawQuery == "" {
		return nil, errors.New("the pasted text is not the URL that the browser was redirected to: expected http://127.0.0.1:…/callback?code=…")
	}
	q := u.Query()
	if !equalSecret(q.Get("state"), state) {
		return nil, errors.New("the pasted URL does not belong to this sign-in (state mismatch): start again")
	}
	return q, nil
}

func equalSecret(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// checkAnswer returns the code of an authorization response, whose state was
// checked. It checks the issuer first (RFC 9207), before even an error counts.
func checkAnswer(answer url.Values, issuer issuerDocument) (string, error) {
	switch iss, named := answer["iss"]; {
	case named && (len(iss) != 1 || iss[0] != issuer.Issuer):
		return "", fmt.Errorf("sign-in refused: the response comes from another issuer than %s (possible mix-up attack)", clean(issuer.Issuer))
	case !named && issuer.SendsIssuer:
		return "", fmt.Errorf("sign-in refused: the response does not name its issuer, although %s announces that it does", clean(issuer.Issuer))
	}
	if code := answer.Get("error"); code != "" {
		text := clean(code)
		if d := answer.Get("error_description"); d != "" {
			text += ": " + clean(d)
		}
		return "", fmt.Errorf("%s refused the sign-in: %s", clean(issuer.Issuer), text)
	}
	code := answer.Get("code")
	if code == "" {
		return "", errors.New("the response has no code")
	}
	return code, nil
}
