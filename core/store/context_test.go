package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/store"
)

func newContext(t testing.TB, dir string, opts store.ContextOptions) *store.Context {
	t.Helper()
	c, err := store.NewContext(dir, "s", opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func readAll(t testing.TB, c *store.Context, id string) string {
	t.Helper()
	f, err := c.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func keep(t testing.TB, c *store.Context, meta core.OutputMeta, text string) core.StoredOutput {
	t.Helper()
	out, err := c.Create(t.Context(), meta)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(out, text); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOutput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "context")
	c := newContext(t, dir, store.ContextOptions{Secrets: []string{"pass-word-1"}})
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("created something before it was needed")
	}
	if _, err := c.Open(t.Context(), "context:s/c1"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before anything is there: %v", err)
	}
	out, err := c.Create(t.Context(), core.OutputMeta{Tool: "shell", Args: `{"command":"echo pass-word-1"}`, Call: "c1", Time: testTime})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(out, "one ")
	fmt.Fprint(out, "two")
	if out.Handle() != "context:s/c1" || out.Path() != filepath.Join(dir, "s", "c1.out") {
		t.Errorf("handle %s, path %s", out.Handle(), out.Path())
	}
	buf := make([]byte, 3)
	if _, err := out.ReadAt(buf, 4); err != nil || string(buf) != "two" {
		t.Errorf("read while it is written: %q, %v", buf, err)
	}
	if got := readAll(t, c, out.Handle()); got != "one two" {
		t.Errorf("opened while it is written: %q", got)
	}
	for range 2 {
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := out.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	var meta map[string]any
	data, err := os.ReadFile(filepath.Join(dir, "s", "c1.json"))
	if err != nil || json.Unmarshal(data, &meta) != nil {
		t.Fatalf("%s, %v", data, err)
	}
	want := map[string]any{
		"v": 1.0, "tool": "shell", "args": `{"command":"echo [redacted]"}`, "call": "c1",
		"time": "2026-03-04T05:06:07Z", "result": "context:s/c1", "bytes": 7.0,
	}
	if !reflect.DeepEqual(meta, want) {
		t.Errorf("got  %v\nwant %v", meta, want)
	}
	if info, err := os.Stat(out.Path()); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != 0o600) {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestOutputNames(t *testing.T) {
	dir := t.TempDir()
	c := newContext(t, dir, store.ContextOptions{})
	for _, tt := range []struct{ call, want string }{
		{"call_1", "call_1"},
		{"call_1", "call_1-2"},
		{"call_1", "call_1-3"},
		{"", "output"},
		{"../../etc/passwd", "output-2"},
		{"a/b", "output-3"},
		{strings.Repeat("x", 65), "output-4"},
		{"con", "output-5"},
	} {
		out := keep(t, c, core.OutputMeta{Call: tt.call}, tt.want)
		if out.Handle() != "context:s/"+tt.want || filepath.Dir(out.Path()) != filepath.Join(dir, "s") {
			t.Errorf("call %q got %s at %s", tt.call, out.Handle(), out.Path())
		}
	}
	// A resumed session continues the names, and opens the old handles.
	c = newContext(t, dir, store.ContextOptions{})
	if out := keep(t, c, core.OutputMeta{Call: "call_1"}, "new"); out.Handle() != "context:s/call_1-4" {
		t.Errorf("after resuming: %s", out.Handle())
	}
	if got := readAll(t, c, "context:s/call_1-2"); got != "call_1-2" {
		t.Errorf("got %q", got)
	}
}

func TestBlob(t *testing.T) {
	dir := t.TempDir()
	c := newContext(t, dir, store.ContextOptions{MaxBytes: 100})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			hash, err := c.PutBlob(t.Context(), []byte("image"))
			if err != nil || hash != "6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d" {
				t.Errorf("%s, %v", hash, err)
			}
		})
	}
	wg.Wait()
	hash, err := c.PutBlob(t.Context(), []byte("image"))
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, c, hash); got != "image" {
		t.Errorf("got %q", got)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "s", "blobs")); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestOpenRefusesOddNames(t *testing.T) {
	dir := t.TempDir()
	c := newContext(t, dir, store.ContextOptions{})
	keep(t, c, core.OutputMeta{Call: "c"}, "mine")
	other, err := store.NewContext(dir, "other", store.ContextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := keep(t, other, core.OutputMeta{Call: "c"}, "theirs").Handle()
	for _, id := range []string{
		"", "c", "context:", "context:s", "context:s/", "context:s/.", "context:s/..", "context:s/../other/c", "context:s/c.out",
		"context:s/c\x00", `context:s/..\other\c`, "context:s//c", "/etc/passwd", "context:/etc/passwd", theirs,
		strings.Repeat("A", 64), strings.Repeat("a", 63), strings.Repeat("a", 64), "../" + strings.Repeat("a", 61),
	} {
		if f, err := c.Open(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open(%q): %v, %v", id, f, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "outside.out"), []byte("outside"), 0o600); err != nil {
		f.Fatal(err)
	}
	c := newContext(f, dir, store.ContextOptions{})
	out, err := c.Create(f.Context(), core.OutputMeta{Call: "c"})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { out.Close() })
	f.Add("context:s/c")
	f.Add("context:s/../outside")
	f.Add("context:../outside")
	f.Add(strings.Repeat("0", 64))
	f.Fuzz(func(t *testing.T, id string) {
		file, err := c.Open(t.Context(), id)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q: %v", id, err)
			}
			return
		}
		defer file.Close()
		if id != "context:s/c" {
			t.Errorf("%q opened something", id)
		}
	})
}

