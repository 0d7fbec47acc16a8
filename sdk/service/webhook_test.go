package service_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
)

// received is a request to a webhook.
type received struct {
	id, body string
	signed   bool
}

// receiver answers each request with the next status, and with 204 behind the last.
func receiver(t *testing.T, secret string, status ...int) (address string, got chan received) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	got = make(chan received, 100)
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		id, mac := req.Header.Get("webhook-id"), hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, req.Header.Get("webhook-timestamp"), body)
		got <- received{id, string(body), req.Method == http.MethodPost && req.Header.Get("webhook-signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))}
		mu.Lock()
		defer mu.Unlock()
		if len(status) == 0 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status[0])
		status = status[1:]
	}))
	t.Cleanup(s.Close)
	return s.URL + "/hook?key=private", got
}

// hooked runs workers of an engine with webhooks, and returns their log when they ended.
func hooked(t *testing.T, e service.Engine, workers int, private bool, hooks ...service.Webhook) (log func() string) {
	t.Helper()
	err := service.ChangeWebhooks(t.Context(), e, tenant, func([]service.Webhook) ([]service.Webhook, error) { return hooks, nil })
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&text, nil))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	effects := filepath.Join(t.TempDir(), "effects")
	for range workers {
		w, err := service.NewWorker(service.WorkerOptions{
			Engine: e, Open: opener(t.TempDir(), effects), PrivateWebhooks: private, Logger: logger,
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { w.Run(ctx) })
	}
	log = func() string {
		cancel()
		running.Wait()
		return text.String()
	}
	t.Cleanup(func() { _ = log() })
	return log
}

// documented checks the body of a request against the OpenAPI document.
func documented(t *testing.T, r received) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas struct{ Notice jsonschema.Schema }
		}
	}
	var body any
	if err := errors.Join(json.Unmarshal(data, &doc), json.Unmarshal([]byte(r.body), &body)); err != nil {
		t.Fatal(err)
	}
	s, err := doc.Components.Schemas.Notice.Resolve(nil)
	if err == nil {
		err = s.Validate(body)
	}
	if err != nil {
		t.Errorf("%s: %v", r.body, err)
	}
}

// losing is an engine that fails to keep the first notice, as if the worker had died.
type losing struct {
	service.Engine
	once sync.Once
}

func (e *losing) Send(ctx context.Context, tenant, id string, c service.Command) (err error) {
	if service.IsWebhook(id) {
		e.once.Do(func() { err = errors.New("lost") })
	}
	if err != nil {
		return err
	}
	return e.Engine.Send(ctx, tenant, id, c)
}

// TestWebhook: a webhook is told of what happens, in order, with a signature, and again
// if it failed.
func TestWebhook(t *testing.T) {
	db, _ := engine(t)
	secret := service.NewSecret()
	address, got := receiver(t, secret, http.StatusTemporaryRedirect)
	silent, nothing := receiver(t, secret)
	log := hooked(t, &losing{Engine: db}, 3, true,
		service.Webhook{ID: "all", URL: address, Secret: secret, Events: service.WebhookEvents()},
		service.Webhook{ID: "few", URL: silent, Secret: secret, Events: []string{service.EventDeleted}})
	create(t, db, "s", core.Ask)
	send(t, db, "s", rounds("in", 1))
	first, again := <-got, <-got
	if !first.signed || !again.signed || first.id != again.id || first.body != again.body {
		t.Errorf("first %+v, then %+v", first, again)
	}
	var n struct {
		Type      string
		Timestamp time.Time
		Data      struct {
			Session, Run, State string
			Deadline            time.Time
			Questions           []struct {
				QID, Title string
				Choices    []string
			}
		}
	}
	if err := json.Unmarshal([]byte(first.body), &n); err != nil {
		t.Fatal(err)
	}
	documented(t, first)
	d := n.Data
	if n.Type != service.EventQuestion || d.Session != "s" || d.Run != "in" || d.State != "parked" || len(d.Questions) != 1 || len(d.Questions[0].Choices) == 0 || d.Deadline.IsZero() {
		t.Fatalf("notice %s", first.body)
	}
	send(t, db, "s", service.Command{ID: "no", Command: host.Command{Type: "answer", Question: d.Questions[0].QID, Choice: core.ChoiceDeny}})
	if done := <-got; !strings.Contains(done.body, `"type":"turn.done"`) || !strings.Contains(done.body, `"run":"no"`) || !strings.Contains(done.body, `"state":"idle"`) || done.id == first.id {
		t.Errorf("notice %+v", done)
	} else {
		documented(t, done)
	}
	s, err := db.Get(t.Context(), tenant, "s")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second is dropped
		if err := service.Deleting(t.Context(), db, s); err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []chan received{got, nothing} {
		if gone := <-to; !strings.Contains(gone.body, `"type":"session.deleted"`) || !gone.signed {
			t.Errorf("notice %+v", gone)
		} else {
			documented(t, gone)
		}
	}
	if text := log(); strings.Contains(text, "private") || strings.Contains(text, secret) || !strings.Contains(text, "307") {
		t.Errorf("log %s", text)
	}
	if len(got)+len(nothing) > 0 {
		t.Errorf("more: %+v", <-got)
	}
}

