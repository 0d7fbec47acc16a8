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

// signIn brings the person through the sign-in and returns what came of it.
// old is what is kept for the same issuer.
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
	if c.Client.Redirect != "" { // the issuer may have wanted another name for this machine
		if err := back.rename(c.Client.Redirect); err != nil {
			return credentials{}, err
		}
	}
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	config := c.config(back.url())
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", found.resource)}
	if slices.Contains(c.Scopes, offline) { // OpenID Connect ignores it otherwise
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
	return c, c.take(got)
}

// offline is the scope for tokens that can be renewed.
const offline = "offline_access"

// scopes are those to ask for: all that was asked for before, so that nothing
// is lost, and what the server demands now. At first, and without a demand,
// what it suggests.
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
	if slices.Contains(found.issuer.Scopes, offline) {
		add = append(slices.Clone(add), offline)
	}
	for _, s := range add {
		if !slices.Contains(want, s) {
			want = append(want, s)
		}
	}
	return want
}

// visit shows the page to the person and waits until the browser comes back, or
// the person pastes where it ended.
func (t *Transport) visit(ctx context.Context, back *listener, page, state string) (url.Values, error) {
	visiting, cancel := context.WithCancel(ctx)
	type pasted struct {
		address string
		err     error
	}
	done := make(chan pasted, 1)
	go func() {
		address, err := t.opts.Person.Visit(visiting, page)
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
			done = nil // nothing was pasted: the browser may still come
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// parsePasted reads the address at which the browser ended.
func parsePasted(address, state string) (url.Values, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.RawQuery == "" {
		return nil, errors.New("what was pasted is not the address at which the browser ended, http://127.0.0.1:…/callback?code=…")
	}
	q := u.Query()
	if !sameText(q.Get("state"), state) {
		return nil, errors.New("what was pasted does not belong to this sign-in (another state): start again")
	}
	return q, nil
}

func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// checkAnswer returns the code of an answer whose state is right. The issuer is
// looked at first (RFC 9207): of a foreign answer not even the error counts.
func checkAnswer(answer url.Values, issuer issuerDocument) (string, error) {
	switch iss, named := answer["iss"]; {
	case named && (len(iss) != 1 || iss[0] != issuer.Issuer):
		return "", fmt.Errorf("the answer comes from another issuer than %s: the sign-in is refused, for somebody may have mixed the two up", clean(issuer.Issuer))
	case !named && issuer.SendsIssuer:
		return "", fmt.Errorf("the answer does not name its issuer, though %s says that it always does: the sign-in is refused", clean(issuer.Issuer))
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
		return "", errors.New("the answer holds no code")
	}
	return code, nil
}
