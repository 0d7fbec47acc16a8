package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/sdktest"
)

// site starts a local server that the plugin may access.
func site(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, "<title>Home</title><h1>Hello</h1><p>to <b>you</b>")
		case "/empty":
			fmt.Fprint(w, "<script>render()</script>")
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/private":
			w.WriteHeader(http.StatusForbidden)
		case "/broken":
			w.WriteHeader(http.StatusBadGateway)
		case "/moved":
			http.Redirect(w, r, "https://example.com/new", http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv(AllowPrivateEnv, "localhost:1, "+server.Listener.Addr().String())
	return server.URL
}

func TestTool(t *testing.T) {
	base := site(t)
	p := sdktest.Start(t, Plugin("1.0.0", Search{}))
	for _, tt := range []struct {
		path string
		raw  bool
		want string
		code sdk.Code
	}{
		{"/", false, "URL: " + base + "/\nTitle: Home\n\n# Hello\n\nto **you**", ""},
		{"/", true, "<title>Home</title>", ""},
		{"/empty", false, "The page has no text", ""},
		{"/moved", false, "To read it, fetch https://example.com/new", ""},
		{"/gone", false, "410 Gone", sdk.NotFound},
		{"/busy", false, "429", sdk.RateLimited},
		{"/private", false, "403", sdk.Permission},
		{"/broken", false, "502", sdk.IO},
	} {
		res := p.Call(t, "web_fetch", args{URL: base + tt.path, Raw: tt.raw})
		if !strings.Contains(res.Text, tt.want) || res.Code != tt.code {
			t.Errorf("%s: %q, %s; want %q, %s", tt.path, res.Text, res.Code, tt.want, tt.code)
		}
	}
	res := p.Call(t, "web_fetch", args{URL: "http://127.0.0.1:1234/"})
	if res.Code != sdk.Validation || !strings.Contains(res.Text, "not a public internet address") {
		t.Errorf("another port of this machine: %q, %s", res.Text, res.Code)
	}
}

func TestConforms(t *testing.T) {
	base := site(t)
	p := sdktest.Start(t, Plugin("1.0.0", Search{}))
	sdktest.Conforms(t, p, sdktest.Sample{Tool: "web_fetch", Args: fmt.Sprintf(`{"url": %q}`, base)})
	d := p.Describe(t)
	if m := d.Manifest; len(m.Read)+len(m.Write) != 0 || m.Exec || len(d.Tools) != 1 || d.Tools[0].Access[0].Scope != "network" {
		t.Errorf("description %v", d)
	}
}