func TestSizeLimit(t *testing.T) {
	dir := t.TempDir()
	c := newContext(t, dir, store.ContextOptions{MaxBytes: 400})
	if _, err := c.PutBlob(t.Context(), make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	out, err := c.Create(t.Context(), core.OutputMeta{Call: "c", Time: testTime})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := out.Write(make([]byte, 100)); n != 100 || err != nil {
		t.Fatal(n, err)
	}
	n, err := out.Write(make([]byte, 201))
	want := "context store is full: " + filepath.Join(dir, "s") + " holds 200 of 400 bytes, no room for 201 more"
	if n != 0 || !errors.Is(err, store.ErrFull) || err.Error() != want {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := io.Copy(out, strings.NewReader(strings.Repeat("x", 500))); n != 0 || !errors.Is(err, store.ErrFull) {
		t.Errorf("io.Copy bypassed the limit: %d, %v", n, err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	// Files of an earlier process count too.
	c = newContext(t, dir, store.ContextOptions{MaxBytes: 400})
	if _, err := c.PutBlob(t.Context(), make([]byte, 150)); !errors.Is(err, store.ErrFull) {
		t.Errorf("after resuming: %v", err)
	}
}

func TestClean(t *testing.T) {
	root := t.TempDir()
	sessions, dir := filepath.Join(root, "sessions"), filepath.Join(root, "context")
	now := time.Now()
	old := now.Add(-40 * 24 * time.Hour)
	chtimes := func(path string) {
		t.Helper()
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	for id, s := range map[string]struct{ log, oldLog, oldStore, open bool }{
		"current":         {log: true},
		"old":             {log: true, oldLog: true, oldStore: true},
		"old-but-open":    {log: true, oldLog: true, oldStore: true, open: true},
		"no-log":          {oldStore: true},
		"no-log-but-new":  {},
		"old-store-alone": {log: true, oldStore: true},
	} {
		c, err := store.NewContext(dir, id, store.ContextOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out := keep(t, c, core.OutputMeta{Call: "c"}, "x")
		if s.oldStore {
			chtimes(out.Path())
			chtimes(strings.TrimSuffix(out.Path(), ".out") + ".json")
			chtimes(filepath.Dir(out.Path()))
		}
		if !s.log {
			continue
		}
		j, err := store.Create(sessions, id, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if s.open {
			defer j.Close()
		} else if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if s.oldLog {
			chtimes(j.Path())
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	clean := func(maxAge time.Duration, want ...string) {
		t.Helper()
		got, err := store.Clean(dir, sessions, maxAge, now)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("removed %v, want %v (%v)", got, want, err)
		}
	}
	clean(0, "no-log")
	clean(30*24*time.Hour, "old")
	clean(30 * 24 * time.Hour)
	if got, err := store.Clean(filepath.Join(root, "none"), sessions, 0, now); got != nil || err != nil {
		t.Errorf("a directory that does not exist: %v, %v", got, err)
	}
}
