package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// FuzzAPI sends requests with a good token: none makes the service fail, and each error
// is one of the document's form.
func FuzzAPI(f *testing.F) {
	for _, seed := range [][4]string{
		{"POST", "/v1/sessions", "", `{"id":"x","title":"T","labels":{"a":"b"},"spec":{},"content":[{"type":"text","text":"Go."}],"workspace":{"directory":"new"}}`},
		{"POST", "/v1/sessions", "", `{"workspace":{"git":"https://example.com/x.git","revision":"main"}}`},
		{"POST", "/v1/sessions", "", `{"content":[{"type":"image","mediaType":"image/png","data":"AAAA"}]}`},
		{"GET", "/v1/sessions", "limit=2&before=s", ""},
		{"GET", "/v1/sessions/s", "", ""},
		{"GET", "/v1/sessions/s/events", "cursor=1", ""},
		{"POST", "/v1/sessions/s/commands", "", `{"id":"c","type":"input","content":[{"type":"text","text":"x"}],"context":[{"source":"a","text":"b"}]}`},
		{"POST", "/v1/sessions/s/commands", "", `{"type":"cancel","reason":"r","reach":"model"}`},
		{"POST", "/v1/sessions/s/answers", "", `{"question":"q","choice":"once","args":{},"offer":-1,"values":{"a":[1]}}`},
		{"GET", "/v1/sessions/s/files/sub/a.txt", "", ""},
		{"GET", "/v1/sessions/s/files/..%2f..%2fid", "", ""},
		{"GET", "/v1/sessions/s/diff", "", ""},
		{"GET", "/v1/questions", "limit=1", ""},
		{"GET", "/v1/usage", "", ""},
		{"POST", "/v1/schedules", "", `{"id":"n","cron":"*/5 0 * 1,2 1-5","content":[{"type":"text","text":"Go."}]}`},
		{"DELETE", "/v1/schedules/n", "", ""},
		{"POST", "/v1/webhooks", "", `{"id":"h","url":"https://example.com/x","events":["turn.done"]}`},
		{"DELETE", "/v1/webhooks/h", "", ""},
		{"GET", "/metrics", "", ""},
		{"GET", "/readyz", "", ""},
		{"DELETE", "/v1/sessions/other", "", ""},
		{"HEAD", "/v1/sessions/s/diff", "", ""},
		{"OPTIONS", "/v1/../%00", "%gh", "{"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	e := engine(f)
	places, _ := places(f)
	a, err := New(Options{
		Engine: e, Workspaces: places, Quotas: service.NewQuotas(e, map[string]service.Quota{"": {Sessions: 1000}}),
		Tokens: []Token{{Hash: Hash("all"), Tenant: "acme", Scopes: []Scope{ScopeRead, ScopeRun, ScopeAnswer, ScopeAdmin}}},
	})
	if err != nil {
		f.Fatal(err)
	}
	spec := workspace.Spec{Directory: workspace.New}
	if _, err := places.Prepare(f.Context(), "acme", "s", spec); err != nil {
		f.Fatal(err)
	}
	s := service.Session{Tenant: "acme", ID: "s", State: "parked", Workspace: spec, Place: places.ID(), Questions: []event.Question{{QID: "q", Kind: "permission", Choices: []string{"once", "deny"}}}}
	if err := e.Create(f.Context(), s); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		u, err := url.Parse("http://localhost" + path)
		if err != nil || u.Host != "localhost" {
			return
		}
		u.RawQuery = query
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(body))
		if err != nil {
			return
		}
		req.Header.Set("Authorization", "Bearer all")
		w := httptest.NewRecorder()
		if strings.HasSuffix(u.Path, "/events") { // a stream ends with its client
			stop := time.AfterFunc(20*time.Millisecond, cancel)
			defer stop.Stop()
		}
		a.ServeHTTP(w, req)
		if ctx.Err() != nil {
			return
		}
		if w.Code >= 500 {
			t.Errorf("%s %s?%s: %d %s", method, path, query, w.Code, w.Body)
		}
		var answer struct {
			Error *struct{ Code, Message string }
		}
		if w.Code >= 400 && (json.Unmarshal(w.Body.Bytes(), &answer) != nil || answer.Error == nil || answer.Error.Code == "" || answer.Error.Message == "") {
			t.Errorf("%s %s?%s: %d without an error: %.200s", method, path, query, w.Code, w.Body)
		}
	})
}
