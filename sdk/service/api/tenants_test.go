package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// countsDeleted reads the usage and the metrics, and deletes the session.
func countsDeleted(t *testing.T, api client, id string) {
	t.Helper()
	used := func() string {
		return fmt.Sprint(api.want(200, "GET /v1/usage", "", "", nil)["used"])
	}
	before := used()
	if !strings.Contains(before, "input:100 ") || !strings.Contains(before, "output:10]") {
		t.Errorf("used %s", before)
	}
	numbers := get(t, api, "/metrics")
	for _, line := range []string{`agent_sessions{tenant="acme",state="idle"} 3`, `agent_open_questions{tenant="acme"} 0`, `agent_tokens_today{tenant="acme"} 110`, `agent_requests_total{route="POST /v1/sessions",status="201"} 3`} {
		if !strings.Contains(numbers, line+"\n") {
			t.Errorf("the metrics lack %s:\n%s", line, numbers)
		}
	}
	api.want(204, "DELETE /v1/sessions/{id}", id, "", nil)
	if after := used(); after != before {
		t.Errorf("used %s, and %s before a session was deleted", after, before)
	}
}

// get returns the text of an answer.
func get(t *testing.T, api client, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+api.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	api.contract.check("GET "+path, res, text)
	return string(text)
}

// quotas uses up each of a tenant's, and reads the audit log of it.
func quotas(t *testing.T, c *contract, e service.Engine) {
	t.Helper()
	in := map[string]any{"content": text("Go.")}
	more := map[string]any{"type": "input", "content": text("Go.")}
	for _, q := range []service.Quota{{Tokens: 1}, {Sessions: 1}, {Sessions: 100, Running: 1}} {
		api := serve(t, c, e, nil, func(o *Options) { o.Quotas = service.NewQuotas(e, map[string]service.Quota{"acme": q}) })
		switch {
		case q.Tokens > 0: // used up
			api.want(429, "POST /v1/sessions", "", "", in)
			api.want(429, "POST /v1/sessions/{id}/commands", "s", "", more)
			api.want(202, "POST /v1/sessions/{id}/commands", "s", "", map[string]any{"type": "cancel"})
			api.want(201, "POST /v1/sessions", "", "", map[string]any{})
		case q.Sessions == 1:
			api.want(429, "POST /v1/sessions", "", "", map[string]any{})
			api.want(429, "PUT /v1/sessions/{id}", "m4", "", archive(t, logOf(t, "m4"), nil, nil))
			other := api
			other.token = "other"
			other.want(201, "POST /v1/sessions", "", "", map[string]any{})
		default: // the first one runs, as this process started it
			api.want(201, "POST /v1/sessions", "", "", in)
			api.want(429, "POST /v1/sessions", "", "", in)
		}
	}
	var audit bytes.Buffer
	api := serve(t, c, e, nil, func(o *Options) { o.Audit = &audit })
	stranger := api
	stranger.token = "guess"
	stranger.want(401, "GET /v1/sessions", "", "", nil)
	api.want(200, "GET /v1/sessions", "", "", nil)
	api.want(202, "POST /v1/sessions/{id}/commands", "s", "", map[string]any{"type": "cancel", "reason": "private words"})
	lines := strings.Split(strings.TrimSpace(audit.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"route":"GET /v1/sessions","status":401`) ||
		!strings.Contains(lines[1], `"tenant":"acme","token":"bot"`) || !strings.Contains(lines[1], `"route":"POST /v1/sessions/{id}/commands","session":"s","status":202`) {
		t.Errorf("the audit log is %q", lines)
	}
	if text := audit.String(); strings.Contains(text, "guess") || strings.Contains(text, "private") {
		t.Errorf("the audit log has secrets: %s", text)
	}
}

// scheduled makes as many schedules as are possible.
func scheduled(t *testing.T, api client) {
	t.Helper()
	in := map[string]any{"id": "nightly", "cron": "0 3 29 2 *", "content": text("Go."), "workspace": map[string]string{"directory": "new"}}
	if made := api.want(201, "POST /v1/schedules", "", "", in); !strings.Contains(fmt.Sprint(made["next"]), "T03:00:00Z") {
		t.Errorf("made %v", made)
	}
	api.want(409, "POST /v1/schedules", "", "", in)
	for key, value := range map[string]any{"cron": "sometimes", "content": nil, "id": "a b", "last": "s", "workspace": map[string]string{"directory": "/etc"}} {
		wrong := maps.Clone(in)
		wrong[key] = value
		api.want(400, "POST /v1/schedules", "", "", wrong)
	}
	delete(in, "id")
	for range maxSchedules - 1 {
		api.want(201, "POST /v1/schedules", "", "", in)
	}
	api.want(429, "POST /v1/schedules", "", "", in)
	api.want(204, "DELETE /v1/schedules/{id}", "nightly", "", nil)
	api.want(404, "DELETE /v1/schedules/{id}", "nightly", "", nil)
	if list := api.want(200, "GET /v1/schedules", "", "", nil); len(list["schedules"].([]any)) != maxSchedules-1 {
		t.Errorf("%d schedules", len(list["schedules"].([]any)))
	}
	other := api
	other.token = "other"
	if list := other.want(200, "GET /v1/schedules", "", "", nil); len(list["schedules"].([]any)) != 0 {
		t.Errorf("another tenant has %v", list)
	}
}

// hooked makes as many webhooks as are possible.
func hooked(t *testing.T, api client) {
	t.Helper()
	in := map[string]any{"id": "bot", "url": "https://bot.invalid/hook", "events": service.WebhookEvents()}
	if made := api.want(201, "POST /v1/webhooks", "", "", in); !strings.HasPrefix(fmt.Sprint(made["secret"]), "whsec_") {
		t.Errorf("made %v", made)
	}
	api.want(409, "POST /v1/webhooks", "", "", in)
	for _, address := range []string{"", "bot", "bot.invalid/hook", "ftp://bot.invalid/", "https://", "https://user:secret@bot.invalid/", "https://bot invalid/"} {
		wrong := maps.Clone(in)
		wrong["url"] = address
		if got := api.want(400, "POST /v1/webhooks", "", "", wrong); !strings.Contains(fmt.Sprint(got), "url") {
			t.Errorf("the refusal of %q does not name it: %v", address, got)
		}
	}
	for key, value := range map[string]any{"url": "https://127.0.0.1/", "events": []string{"other"}, "id": strings.Repeat("x", 125), "secret": "mine", "pending": 1, "lastError": "mine"} {
		wrong := maps.Clone(in)
		wrong[key] = value
		api.want(400, "POST /v1/webhooks", "", "", wrong)
	}
	runs := api
	runs.token = "runs"
	delete(in, "id")
	runs.want(403, "POST /v1/webhooks", "", "", in)
	for range maxWebhooks - 1 {
		api.want(201, "POST /v1/webhooks", "", "", in)
	}
	api.want(429, "POST /v1/webhooks", "", "", in)
	api.want(204, "DELETE /v1/webhooks/{id}", "bot", "", nil)
	api.want(404, "DELETE /v1/webhooks/{id}", "bot", "", nil)
	list := api.want(200, "GET /v1/webhooks", "", "", nil)
	if len(list["webhooks"].([]any)) != maxWebhooks-1 || strings.Contains(fmt.Sprint(list), "whsec_") {
		t.Errorf("webhooks %v", list)
	}
	for _, h := range list["webhooks"].([]any) { // nothing is to be called
		api.want(204, "DELETE /v1/webhooks/{id}", h.(map[string]any)["id"].(string), "", nil)
	}
	other := api
	other.token = "other"
	if list := other.want(200, "GET /v1/webhooks", "", "", nil); len(list["webhooks"].([]any)) != 0 {
		t.Errorf("another tenant has %v", list)
	}
}

// places has workspaces.
func places(t testing.TB) (r *workspace.Root, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "workspaces")
	r, err := workspace.Open(workspace.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return r, dir
}

// results lets a session write a file, and gets that.
func results(t *testing.T, api, without client) {
	t.Helper()
	in := map[string]any{"id": "w", "content": text("Write."), "workspace": map[string]string{"directory": "new"}}
	without.want(400, "POST /v1/sessions", "", "", in)
	api.want(201, "POST /v1/sessions", "", "", in)
	log, cursor := api.follow("w", "", func(e event.Event) bool { _, is := e.Body.(event.Question); return is })
	sent := api.want(202, "POST /v1/sessions/{id}/answers", "w", "", map[string]any{"question": log[len(log)-1].Body.(event.Question).QID, "choice": "once"})
	api.follow("w", cursor, resultOf(sent["id"].(string)))
	d := api.want(200, "GET /v1/sessions/{id}/diff", "w", "", nil)
	if got := fmt.Sprint(d["files"]); !strings.Contains(got, "path:sub/a.txt") || !strings.Contains(got, "+hello") {
		t.Errorf("the difference is %v", d)
	}
	api.want(200, "GET /v1/sessions/{id}/files/{path...}", "w|sub/a.txt", "", nil)
	for _, name := range []string{"missing", "sub", "..%2fworkspace.json", "sub%2f..%2f..%2f..%2fid"} {
		api.want(404, "GET /v1/sessions/{id}/files/{path...}", "w|"+name, "", nil)
	}
	without.want(404, "GET /v1/sessions/{id}/diff", "w", "", nil)
	api.want(200, "GET /v1/sessions/{id}", "w", "", nil)
}

// elsewhere asks for what is on another machine, or too large.
func elsewhere(t *testing.T, e service.Engine, api client, dir string) {
	t.Helper()
	file := "GET /v1/sessions/{id}/files/{path...}"
	s, err := e.Get(t.Context(), "acme", "w")
	if err != nil {
		t.Fatal(err)
	}
	large, err := os.Create(filepath.Join(dir, "large"))
	if err == nil {
		err = errors.Join(large.Truncate(workspace.MaxFile+1), large.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	api.want(413, file, "w|large", "", nil)
	s.Place = "another"
	if err := e.Update(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	api.want(409, file, "w|sub/a.txt", "", nil)
	api.want(409, "GET /v1/sessions/{id}/diff", "w", "", nil)
}
