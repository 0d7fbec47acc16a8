package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

// writeSession makes a log that was changed so many hours after testTime.
func writeSession(t *testing.T, dir, id string, hours int, events ...event.Event) {
	t.Helper()
	j, err := store.Create(dir, id, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, j, events...)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	setTime(t, j.Path(), hours)
}

func setTime(t *testing.T, path string, hours int) {
	t.Helper()
	at := testTime.Add(time.Duration(hours) * time.Hour)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestListAndLatest(t *testing.T) {
	dir := t.TempDir()
	start := func(cwd string) event.Event { return newEvent(1, event.SessionStart{Cwd: cwd}) }
	child := start("/a")
	child.Parent = "one"
	writeSession(t, dir, "one", 1, start("/a"), newEvent(2, event.Prompt{Text: strings.Repeat("p", 100_000)}),
		newEvent(3, event.User{Content: model.Parts{model.Text{Text: "\n  fix the bug  \nplease"}, model.Text{Text: "added"}}}), userEvent(4, "later"))
	writeSession(t, dir, "two", 3, start("/b"), userEvent(2, strings.Repeat("ä", 300)))
	writeSession(t, dir, "three", 2, start("/a"))
	writeSession(t, dir, "sub", 9, child, userEvent(2, "for the subagent"))
	writeSession(t, dir, "empty", 8)
	for name, content := range map[string]string{
		"bad.jsonl": "no JSON\n", "torn.jsonl": `{"v":1,"se`, "not an id.jsonl": "x\n", "one.jsonl.torn": "x", "note.txt": "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := store.List(dir)
	if err == nil || !errors.Is(err, store.ErrCorrupt) || strings.Count(err.Error(), "\n") != 0 ||
		!strings.HasPrefix(err.Error(), filepath.Join(dir, "bad.jsonl")+":1: ") {
		t.Errorf("the bad file is reported as %v", err)
	}
	var ids []string
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	if got := strings.Join(ids, " "); got != "sub two three one" {
		t.Fatalf("listed %s", got)
	}
	one := list[3]
	if one.Text != "fix the bug" || one.Cwd != "/a" || !one.Created.Equal(testTime) || !one.Time.Equal(testTime.Add(time.Hour)) ||
		one.Size < 100_000 || one.Path != filepath.Join(dir, "one.jsonl") || list[0].Parent != "one" {
		t.Errorf("got %+v", one)
	}
	if want := strings.Repeat("ä", 199) + "…"; list[1].Text != want {
		t.Errorf("text %q", list[1].Text)
	}

	for cwd, want := range map[string]string{"/a": "three", "/b": "two"} {
		if got, err := store.Latest(dir, cwd); err != nil || got.ID != want {
			t.Errorf("Latest(%s) = %s, %v", cwd, got.ID, err)
		}
	}
	if _, err := store.Latest(dir, "/c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Latest of a directory without sessions: %v", err)
	}
	if list, err := store.List(filepath.Join(dir, "none")); list != nil || err != nil {
		t.Errorf("a directory that does not exist: %v, %v", list, err)
	}
}
