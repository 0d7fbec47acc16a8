package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/sdk/service"
)

// answers counts requests. It is safe for concurrent use.
type answers struct {
	mu    sync.Mutex
	count map[answered]int
	took  map[string]time.Duration // by route
}

type answered struct {
	route  string
	status int
}

func (n *answers) add(route string, status int, took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count[answered{route, status}]++
	n.took[route] += took
}

// write writes the counts in the format of Prometheus.
func (n *answers) write(b *bytes.Buffer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	head(b, "agent_requests_total", "counter", "answered requests")
	sorted := slices.SortedFunc(maps.Keys(n.count), func(x, y answered) int {
		return cmp.Or(cmp.Compare(x.route, y.route), cmp.Compare(x.status, y.status))
	})
	for _, k := range sorted {
		fmt.Fprintf(b, "agent_requests_total{route=%q,status=\"%d\"} %d\n", k.route, k.status, n.count[k])
	}
	head(b, "agent_request_seconds_total", "counter", "time in which requests were answered; a stream of events counts until it ends")
	for _, route := range slices.Sorted(maps.Keys(n.took)) {
		fmt.Fprintf(b, "agent_request_seconds_total{route=%q} %g\n", route, n.took[route].Seconds())
	}
}

func head(b *bytes.Buffer, name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// metrics shows the numbers of all tenants. Labels are names of tenants, states and
// routes: nothing that a tenant wrote.
func (a *API) metrics(w http.ResponseWriter, req *http.Request, _ Token) error {
	list, err := a.opts.Engine.List(req.Context(), service.Filter{})
	if err != nil {
		return err
	}
	day := service.Day(time.Now())
	tenants := map[string]*service.Load{}
	for _, s := range list {
		if tenants[s.Tenant] == nil {
			tenants[s.Tenant] = &service.Load{Day: day, States: map[service.State]int{}}
		}
		tenants[s.Tenant].Add(s)
	}
	var b bytes.Buffer
	names := slices.Sorted(maps.Keys(tenants))
	head(&b, "agent_sessions", "gauge", "sessions that are kept, by state")
	for _, name := range names {
		for _, state := range slices.Sorted(maps.Keys(tenants[name].States)) {
			fmt.Fprintf(&b, "agent_sessions{tenant=%q,state=%q} %d\n", name, state, tenants[name].States[state])
		}
	}
	for _, m := range []struct {
		name, help string
		value      func(u *service.Load) float64
	}{
		{"agent_open_questions", "questions that wait for an answer", func(u *service.Load) float64 { return float64(u.Questions) }},
		{"agent_tokens_today", "tokens used on this day of UTC by the sessions that are kept", func(u *service.Load) float64 { return float64(u.Used.Tokens.Total()) }},
		{"agent_cost_usd_today", "cost of this day of UTC of the sessions that are kept, as far as it is known", func(u *service.Load) float64 { return u.Used.CostUSD }},
	} {
		head(&b, m.name, "gauge", m.help)
		for _, name := range names {
			fmt.Fprintf(&b, "%s{tenant=%q} %g\n", m.name, name, m.value(tenants[name]))
		}
	}
	a.answers.write(&b)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(b.Bytes())
	return nil
}

// readyWithin is how long the engine may take to answer.
const readyWithin = 2 * time.Second

// ready says whether the engine answers.
func (a *API) ready(w http.ResponseWriter, req *http.Request, _ Token) error {
	ctx, cancel := context.WithTimeout(req.Context(), readyWithin)
	defer cancel()
	if _, err := a.opts.Engine.Get(ctx, "ready", "ready"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.opts.Logger.WarnContext(req.Context(), "the engine does not answer", "error", err)
		return &failure{http.StatusServiceUnavailable, "not_ready", "the engine of the service does not answer"}
	}
	a.answerWith(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// entry is a line of the audit log.
type entry struct {
	Time    time.Time `json:"time"`
	Tenant  string    `json:"tenant,omitempty"`
	Token   string    `json:"token,omitempty"` // its name
	From    string    `json:"from,omitempty"`  // the address
	Route   string    `json:"route"`
	Session string    `json:"session,omitempty"`
	Status  int       `json:"status"`
	Took    float64   `json:"seconds"`
}

// note counts an answered request, and writes who asked for a change or was refused.
func (a *API) note(req *http.Request, pattern string, t Token, status int, began time.Time) {
	took := time.Since(began)
	a.answers.add(pattern, status, took)
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusMisdirectedRequest
	if a.opts.Audit == nil || !refused && (req.Method == http.MethodGet || req.Method == http.MethodHead) {
		return
	}
	line, err := json.Marshal(entry{began.UTC(), t.Tenant, t.Name, req.RemoteAddr, pattern, req.PathValue("id"), status, took.Seconds()})
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.opts.Audit.Write(append(line, '\n')); err != nil {
		a.opts.Logger.ErrorContext(req.Context(), "the audit log cannot be written", "error", err)
	}
}