// TestWebhookRefused: a webhook does not reach this machine, what cannot be delivered is
// dropped in the end, and what is for a deleted webhook at once.
func TestWebhookRefused(t *testing.T) {
	db, _ := engine(t)
	secret := service.NewSecret()
	address, got := receiver(t, secret)
	h := service.Webhook{ID: "here", URL: address, Secret: secret, Events: service.WebhookEvents()}
	for _, id := range []string{h.Inbox(), service.Webhook{ID: "gone"}.Inbox()} {
		for _, text := range []string{`{"timestamp":"2020-01-01T00:00:00Z"}`, "damaged"} {
			c := service.Command{ID: map[bool]string{true: "damaged", false: "old"}[text == "damaged"], Command: host.Command{Type: "input", Content: []host.Part{{Type: "text", Text: text}}}}
			send(t, db, id, c)
		}
	}
	log := hooked(t, db, 1, false, h)
	for t.Context().Err() == nil {
		if list, err := db.Commands(t.Context(), tenant, "webhook-gone"); err != nil {
			t.Fatal(err)
		} else if len(list) == 0 {
			break
		}
	}
	noted := func(h service.Webhook) bool { return h.Pending == 0 && h.LastError != "" }
	if h := called(t, db, noted); !h.LastDelivery.IsZero() {
		t.Errorf("it is said to be delivered: %+v", h)
	}
	if text := log(); strings.Count(text, "a notice is dropped") != 2 || !strings.Contains(text, "127.0.0.1 is not on the internet") || strings.Contains(text, "private") {
		t.Errorf("log %s", text)
	}
	if len(got) > 0 {
		t.Errorf("called with %+v", <-got)
	}
}

// called returns the only webhook once it is as wanted.
func called(t *testing.T, e service.Engine, wanted func(service.Webhook) bool) service.Webhook {
	t.Helper()
	var list []service.Webhook
	waits := time.Now().Add(coretest.Patience)
	for time.Now().Before(waits) {
		var err error
		if list, err = service.ListWebhooks(t.Context(), e, tenant); err != nil || len(list) != 1 || list[0].Secret != "" {
			t.Fatalf("%+v, %v", list, err)
		}
		if wanted(list[0]) {
			return list[0]
		}
	}
	t.Fatalf("the webhook stays %+v", list)
	panic("not reached")
}

// TestWebhookNoted: a webhook tells when it was called last, what came of it and how much
// waits, without addresses in the network of the service.
func TestWebhookNoted(t *testing.T) {
	db, _ := engine(t)
	secret := service.NewSecret()
	asked, answers := make(chan struct{}, 20), make(chan int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked <- struct{}{}
		select {
		case status := <-answers:
			if status > 0 {
				w.WriteHeader(status)
				return
			}
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil || c.(*net.TCPConn).SetLinger(0) != nil || c.Close() != nil {
				t.Errorf("the connection is not reset: %v", err)
			}
		case <-req.Context().Done():
		}
	}))
	t.Cleanup(s.Close) // after the workers
	hooked(t, db, 1, true, service.Webhook{ID: "bot", URL: s.URL, Secret: secret, Events: service.WebhookEvents()})
	create(t, db, "s", core.Ask)
	gone, err := db.Get(t.Context(), tenant, "s")
	if err == nil {
		err = service.Deleting(t.Context(), db, gone)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	if h := called(t, db, func(service.Webhook) bool { return true }); h.Pending != 1 || !h.LastTry.IsZero() || h.LastError != "" {
		t.Errorf("while it is called first: %+v", h)
	}
	answers <- http.StatusServiceUnavailable
	<-asked // it does not get an answer before what follows
	failed := called(t, db, func(h service.Webhook) bool { return h.LastError != "" })
	if failed.Pending != 1 || failed.LastError != "the webhook answered 503" || !failed.LastDelivery.IsZero() {
		t.Errorf("after the first call: %+v", failed)
	}
	answers <- http.StatusNoContent
	done := called(t, db, func(h service.Webhook) bool { return h.Pending == 0 && h.LastError == "" })
	if done.LastDelivery.IsZero() || done.LastDelivery != done.LastTry || !done.LastTry.After(failed.LastTry) {
		t.Errorf("after the second call: %+v, then %+v", failed, done)
	}
	if err := service.Deleting(t.Context(), db, service.Session{Tenant: tenant, ID: "t"}); err != nil {
		t.Fatal(err)
	}
	<-asked
	answers <- 0
	lost := called(t, db, func(h service.Webhook) bool { return h.LastError != "" })
	if strings.Contains(lost.LastError, "127.0.0.1") || !lost.LastDelivery.Equal(done.LastDelivery) {
		t.Errorf("after a call that was cut: %+v", lost)
	}
}

// TestWebhookCheck refuses addresses that no webhook can have.
func TestWebhookCheck(t *testing.T) {
	for address, want := range map[string][2]bool{ // whether it is taken, and with private ones allowed
		"https://example.com/hook?key=1": {true, true}, "https://10.0.0.1/": {false, true}, "https://[::1]:8443/": {false, true}, "https://[::ffff:169.254.169.254]/": {false, true},
		"https://LOCALHOST/": {false, true}, "http://example.com/": {false, true}, "https://user:word@example.com/": {}, "ftp://example.com/": {}, "example.com": {}, "https:///x": {}, "": {},
		"https://example.com/" + strings.Repeat("x", 2048): {},
	} {
		for i, private := range []bool{false, true} {
			err := service.Webhook{URL: address, Events: service.WebhookEvents()}.Check(private)
			if (err == nil) != want[i] {
				t.Errorf("%.50s (private %v): %v", address, private, err)
			}
		}
	}
	for _, events := range [][]string{nil, {"turn.done", "turn"}} {
		if err := (service.Webhook{URL: "https://example.com", Events: events}).Check(false); err == nil {
			t.Errorf("events %q are taken", events)
		}
	}
}
