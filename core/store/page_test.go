package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
)

func TestPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []string
	changed := time.Now().Add(-time.Hour)
	for i := range 7 {
		id := fmt.Sprintf("session-%d", i)
		j, err := store.Create(dir, id, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cwd := "/work"
		if i == 3 {
			cwd = "/elsewhere"
		} else {
			want = append(want, id)
		}
		if err := j.Append(t.Context(), event.Event{V: event.Version, Seq: 1, Time: changed, Session: id, Body: event.SessionStart{Cwd: cwd}}); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, id+".jsonl"), changed, changed); err != nil { // all at once: the ID decides
			t.Fatal(err)
		}
	}
	var got []string
	cursor, pages := "", 0
	for {
		page, next, err := store.Page(dir, cursor, 2, func(s store.Summary) bool { return s.Cwd == "/work" })
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page {
			got = append(got, s.ID)
		}
		if pages++; next == "" {
			break
		}
		cursor = next
	}
	if !slices.Equal(got, want) || pages != 3 {
		t.Errorf("%d pages: %v", pages, got)
	}
	if _, _, err := store.Page(dir, "x", 2, nil); err == nil {
		t.Error("a cursor from nowhere is accepted")
	}
}
