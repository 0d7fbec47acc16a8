package task

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
)

// TestIssues reads an export of the tracker: what is ready there comes first, and what
// it does not show as ready until others are done needs these.
func TestIssues(t *testing.T) {
	data, err := os.ReadFile("testdata/beads/export.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	memoryFirst := lines[len(lines)-1] + "\n" + string(data)
	for _, text := range []string{string(data), memoryFirst} {
		got, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if want := "Sums are right\n\nAll sums of the calculator are right.\n\nRelease"; got.Description != want {
			t.Errorf("the task is %q, want %q", got.Description, want)
		}
		steps := map[string][]string{}
		for _, s := range got.Steps {
			steps[s.Name] = s.Needs
		}
		if want := map[string][]string{"demo-lkf.1": nil, "demo-lkf.2": {"demo-lkf.1"}, "demo-8lh.1": {"demo-lkf.1", "demo-lkf.2"}}; !reflect.DeepEqual(steps, want) {
			t.Errorf("steps %q, want %q", steps, want)
		}
		first := got.Steps[0]
		if first.Title != "Mend add\nDesign: Only add.sh\nAcceptance criteria: add 1 2 is 3" || len(first.Files) != 1 || first.Files[0] != "add.sh" {
			t.Errorf("the first step is %q, files %q", first.Title, first.Files)
		}
	}
	got, err := parse(`{"id":"x-1","title":"One","metadata":"text","priority":1}`)
	if err != nil || len(got.Steps) != 1 || len(got.Steps[0].Files) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		lines[len(lines)-1]: "no bead is left to work on",
		`{"id":"x-1","title":"One","status":"deferred"}`:   "no bead is left to work on",
		`{"id":"x-1","title":"One"}` + "\n" + `{"id":"y"}`: "bead 2: id or title is missing",
		`{"id":"x-1","title":"One"}` + "\n" + `{"id":`:     "bead 2 cannot be read",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestIssuesReturn: a task of issues is exported as these issues, with all their
// members, and only what changed is another one.
func TestIssuesReturn(t *testing.T) {
	data, err := os.ReadFile("testdata/beads/export.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	task, err := parse(string(data))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	all, err := toIssues(bead.Status{Task: task, Changed: now, Beads: []bead.Bead{
		{BeadStart: event.BeadStart{Step: "demo-lkf.1"}, State: bead.Committed, End: &event.BeadEnd{}},
		{BeadStart: event.BeadStart{Step: "demo-lkf.2"}, State: bead.Running},
	}})
	if err != nil || len(all) != 3 {
		t.Fatalf("%d issues, %v", len(all), err)
	}
	status := map[any]any{"demo-lkf.1": "closed", "demo-lkf.2": "in_progress", "demo-8lh.1": "open"}
	for i, s := range task.Steps {
		var before, after map[string]any
		text, err := json.Marshal(all[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &after); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(s.Issue), &before); err != nil {
			t.Fatal(err)
		}
		if after["status"] != status[after["id"]] || (after["closed_at"] != nil) != (after["status"] == "closed") {
			t.Errorf("%s", text)
		}
		for _, name := range []string{"status", "updated_at", "closed_at", "close_reason"} {
			delete(before, name)
			delete(after, name)
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%v, want %v", after, before)
		}
	}
}
