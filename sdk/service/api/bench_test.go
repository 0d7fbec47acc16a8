package api

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service"
)

// BenchmarkEvents measures the time from an append to the event at a client that follows
// the session over HTTP.
func BenchmarkEvents(b *testing.B) {
	e := engine(b)
	if err := e.Create(b.Context(), service.Session{Tenant: "acme", ID: "s", State: service.StateRunning}); err != nil {
		b.Fatal(err)
	}
	a, err := New(Options{Engine: e, Tokens: []Token{{Hash: Hash("all"), Tenant: "acme", Scopes: []Scope{ScopeRead}}}})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(a)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/sessions/s/events", nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer all")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	j, err := e.Journal(b.Context(), "acme", "s")
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		started, seq := time.Now(), event.Seq(len(took)+1)
		if err := j.Append(b.Context(), event.Event{V: event.Version, Seq: seq, Body: event.Warning{Message: "m"}}); err != nil {
			b.Fatal(err)
		}
		for lines.Scan() && !strings.Contains(lines.Text(), fmt.Sprintf(`"seq":%d,`, seq)) {
		}
		if lines.Err() != nil {
			b.Fatal(lines.Err())
		}
		took = append(took, time.Since(started))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
