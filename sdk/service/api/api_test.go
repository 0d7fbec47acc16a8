package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/jetstream"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// contract is the OpenAPI document, and what a test saw of it.
type contract struct {
	t         *testing.T
	responses map[string]map[string]*jsonschema.Resolved // by route and status; nil without JSON

	mu   sync.Mutex
	seen map[string]bool
}

func newContract(t *testing.T) *contract {
	t.Helper()
	text := strings.ReplaceAll(string(document), "#/components/schemas/", "#/$defs/")
	type response struct {
		Content map[string]struct{ Schema json.RawMessage }
		Ref     string `json:"$ref"`
	}
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas json.RawMessage }
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	c := &contract{t: t, responses: map[string]map[string]*jsonschema.Resolved{}, seen: map[string]bool{}}
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			if method == "parameters" {
				continue
			}
			var operation struct{ Responses map[string]response }
			if err := json.Unmarshal(raw, &operation); err != nil {
				t.Fatal(err)
			}
			route := strings.ToUpper(method) + " " + path
			c.responses[route] = map[string]*jsonschema.Resolved{}
			for status, r := range operation.Responses {
				c.responses[route][status] = nil
				if body, ok := r.Content["application/json"]; ok {
					c.responses[route][status] = resolve(t, body.Schema, doc.Components.Schemas)
				}
			}
		}
	}
	return c
}

func resolve(t *testing.T, schema, all json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all, &s.Defs); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// check compares an answer with the document.
func (c *contract) check(route string, res *http.Response, body []byte) {
	c.t.Helper()
	status := strconv.Itoa(res.StatusCode)
	route = strings.Replace(route, "...", "", 1)
	schema, known := c.responses[route][status]
	if !known {
		c.t.Errorf("%s answers %s, which is not in the document: %s", route, status, body)
		return
	}
	c.mu.Lock()
	c.seen[route+" "+status] = true
	c.mu.Unlock()
	if schema == nil {
		return
	}
	var v any
	err := json.Unmarshal(body, &v)
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil || res.Header.Get("Content-Type") != "application/json" {
		c.t.Errorf("%s answers %s with %s: %v", route, status, body, err)
	}
}

// client is a program that uses the API.
type client struct {
	t        *testing.T
	contract *contract
	url      string
	token    string
	host     string
	origin   string
}

// request calls a route, with the id in the place of {id}, and what is behind a | in it as
// the path of a file.
func (c client) request(route, id, query string, body any) (*http.Response, map[string]any) {
	c.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	text, ok := body.(string)
	if !ok && body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		text = string(data)
	}
	id, file, _ := strings.Cut(id, "|")
	path = strings.NewReplacer("{id}", id, "{path...}", file).Replace(path)
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path+query, strings.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if c.origin != "" {
		req.Header.Set("Origin", c.origin)
	}
	if req.Host = c.host; c.host == "" {
		req.Host = "localhost"
	}
	w := httptest.NewRecorder()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := w.Body.ReadFrom(res.Body); err != nil {
		c.t.Fatal(err)
	}
	c.contract.check(route, res, w.Body.Bytes())
	var answer map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &answer)
	return res, answer
}

// want is request with a status.
func (c client) want(status int, route, id, query string, body any) map[string]any {
	c.t.Helper()
	res, answer := c.request(route, id, query, body)
	if res.StatusCode != status {
		c.t.Errorf("%s %s%s: status %d, want %d: %v", route, id, query, res.StatusCode, status, answer)
	}
	return answer
}

// follow reads the stream of a session behind a cursor, until an event matches.
func (c client) follow(id, cursor string, match func(event.Event) bool) (all []event.Event, last string) {
	c.t.Helper()
	const route = "GET /v1/sessions/{id}/events"
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/v1/sessions/"+id+"/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Last-Event-ID", cursor)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	c.contract.check(route, res, nil)
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			last = value
		case "data":
			var e event.Event
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				c.t.Fatal(err)
			}
			if all = append(all, e); match(e) {
				return all, last
			}
		}
	}
	c.t.Fatalf("the stream ended behind %d events: %v", len(all), lines.Err())
	return nil, ""
}

