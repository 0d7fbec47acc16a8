package oauth_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/mcp/oauth"
	"github.com/seed-009c0928/agent/mcp/oauth/oauthtest"
)

// setup is a server, its issuer and a transport.
type setup struct {
	issuer   *oauthtest.Issuer
	resource *oauthtest.Resource
	user     *oauthtest.Browser
	store    string
	opts     oauth.Options
}

func newSetup(t *testing.T) *setup {
	a := oauthtest.NewIssuer(t)
	m := oauthtest.NewResource(t, a)
	s := &setup{issuer: a, resource: m, user: &oauthtest.Browser{}, store: t.TempDir()}
	base := &http.Transport{DisableKeepAlives: true}
	s.opts = oauth.Options{Server: m.URL + "/mcp", Store: oauth.NewStore(s.store, nil), Browser: s.user, HowTo: "run agent mcp login x", Base: base}
	return s
}

func (s *setup) transport(t *testing.T) *oauth.Transport {
	t.Helper()
	tr, err := oauth.New(s.opts)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// ask sends a request and returns the status and the body.
func ask(t *testing.T, rt http.RoundTripper, address string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("the request"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

// greets fails the test unless a request is authorized.

func greets(t *testing.T, rt http.RoundTripper, s *setup) {
	t.Helper()
	status, body, err := ask(t, rt, s.opts.Server)
	if err != nil || status != http.StatusOK || body != "hello 11" {
		t.Fatalf("status %d, body %q, error %v", status, body, err)
	}
}
