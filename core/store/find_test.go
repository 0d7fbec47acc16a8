package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	ids := []string{"0192aaaa-1111", "0192aaaa-1122", "0192bbbb-0000", "0192", "zz"}
	for _, id := range ids {
		writeSession(t, dir, id, 1, newEvent(1, event.SessionStart{Cwd: "/a"}))
	}
	tests := []struct {
		prefix, want string
		err          error
	}{
		{"0192aaaa-1122", "0192aaaa-1122", nil},
		{"0192aaaa-112", "0192aaaa-1122", nil},
		{"0192b", "0192bbbb-0000", nil},
		{"0192", "0192", nil}, // a complete id, even if others begin with it
		{"z", "zz", nil},
		{"0192a", "", store.ErrAmbiguous},
		{"0193", "", fs.ErrNotExist},
		{"", "", fs.ErrInvalid},
		{"../zz", "", fs.ErrInvalid},
		{"*", "", fs.ErrInvalid},
	}
	for _, tt := range tests {
		got, err := store.Find(dir, tt.prefix)
		if got != tt.want || !errors.Is(err, tt.err) || tt.err == nil && err != nil {
			t.Errorf("Find(%q) = %q, %v", tt.prefix, got, err)
		}
	}
	_, err := store.Find(dir, "0192a")
	if err == nil || !strings.Contains(err.Error(), "0192aaaa-1111, 0192aaaa-1122;") {
		t.Errorf("the sessions that are meant are not listed: %v", err)
	}
	if _, err := store.Find(filepath.Join(dir, "none"), "0192"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that does not exist: %v", err)
	}
}

func TestAmbiguousErrorIsBounded(t *testing.T) {
	err := &store.AmbiguousError{Prefix: "a", IDs: make([]string, 100)}
	if got := err.Error(); !strings.Contains(got, "and 92 more") || len(got) > 200 {
		t.Errorf("got %s", got)
	}
}

// TestShortIDs: Find takes the short ids of a list.
func TestShortIDs(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{
		"0192aaaa-1111-2": "0192aaaa-111",
		"0192aaaa-1122-2": "0192aaaa-112",
		"0192aaab-1122-2": "0192aaab",
		"0192aaac":        "0192aaac",   // also the beginning of another
		"0192aaac-1122-2": "0192aaac-1", // not 0192aaac-, which looks cut off
		"short":           "short",
	}
	for id := range want {
		writeSession(t, dir, id, 1, newEvent(1, event.SessionStart{Cwd: "/a"}))
	}
	list, err := store.List(dir)
	if err != nil || len(list) != len(want) {
		t.Fatalf("%d sessions, %v", len(list), err)
	}
	for _, s := range list {
		if s.Short != want[s.ID] {
			t.Errorf("%s is shortened to %s, want %s", s.ID, s.Short, want[s.ID])
		}
		if got, err := store.Find(dir, s.Short); err != nil || got != s.ID {
			t.Errorf("Find(%s) = %s, %v; want %s", s.Short, got, err, s.ID)
		}
	}
}

func TestStat(t *testing.T) {
	dir := t.TempDir()
	writeSession(t, dir, "one", 2, newEvent(1, event.SessionStart{Cwd: "/a"}), userEvent(2, "hello"))
	writeSession(t, dir, "empty", 2)
	s, err := store.Stat(dir, "one")
	if err != nil || s.ID != "one" || s.Cwd != "/a" || s.Text != "hello" || !s.Time.Equal(testTime.Add(2*time.Hour)) || s.Size == 0 {
		t.Errorf("got %+v, %v", s, err)
	}
	if s, err := store.Stat(dir, "empty"); err != nil || s.ID != "empty" {
		t.Errorf("a log without records: %+v, %v", s, err)
	}
	if _, err := store.Stat(dir, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no session: %v", err)
	}
	if _, err := store.Stat(dir, "../one"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("no id: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.jsonl"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := store.Stat(dir, "bad"); !errors.Is(err, store.ErrCorrupt) || s.ID != "bad" {
		t.Errorf("a damaged log: %+v, %v", s, err)
	}
}

// BenchmarkList lists 1,000 sessions whose logs begin as a real one's does.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	prompt := strings.Repeat("You are a coding agent. \"Quotes\" and\nlines.\n", 200)
	for i := range 1000 {
		id := fmt.Sprintf("0198%04x-aaaa-7bbb-8ccc-%012x", i, i)
		j, err := store.Create(dir, id, store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range []event.Event{
			newEvent(1, event.SessionStart{Cwd: "/work/project", Model: "m"}), newEvent(2, event.Prompt{Text: prompt}),
			userEvent(3, "Find out why the test fails, and fix it"), userEvent(4, strings.Repeat("x", 10_000)),
		} {
			e.Session = id
			if err := j.Append(b.Context(), e); err != nil {
				b.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		list, err := store.List(dir)
		if err != nil || len(list) != 1000 {
			b.Fatal(len(list), err)
		}
	}
}
