package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// logOf is a log of one input and its result, and more of it.
func logOf(t *testing.T, id string, more ...event.Body) string {
	t.Helper()
	var b strings.Builder
	bodies := append([]event.Body{
		event.SessionStart{Cwd: "/somewhere"},
		event.User{Content: model.TextParts("Go."), Run: "r"},
		event.Message{Content: model.TextParts("Done.")},
		event.Result{Run: "r", Outcome: "done", Usage: model.Usage{Input: 100, Output: 10}},
	}, more...)
	for i, body := range bodies {
		line, err := json.Marshal(event.Event{V: event.Version, Seq: event.Seq(i + 1), Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Session: id, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// archive is a session that moves; change changes what is said of it.
func archive(t *testing.T, log string, change func(m *service.Moved), write func(a *service.Archive) error) string {
	t.Helper()
	sum := sha256.Sum256([]byte(log))
	m := service.Moved{Title: "T", Digest: hex.EncodeToString(sum[:])}
	if change != nil {
		change(&m)
	}
	var b bytes.Buffer
	a, err := service.NewArchive(&b, m)
	if err == nil {
		err = a.Log("", int64(len(log)), strings.NewReader(log))
	}
	if err == nil && write != nil {
		err = write(a)
	}
	if err == nil {
		err = a.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// moves has sessions move here: whole, cut off and repeated, longer, and wrong ones.
func moves(t *testing.T, e service.Engine, api client) {
	t.Helper()
	const route = "PUT /v1/sessions/{id}"
	log := logOf(t, "m")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("carried\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	withFiles := func(m *service.Moved) { m.Files, m.Workspace = true, workspace.Spec{Directory: workspace.New} }
	whole := archive(t, log, withFiles, func(a *service.Archive) error {
		if err := a.Output("context:m/call", 4, strings.NewReader("text")); err != nil {
			return err
		}
		return a.File(files, "a.txt")
	})
	api.want(400, route, "m", "", whole[:len(whole)-2048]) // its end is missing
	api.want(404, "GET /v1/sessions/{id}", "m", "", nil)
	made := api.want(201, route, "m", "", whole)
	if usage, err := json.Marshal(made["usage"]); err != nil || !strings.Contains(string(usage), `"2026-03-04"`) || made["state"] != "idle" {
		t.Errorf("the session that came: %v", made)
	}
	api.want(200, route, "m", "", whole)
	api.want(409, route, "m", "", archive(t, logOf(t, "m", event.User{Run: "other"}), nil, nil))
	if res, _ := api.request("GET /v1/sessions/{id}/files/{path...}", "m|a.txt", "", nil); res.StatusCode != 200 || res.ContentLength != int64(len("carried\n")) {
		t.Errorf("the file that came: %s", res.Status)
	}
	if out, err := e.Store("acme", "m").Open(t.Context(), "context:m/call"); err != nil {
		t.Errorf("the output that came: %v", err)
	} else {
		_ = out.Close()
	}
	sent := api.want(202, "POST /v1/sessions/{id}/commands", "m", "", map[string]any{"type": "input", "content": text("More?")})
	all, _ := api.follow("m", "", resultOf(sent["id"].(string)))
	if first, ok := all[0].Body.(event.SessionStart); !ok || first.Cwd != "/somewhere" {
		t.Errorf("the log begins with %+v", all[0])
	}
	api.until("m", "idle")
	api.want(200, route, "m", "", whole)

	small := serve(t, api.contract, e, nil, func(o *Options) { o.MaxArchive = 1 << 20 })
	big := archive(t, log, nil, func(a *service.Archive) error {
		return a.Output("context:m/call", 1<<20, strings.NewReader(strings.Repeat("x", 1<<20)))
	})
	if got := small.want(413, route, "big", "", big); !strings.Contains(fmt.Sprint(got), "more than 1 MiB") {
		t.Errorf("too large: %v", got)
	}
	small.want(404, "GET /v1/sessions/{id}", "big", "", nil)
	api.want(201, route, "big", "", big) // what was left of it there is no obstacle
	api.want(204, "DELETE /v1/sessions/{id}", "big", "", nil)

	runs := api
	runs.token = "runs"
	runs.want(403, route, "m2", "", whole)
	for name, bad := range map[string]string{
		"other digest": archive(t, log, func(m *service.Moved) { m.Digest = "x" }, nil),
		"no log":       archive(t, "", nil, nil)[:1024],
		"wrong log":    archive(t, "{}\n", nil, nil),
		"out of order": archive(t, log+log, nil, nil),
		"path out":     strings.Replace(whole, "work/a.txt", "work/../a", 1),
		"unknown":      archive(t, log, nil, func(a *service.Archive) error { return a.Output("context:../x", 0, strings.NewReader("")) }),
		"blob":         archive(t, log, nil, func(a *service.Archive) error { return a.Output("abc", 1, strings.NewReader("x")) }),
		"files":        archive(t, log, func(m *service.Moved) { m.Files = true }, nil),
	} {
		if got := api.want(400, route, "m3", "", bad); got["error"] == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	api.want(404, "GET /v1/sessions/{id}", "m3", "", nil)
}
