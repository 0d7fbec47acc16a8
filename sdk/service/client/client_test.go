package client

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/api"
	"github.com/seed-009c0928/agent/sdk/service/jetstream"
)

// start runs a service in this process: its API at the URL, a worker, and an engine.
// Calls need approval. Cut ends all connections.
func start(t *testing.T, p model.Provider) (url string, cut func()) {
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
	dir := t.TempDir()
	w, err := service.NewWorker(service.WorkerOptions{Engine: db, Open: func(ctx context.Context, _ service.Session, base agent.SessionOptions) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: dir, Policy: coretest.FixedPolicy(core.Ask)})
		if err != nil {
			return host.Opened{}, err
		}
		base.Provider = p
		session, err := a.NewSession(ctx, base)
		return host.Opened{Session: session, Close: a.Close}, err
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
	a, err := api.New(api.Options{
		Engine: db, MaxArchive: 1 << 20, Tokens: []api.Token{
			{Hash: api.Hash("all"), Tenant: "acme", Scopes: []api.Scope{api.ScopeRead, api.ScopeRun, api.ScopeAnswer}}, {Hash: api.Hash("none"), Tenant: "acme"},
		},
		Check: func(s service.Session) error {
			if string(s.Spec) == `"wrong"` {
				return errors.New("the spec is wrong")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL, server.CloseClientConnections
}

func connect(t *testing.T, url, token string) *Client {
	t.Helper()
	c, err := New(Options{URL: url, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// until reads events behind a cursor to the result of a run. On the way it calls seen.
func until(t *testing.T, c *Client, id, run string, cursor uint64, seen func(service.Record)) (event.Result, uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for r, err := range c.Events(ctx, id, cursor) {
		if err != nil {
			t.Fatal(err)
		}
		if cursor = max(cursor, r.Cursor); seen != nil {
			seen(r)
		}
		if result, ok := r.Event.Body.(event.Result); ok && result.Run == run {
			return result, cursor
		}
	}
	panic("not reached")
}

// TestLife creates a session, answers its question, sends another input and deletes it,
// with a connection that is lost after every event.
func TestLife(t *testing.T) {
	url, cut := start(t, coretest.Model(
		coretest.CallTools(model.ToolCall{ID: "1", Name: "list_dir", Args: `{"path":"."}`}), coretest.Say("Done."), coretest.Say("More."),
	))
	c := connect(t, url, "all")
	ctx := t.Context()
	s, err := c.Create(ctx, NewSession{Title: "T", Labels: map[string]string{"a": "b"}, Content: Text("Go.")})
	if err != nil {
		t.Fatal(err)
	}
	var kept []event.Seq
	seen := func(r service.Record) {
		if r.Event.IsDelta() != (r.Cursor == 0) {
			t.Errorf("%s %d has cursor %d", r.Event.Body.Type(), r.Event.Seq, r.Cursor)
		}
		if r.Cursor > 0 {
			kept = append(kept, r.Event.Seq)
			cut()
		}
	}
	parked, cursor := until(t, c, s.ID, s.ID, 0, seen)
	if len(parked.Questions) != 1 {
		t.Fatalf("result %+v", parked)
	}
	answer := service.Command{Command: host.Command{Type: "answer", Question: parked.Questions[0].QID, Choice: core.ChoiceDeny}}
	id, err := c.Send(ctx, s.ID, answer)
	if err != nil {
		t.Fatal(err)
	}
	result, cursor := until(t, c, s.ID, id, cursor, seen)
	if result.Text != "Done." || len(result.Denied) != 1 {
		t.Errorf("result %+v", result)
	}
	if id, err = c.Input(ctx, s.ID, "More?"); err != nil {
		t.Fatal(err)
	}
	if result, _ = until(t, c, s.ID, id, cursor, seen); result.Text != "More." {
		t.Errorf("result %+v", result)
	}
	connected := kept
	kept, cut = nil, func() {}
	if until(t, c, s.ID, id, 0, seen); !slices.Equal(kept, connected) {
		t.Errorf("with lost connections: events %v, else %v", connected, kept)
	}
	if got, err := c.Get(ctx, s.ID); err != nil || got.Title != "T" || got.Labels["a"] != "b" {
		t.Errorf("session %+v, %v", got, err)
	}
	if list, next, err := c.List(ctx, "", 1); err != nil || len(list) != 1 || next != s.ID {
		t.Errorf("list %+v, %q, %v", list, next, err)
	}
	if err := c.Cancel(ctx, s.ID, "enough"); err != nil {
		t.Error(err)
	}
	if err := c.Delete(ctx, s.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(ctx, s.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a deleted session: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	url, _ := start(t, coretest.Model())
	c, ctx := connect(t, url, "all"), t.Context()
	if _, err := c.Create(ctx, NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(ctx, NewSession{ID: "s"}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the same session again: %v", err)
	}
	if _, err := c.Create(ctx, NewSession{Spec: []byte(`"wrong"`)}); err == nil || err.Error() != "the spec is wrong" {
		t.Errorf("a wrong spec: %v", err)
	}
	for _, err := range c.Events(ctx, "missing", 0) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("events of a missing session: %v", err)
		}
	}
	for token, status := range map[string]int{"none": http.StatusForbidden, "guess": http.StatusUnauthorized} {
		var refused *Error
		if _, _, err := connect(t, url, token).List(ctx, "", 0); !errors.As(err, &refused) || refused.Status != status {
			t.Errorf("token %s: %v", token, err)
		}
	}
}

func TestNew(t *testing.T) {
	for url, want := range map[string]string{
		"": "use a URL such as", "agents.example:1": "use a URL such as", "ftp://x": "use a URL such as",
		"http://agents.example": "in the clear", "https://user@agents.example": "leave that out", "http://127.0.0.1/?a": "leave that out",
		"https://agents.example": "", "http://localhost:1": "", "http://[::1]:1/": "",
	} {
		_, err := New(Options{URL: url, Token: "t"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", url, err, want)
		}
	}
	if _, err := New(Options{URL: "http://localhost"}); err == nil {
		t.Error("no token is no error")
	}
}

// TestUnreachable has nothing, and then no service, at the address.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	_ = l.Close()
	c, err := New(Options{URL: url, Token: "t", Patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, err := range c.Events(t.Context(), "s", 0) {
		if err == nil || !strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("events: %v", err)
		}
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if _, err := connect(t, other.URL, "t").Get(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), "is it one of agent serve?") {
		t.Errorf("another server: %v", err)
	}
}