// until polls until a session is in a state: its entry is written behind its log.
func (c client) until(id string, state service.State) {
	c.t.Helper()
	for c.t.Context().Err() == nil {
		if s := c.want(200, "GET /v1/sessions/{id}", id, "", nil); s["state"] == string(state) {
			return
		}
	}
}

func resultOf(run string) func(event.Event) bool {
	return func(e event.Event) bool {
		r, ok := e.Body.(event.Result)
		return ok && r.Run == run
	}
}

// serve serves the API of an engine with tokens of all scopes, "all" and "other" of
// another tenant, of one, "runs", and of none, "none".
func serve(t *testing.T, c *contract, e service.Engine, places *workspace.Root, more ...func(*Options)) client {
	t.Helper()
	scopes := []Scope{ScopeRead, ScopeRun, ScopeAnswer, ScopeAdmin}
	o := Options{Engine: e, Workspaces: places, Hosts: []string{"agents.example"}, Tokens: []Token{
		{Hash: Hash("all"), Tenant: "acme", Scopes: scopes, Name: "bot"},
		{Hash: Hash("other"), Tenant: "globex", Scopes: scopes},
		{Hash: Hash("none"), Tenant: "acme"},
		{Hash: Hash("runs"), Tenant: "acme", Scopes: []Scope{ScopeRun}},
	}}
	for _, set := range more {
		set(&o)
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return client{t: t, contract: c, url: s.URL, token: "all"}
}

// engine is one on a server in this process.
func engine(t testing.TB) service.Engine {
	t.Helper()
	s, err := jetstream.Serve(jetstream.ServeOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	db, err := jetstream.Open(t.Context(), nc, jetstream.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// work runs a worker whose calls need approval.
func work(t *testing.T, e service.Engine, places *workspace.Root, p model.Provider) {
	t.Helper()
	dir := t.TempDir()
	w, err := service.NewWorker(service.WorkerOptions{Engine: e, Workspaces: places, Open: func(ctx context.Context, s service.Session, base agent.SessionOptions) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: cmp.Or(s.Dir, dir), Policy: coretest.FixedPolicy(core.Ask)})
		if err != nil {
			return host.Opened{}, err
		}
		base.Provider = p
		opened, err := a.NewSession(ctx, base)
		return host.Opened{Session: opened, Close: a.Close}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func text(s string) []host.Part { return []host.Part{{Type: "text", Text: s}} }

// TestAPI goes through the life of a session, and through every error of every route,
// and compares all answers with the document. In the end it has seen all of it.
func TestAPI(t *testing.T) {
	c := newContract(t)
	e := engine(t)
	places, dir := places(t)
	api := serve(t, c, e, places)
	work(t, e, places, coretest.Model(
		coretest.CallTools(model.ToolCall{ID: "1", Name: "list_dir", Args: `{"path":"."}`}), coretest.Turn{Text: "Done.", Usage: model.Usage{Input: 100, Output: 10}}, coretest.Say("More."),
		coretest.CallTools(model.ToolCall{ID: "2", Name: "write_file", Args: `{"file_path":"sub/a.txt","content":"hello\n"}`}), coretest.Say("Written."), coretest.Say("Moved."),
	))
	life(t, api)
	results(t, api, serve(t, c, e, nil))
	moves(t, e, api)
	refusals(t, api)
	elsewhere(t, e, api, filepath.Join(dir, "sessions", "acme", "w", "work"))
	scheduled(t, api)
	hooked(t, api)
	quotas(t, c, e)
	broken := serve(t, c, failing{e}, places)
	broken.want(503, "GET /readyz", "", "", nil)
	for route, r := range (&API{}).routes() {
		if r.scope == "" {
			continue
		}
		if got := broken.want(500, route, "s", "", sample(t, route)); strings.Contains(fmt.Sprint(got), errDown.Error()) {
			t.Errorf("%s shows what went wrong inside: %v", route, got)
		}
	}
	for route, responses := range c.responses {
		for status := range responses {
			if !c.seen[route+" "+status] {
				t.Errorf("%s never answers %s", route, status)
			}
		}
	}
	got := []string{}
	for route := range (&API{}).routes() {
		got = append(got, strings.Replace(route, "...", "", 1))
	}
	slices.Sort(got)
	if want := slices.Sorted(maps.Keys(c.responses)); !slices.Equal(got, want) {
		t.Errorf("routes %q, the document has %q", got, want)
	}
}

// life creates a session, answers its question, sends another input, and deletes it.
func life(t *testing.T, api client) {
	t.Helper()
	api.want(200, "GET /healthz", "", "", nil)
	if doc := api.want(200, "GET /v1/openapi.json", "", "", nil); doc["openapi"] != "3.1.0" {
		t.Errorf("document %v", doc["openapi"])
	}
	made := api.want(201, "POST /v1/sessions", "", "", map[string]any{"title": "T", "labels": map[string]string{"a": "b"}, "spec": 1, "content": text("Go.")})
	id := made["id"].(string)
	parked := func(e event.Event) bool {
		r, ok := e.Body.(event.Result)
		return ok && r.Outcome == string(core.StopParked)
	}
	first, cursor := api.follow(id, "", parked)
	api.until(id, service.State(core.StateParked))
	question := first[len(first)-1].Body.(event.Result).Questions[0].QID
	api.want(200, "GET /v1/sessions/{id}", id, "", nil)
	for _, list := range []map[string]any{api.want(200, "GET /v1/questions", "", "", nil), api.want(200, "GET /v1/sessions/{id}/questions", id, "", nil)} {
		if got := fmt.Sprint(list); !strings.Contains(got, question) || !strings.Contains(got, "deadline") || !strings.Contains(got, "deny") {
			t.Errorf("open questions: %s", got)
		}
	}
	api.want(400, "POST /v1/sessions/{id}/answers", id, "", map[string]any{"question": question, "choice": "perhaps"})
	answer := map[string]any{"question": question, "choice": "deny"}
	sent := api.want(202, "POST /v1/sessions/{id}/answers", id, "", answer)
	second, cursor := api.follow(id, cursor, resultOf(sent["id"].(string)))
	api.want(202, "POST /v1/sessions/{id}/commands", id, "", map[string]any{"id": "more", "type": "input", "content": text("More?")})
	third, _ := api.follow(id, cursor, resultOf("more"))
	api.until(id, service.State(core.StateIdle))
	var last event.Seq
	for _, e := range slices.Concat(first, second, third) {
		if e.Seq <= last {
			t.Errorf("event %d (%s) follows event %d", e.Seq, e.Body.Type(), last)
		}
		last = e.Seq
	}
	for range 2 {
		api.want(201, "POST /v1/sessions", "", "", map[string]any{})
	}
	page := api.want(200, "GET /v1/sessions", "", "?limit=2", nil)
	next := api.want(200, "GET /v1/sessions", "", fmt.Sprintf("?limit=2&before=%s", page["before"]), nil)
	if len(page["sessions"].([]any)) != 2 || len(next["sessions"].([]any)) != 1 {
		t.Errorf("pages %v, %v", page, next)
	}
	other := api
	other.token = "other"
	other.want(404, "GET /v1/sessions/{id}", id, "", nil)
	for _, reader := range []client{api, other} {
		if got := reader.want(200, "GET /v1/questions", "", "?limit=1", nil); len(got["questions"].([]any)) != 0 {
			t.Errorf("open questions behind the answer: %v", got)
		}
	}
	if all := other.want(200, "GET /v1/sessions", "", "", nil); len(all["sessions"].([]any)) != 0 {
		t.Errorf("another tenant sees %v", all)
	}
	countsDeleted(t, api, id)
	api.want(404, "GET /v1/sessions/{id}", id, "", nil)
}

// sample is a body that a route takes.
func sample(t *testing.T, route string) any {
	t.Helper()
	if strings.HasSuffix(route, "webhooks") {
		return map[string]any{"url": "https://bot.invalid/hook", "events": []string{service.EventTurn}}
	}
	if strings.HasSuffix(route, "schedules") {
		return map[string]any{"cron": "0 3 29 2 *", "content": text("Go.")}
	}
	if strings.HasSuffix(route, "commands") {
		return map[string]any{"type": "continue"}
	}
	if strings.HasPrefix(route, "PUT") {
		return archive(t, logOf(t, "s"), nil, nil)
	}
	return map[string]any{}
}

// refusals makes each request that is refused.
func refusals(t *testing.T, api client) {
	t.Helper()
	api.want(201, "POST /v1/sessions", "", "", map[string]any{"id": "s"})
	api.want(409, "POST /v1/sessions", "", "", map[string]any{"id": "s"})
	api.want(409, "POST /v1/sessions/{id}/answers", "s", "", map[string]any{"question": "q", "choice": "once"})
	long := `{"title":"` + strings.Repeat("x", maxBody) + `"}`
	for route, r := range (&API{}).routes() {
		stranger, weak, elsewhere, named, page := api, api, api, api, api
		stranger.token, weak.token, elsewhere.host, named.host = "guess", "none", "evil.example", "agents.example:8080"
		elsewhere.want(421, route, "s", "", nil)
		for _, page.origin = range []string{"https://evil.example", "null", "http://localhost:1"} {
			page.want(403, route, "s", "", nil)
		}
		if r.scope == "" {
			named.origin = "https://agents.example:8080"
			named.want(200, route, "s", "", nil)
			continue
		}
		stranger.want(401, route, "s", "", nil)
		weak.want(403, route, "s", "", nil)
		method, _, _ := strings.Cut(route, " ")
		if method == http.MethodPost {
			for _, body := range []string{"", "{", "[]", `{"extra":1}`, `{"type":"rewind"}`, `{} {}`, `{"type":"input"}`} {
				api.want(400, route, "s", "", body)
			}
			api.want(413, route, "s", "", long)
		}
		if strings.Contains(route, "/sessions/{id}") && method != http.MethodPut {
			api.want(404, route, "missing", "", sample(t, route))
			api.want(400, route, "a.b", "", sample(t, route))
		}
	}
	api.want(400, "POST /v1/sessions", "", "", `{"content":[{"type":"text"}]}`)
	for body, want := range map[string]string{
		`[]`: "the body cannot be of type array", `{"workspace":{"git":{}}}`: "workspace.git cannot be of type object", `{"title":1}`: "title cannot be of type number",
	} {
		if got := fmt.Sprint(api.want(400, "POST /v1/sessions", "", "", body)); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", body, got, want)
		}
	}
	api.want(400, "POST /v1/sessions/{id}/commands", "s", "", `{"type":"input","content":[{"type":"text"}]}`)
	for _, q := range []string{"?limit=0", "?limit=201", "?limit=x"} {
		api.want(400, "GET /v1/sessions", "", q, nil)
		api.want(400, "GET /v1/questions", "", q, nil)
	}
	for _, q := range []string{"?cursor=x", "?agent=a.b", "?agent=..%2Fs", "?agent=*"} {
		api.want(400, "GET /v1/sessions/{id}/events", "s", q, nil)
	}
	for _, id := range []string{"a b", "webhook-1"} {
		api.want(400, "POST /v1/sessions", "", "", map[string]any{"id": id})
	}
	api.want(400, "POST /v1/sessions/{id}/commands", "s", "", map[string]any{"type": "answer"})
}

// failing is an engine that is down.
type failing struct{ service.Engine }

var errDown = errors.New("secret detail: the server is down")

func (failing) Create(context.Context, service.Session) error { return errDown }
func (failing) Get(context.Context, string, string) (service.Session, error) {
	return service.Session{}, errDown
}

func (failing) List(context.Context, service.Filter) ([]service.Session, error) {
	return nil, errDown
}

func (failing) Value(context.Context, string, string) ([]byte, uint64, error) { return nil, 0, errDown }

func (failing) Watch(context.Context, string, string, uint64) iter.Seq2[service.Record, error] {
	return func(func(service.Record, error) bool) {}
}
