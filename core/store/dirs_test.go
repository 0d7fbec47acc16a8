package store_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
)

func newDirs(t *testing.T) store.Dirs {
	root := t.TempDir()
	return store.Dirs{Sessions: filepath.Join(root, "sessions"), Contexts: filepath.Join(root, "context")}
}

// keepOutput stores an output of a session and returns its handle.
func keepOutput(t *testing.T, d store.Dirs, id, call, text string) string {
	t.Helper()
	c, err := store.NewContext(d.Contexts, id, store.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Create(t.Context(), core.OutputMeta{Tool: "shell", Call: call, Time: testTime})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(out, text); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Handle()
}

// opened returns what a session's context has by a handle or hash.
func opened(t *testing.T, d store.Dirs, session, handle string) (string, error) {
	t.Helper()
	c, err := store.NewContext(d.Contexts, session, store.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.Open(t.Context(), handle)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return string(text), nil
}

func readLog(t *testing.T, d store.Dirs, id string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.Sessions, id+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// names lists all files below the directories.
func names(t *testing.T, d store.Dirs) []string {
	t.Helper()
	var list []string
	root := filepath.Dir(d.Sessions)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(root, path)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestFork(t *testing.T) {
	d := newDirs(t)
	writeSession(t, d.Sessions, "s", 1, sample()...)
	before := readLog(t, d, "s")
	lines := bytes.SplitAfter(before, []byte("\n"))
	tests := []struct {
		name string
		at   event.Seq
		want int // records
		err  string
	}{
		{"all", 0, 4, ""},
		{"the last", 6, 4, ""},
		{"the first", 1, 1, ""},
		{"one", 2, 2, ""},
		{"a number that a delta had", 4, 2, ""},
		{"beyond the end", 7, 0, "there is no record 7: the last one is number 6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := "fork-" + strings.ReplaceAll(tt.name, " ", "-")
			err := d.Fork(t.Context(), "s", id, tt.at)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v", err)
				}
				if list := names(t, d); slices.ContainsFunc(list, func(n string) bool { return strings.Contains(n, id) || strings.HasSuffix(n, ".new") }) {
					t.Errorf("files remain: %q", list)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := readLog(t, d, id), bytes.Join(lines[:tt.want], nil); !bytes.Equal(got, want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			j, err := store.Open(d.Sessions, id, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			appendAll(t, j, userEvent(9, "on its own"))
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if !bytes.Equal(readLog(t, d, "s"), before) {
		t.Error("the origin was changed")
	}
	if s, err := store.Stat(d.Sessions, "fork-all"); err != nil || s.Origin != "s" {
		t.Errorf("the fork's summary: %+v, %v", s, err)
	}
	if s, err := store.Stat(d.Sessions, "s"); err != nil || s.Origin != "" {
		t.Errorf("the origin's summary: %+v, %v", s, err)
	}
}

func TestForkErrors(t *testing.T) {
	d := newDirs(t)
	writeSession(t, d.Sessions, "s", 1, sample()...)
	writeSession(t, d.Sessions, "other", 1, sample()...)
	writeSession(t, d.Sessions, "late", 1, userEvent(5, "hello"))
	writeSession(t, d.Sessions, "empty", 1)
	for name, text := range map[string]string{
		"bad":   string(readLog(t, d, "late")) + "x\n",
		"newer": string(readLog(t, d, "late")) + `{"v":99,"seq":9,"id":"x","time":"2026-01-01T00:00:00Z","session":"s","required":true,"type":"novel"}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(d.Sessions, name+".jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, d)
	tests := []struct {
		id, newID string
		at        event.Seq
		is        error
		want      string
	}{
		{"none", "new", 0, fs.ErrNotExist, "fork session none"},
		{"s", "other", 0, fs.ErrExist, "session other"},
		{"s", "s", 0, fs.ErrExist, "session s"},
		{"s", "../new", 0, fs.ErrInvalid, ""},
		{"../s", "new", 0, fs.ErrInvalid, ""},
		{"bad", "new", 0, store.ErrCorrupt, "bad.jsonl:2"},
		{"newer", "new", 0, store.ErrUnknownRecord, "newer.jsonl:2"},
		{"late", "new", 3, nil, "its first record is number 5"},
		{"empty", "new", 0, nil, "the session has no records"},
	}
	for _, tt := range tests {
		err := d.Fork(t.Context(), tt.id, tt.newID, tt.at)
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Fork(%s, %s, %d): %v", tt.id, tt.newID, tt.at, err)
		}
	}
	if after := names(t, d); !slices.Equal(before, after) {
		t.Errorf("files before %q\nafter %q", before, after)
	}
	// The records before the damage can be forked.
	if err := d.Fork(t.Context(), "bad", "new", 5); err != nil {
		t.Errorf("up to the damage: %v", err)
	}
}

// TestForkOfAnOpenSession: another process may write to it meanwhile.
func TestForkOfAnOpenSession(t *testing.T) {
	d := newDirs(t)
	j := create(t, d.Sessions, store.Options{})
	appendAll(t, j, sample()...)
	f, err := os.OpenFile(j.Path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"v":1,"seq":7,"ty`); err != nil { // half a record
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Fork(t.Context(), "s", "new", 0); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Count(readLog(t, d, "new"), []byte("\n")); got != 4 {
		t.Errorf("the fork has %d records", got)
	}
}

// TestForkKeepsOutputs: a fork opens the handles in its records, even those of
// the origin's origin, and even when these sessions are deleted.
func TestForkKeepsOutputs(t *testing.T) {
	d := newDirs(t)
	writeSession(t, d.Sessions, "s", 1, sample()...)
	first := keepOutput(t, d, "s", "c1", "of the first")
	c, err := store.NewContext(d.Contexts, "s", store.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	blob, err := c.PutBlob(t.Context(), []byte("image"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Fork(t.Context(), "s", "second", 0); err != nil {
		t.Fatal(err)
	}
	second := keepOutput(t, d, "second", "c1", "of the second")
	if err := d.Fork(t.Context(), "second", "third", 0); err != nil {
		t.Fatal(err)
	}
	writeSession(t, d.Sessions, "stranger", 1, sample()...)
	hidden := keepOutput(t, d, "stranger", "c1", "of a stranger")
	for _, id := range []string{"s", "second"} {
		if err := d.Delete(id); err != nil {
			t.Fatal(err)
		}
	}
	for handle, want := range map[string]string{first: "of the first", second: "of the second", blob: "image"} {
		if got, err := opened(t, d, "third", handle); err != nil || got != want {
			t.Errorf("%s is %q, %v", handle, got, err)
		}
	}
	for _, handle := range []string{hidden, core.HandlePrefix + "s/../../stranger/c1", core.HandlePrefix + "../stranger/c1", core.HandlePrefix + "s", core.HandlePrefix} {
		if got, err := opened(t, d, "third", handle); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is %q, %v", handle, got, err)
		}
	}
	if runtime.GOOS != "windows" {
		err := filepath.WalkDir(filepath.Join(d.Contexts, "third"), func(path string, e fs.DirEntry, err error) error {
			if info, _ := e.Info(); info != nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDelete(t *testing.T) {
	d := newDirs(t)
	for _, id := range []string{"s", "other"} {
		writeSession(t, d.Sessions, id, 1, sample()...)
		keepOutput(t, d, id, "c1", "text")
	}
	if err := os.WriteFile(filepath.Join(d.Sessions, "s.jsonl.torn"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := store.Open(d.Sessions, "s", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := names(t, d)
	locked := (*store.LockedError)(nil)
	if err := d.Delete("s"); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("a session that is open: %v", err)
	}
	if after := names(t, d); !slices.Equal(before, after) {
		t.Errorf("files before %q\nafter %q", before, after)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Delete("s"); err != nil {
		t.Fatal(err)
	}
	want := []string{"context/other/c1.json", "context/other/c1.out", "sessions/other.jsonl"}
	if got := names(t, d); !slices.Equal(got, want) {
		t.Errorf("remaining files: %q", got)
	}
	if err := d.Delete("s"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second time: %v", err)
	}
	if err := d.Delete("../sessions/other"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("no id: %v", err)
	}
}
