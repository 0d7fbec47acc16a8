package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/sdktest"
)

const searchKey = "key-5f1d0c9be7a24e6c"

// engineServer answers every request with a body, and keeps the last request.
type engineServer struct {
	*httptest.Server
	request *http.Request
	body    map[string]any
}

func newEngineServer(t *testing.T, status int, answer string) *engineServer {
	t.Helper()
	s := &engineServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.request, s.body = r, nil
		if data, _ := io.ReadAll(r.Body); len(data) > 0 {
			if err := json.Unmarshal(data, &s.body); err != nil {
				t.Error(err)
			}
		}
		if status/100 == 3 {
			w.Header().Set("Location", "https://example.com/elsewhere")
		}
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// The answers have the forms of the engines' documentation.
func TestSearchEngines(t *testing.T) {
	for _, tt := range []struct {
		engine, answer string
		path, header   string
		query          map[string]string
		body           map[string]any
		want           string
	}{
		{
			"brave", `{"type":"search","web":{"type":"search","results":[{"title":"Go &amp; you","url":"https://go.dev/","description":"The <strong>Go</strong> language\u202e","age":"2 days ago"}]}}`,
			"/res/v1/web/search", "X-Subscription-Token: " + searchKey,
			map[string]string{"q": "tides site:go.dev OR site:pkg.go.dev", "count": "10"},
			nil,
			"1. Go & you\n   https://go.dev/\n   2 days ago: The Go language\n",
		},
		{
			"tavily", `{"query":"tides","results":[{"title":"Tides","url":"https://go.dev/t","content":"High\nat noon","score":0.9}]}`,
			"/search", "Authorization: Bearer " + searchKey, nil,
			map[string]any{"query": "tides", "max_results": 10.0, "include_domains": []any{"go.dev", "pkg.go.dev"}},
			"1. Tides\n   https://go.dev/t\n   High at noon\n",
		},
		{
			"exa", `{"results":[{"title":"Tides","url":"https://go.dev/t","publishedDate":"2026-01-02","highlights":["High","low"]}]}`,
			"/search", "X-Api-Key: " + searchKey, nil,
			map[string]any{"query": "tides", "numResults": 10.0, "includeDomains": []any{"go.dev", "pkg.go.dev"}, "contents": map[string]any{"highlights": true}},
			"1. Tides\n   https://go.dev/t\n   2026-01-02: High … low\n",
		},
		{
			"searxng", `{"query":"tides","results":[{"title":"Tides","url":"https://go.dev/t","content":"High","publishedDate":null}]}`,
			"/search", "",
			map[string]string{"q": "tides site:go.dev OR site:pkg.go.dev", "format": "json"},
			nil,
			"1. Tides\n   https://go.dev/t\n   High\n",
		},
	} {
		s := newEngineServer(t, http.StatusOK, tt.answer)
		p := sdktest.Start(t, Plugin("1.0.0", Search{Engine: tt.engine, URL: s.URL, Key: searchKey}))
		res := p.Call(t, "web_search", searchArgs{Query: "tides", Domains: []string{"go.dev", "pkg.go.dev"}})
		if res.Text != tt.want || res.Code != "" {
			t.Errorf("%s: %q, %s; want %q", tt.engine, res.Text, res.Code, tt.want)
		}
		name, value, _ := strings.Cut(tt.header, ": ")
		if s.request.URL.Path != tt.path || s.request.Header.Get(name) != value && name != "" || !reflect.DeepEqual(s.body, tt.body) {
			t.Errorf("%s was asked %s with %v, %v", tt.engine, s.request.URL, s.request.Header, s.body)
		}
		for k, v := range tt.query {
			if got := s.request.URL.Query().Get(k); got != v {
				t.Errorf("%s: %s is %q, want %q", tt.engine, k, got, v)
			}
		}
		d := p.Describe(t)
		if a := d.Tools[1].Access[0]; a.Scope != "network" || a.Resource != "127.0.0.1" {
			t.Errorf("%s: access %v", tt.engine, a)
		}
	}
}

func TestSearchFailures(t *testing.T) {
	many := `{"results":[` + strings.TrimSuffix(strings.Repeat(`{"title":"T","url":"https://go.dev","content":"`+strings.Repeat("long ", 500)+`"},`, 50), ",") + `]}`
	for _, tt := range []struct {
		engine string
		status int
		answer string
		want   string
		code   sdk.Code
	}{
		{"tavily", 200, `{"results":[]}`, "No results", ""},
		{"tavily", 200, many, "10. T", ""},
		{"tavily", 200, `<html>Sign in</html>`, "did not answer in the form of tavily", sdk.IO},
		{"tavily", 200, `{"results":[{"title":"` + strings.Repeat("x", maxResponse) + `"}]}`, "longer than 4 MiB", sdk.IO},
		{"tavily", 401, `{"detail":"bad key"}`, "401 Unauthorized", sdk.Permission},
		{"tavily", 429, ``, "429", sdk.RateLimited},
		{"tavily", 302, ``, "302 Found", sdk.IO},
		{"searxng", 403, `Forbidden`, "add json to search.formats", sdk.Permission},
	} {
		s := newEngineServer(t, tt.status, tt.answer)
		p := sdktest.Start(t, Plugin("1.0.0", Search{Engine: tt.engine, URL: s.URL, Key: searchKey}))
		res := p.Call(t, "web_search", searchArgs{Query: "tides"})
		if !strings.Contains(res.Text, tt.want) || res.Code != tt.code || strings.Contains(res.Text, "11. ") || len(res.Text) > 10_000 || strings.Contains(res.Text, searchKey) {
			t.Errorf("%s %d: %.300q, %s; want %q, %s", tt.engine, tt.status, res.Text, res.Code, tt.want, tt.code)
		}
	}
	for s, want := range map[Search]string{
		{Engine: "brave"}:                                "brave needs a key",
		{Engine: "bing", Key: "k"}:                       `unknown search engine "bing": expected brave`,
		{Engine: "searxng"}:                              "expected a URL",
		{Engine: "searxng", URL: "ftp://example.com"}:    "expected a URL",
		{Engine: "searxng", URL: "https://example.com/"}: "",
	} {
		if err := s.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	p := sdktest.Start(t, Plugin("1.0.0", Search{Engine: "brave", Key: "k"}))
	if res := p.Call(t, "web_search", searchArgs{Query: "  "}); res.Code != sdk.Validation {
		t.Errorf("an empty query: %q", res.Text)
	}
}

// TestSearchEnvironment passes a search to the plugin's process and back.
func TestSearchEnvironment(t *testing.T) {
	for _, s := range []Search{{}, {Engine: "brave", Key: "k"}, {Engine: "searxng", URL: "http://localhost:8888"}} {
		for _, entry := range s.Environ() {
			name, value, _ := strings.Cut(entry, "=")
			t.Setenv(name, value)
		}
		if got := SearchFromEnv(); got != s {
			t.Errorf("got %+v, want %+v", got, s)
		}
	}
}
