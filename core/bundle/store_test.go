package bundle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/bundle"
)

type files map[string]string

// install installs files under a name.
func install(t *testing.T, store *bundle.Store, name string, content files, replace bool) (bundle.Entry, error) {
	t.Helper()
	stage, err := store.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	}()
	for path, body := range content {
		writeFile(t, filepath.Join(stage.Dir(), filepath.FromSlash(path)), []byte(body))
	}
	tree, err := stage.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stage.Install(t.Context(), bundle.Install{
		Name: name, Tree: tree.Hash, Replace: replace,
		Source:  bundle.Source{Kind: "git", Location: "https://example.com/<skills>", Ref: "v1", Commit: strings.Repeat("a1", 20)},
		Consent: &bundle.Consent{Tree: tree.Hash, Given: time.Unix(1e9, 5), Terms: json.RawMessage(`{"net": ["<example.com>"]}`)},
	})
}

func open(t *testing.T) *bundle.Store {
	t.Helper()
	return bundle.Open(filepath.Join(t.TempDir(), "store"), bundle.Options{Now: func() time.Time { return time.Unix(1_700_000_000, 7) }})
}

func kinds(changes []bundle.Change) string {
	var list []string
	for _, c := range changes {
		list = append(list, fmt.Sprintf("%s %s", c.Kind, c.Path))
	}
	return strings.Join(list, ", ")
}

func TestInstallVerifyRemove(t *testing.T) {
	t.Parallel()
	store := open(t)
	if list, err := store.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("a store that does not exist lists %v, %v", list, err)
	}
	if _, err := os.Stat(filepath.Dir(store.LockFile())); err == nil {
		t.Error("reading a store created it")
	}
	want, err := install(t, store, "pdf", files{"SKILL.md": "# PDF\n", "scripts/run": "x"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install(t, store, "csv", files{"SKILL.md": "# CSV\n"}, false); err != nil {
		t.Fatal(err)
	}
	got, changes, err := store.Verify(t.Context(), "pdf")
	if err != nil || len(changes) > 0 {
		t.Errorf("Verify: %s, %v; want no changes", kinds(changes), err)
	}
	if a, b := fmt.Sprint(got.Name, got.Source, got.Installed, got.Files, got.Tree, got.Sum), fmt.Sprint(want.Name, want.Source, want.Installed, want.Files, want.Tree, want.Sum); a != b {
		t.Errorf("the entry was read as\n%s, written as\n%s", a, b)
	}
	if !got.Consented() || got.Installed != time.Unix(1_700_000_000, 0).UTC() {
		t.Errorf("entry %+v", got)
	}
	if list, err := store.List(t.Context()); err != nil || len(list) != 2 || list[0].Name != "csv" || list[1].Name != "pdf" {
		t.Errorf("List = %v, %v; want csv, pdf", list, err)
	}
	if err := store.Remove(t.Context(), "pdf", false); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(store.Path("pdf")); err == nil {
		t.Error("the files are still there")
	}
	if _, err := store.Entry(t.Context(), "pdf"); !errors.Is(err, bundle.ErrNotInstalled) {
		t.Errorf("Entry of what was removed: %v", err)
	}
	if err := store.Remove(t.Context(), "pdf", true); !errors.Is(err, bundle.ErrNotInstalled) {
		t.Errorf("removing it again: %v", err)
	}
}

func TestLocalEdits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(dir string) error
		want string
	}{
		{"edited", func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("mine"), 0o644) }, "modified a"},
		{"added", func(dir string) error { return os.WriteFile(filepath.Join(dir, "z"), nil, 0o644) }, "added z"},
		{"removed", func(dir string) error { return os.Remove(filepath.Join(dir, "a")) }, "removed a"},
		{"made executable", func(dir string) error { return os.Chmod(filepath.Join(dir, "a"), 0o755) }, "mode a"},
		{"gone", os.RemoveAll, "removed a, removed b"},
		{"litter", func(dir string) error { return os.WriteFile(filepath.Join(dir, ".DS_Store"), nil, 0o644) }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" && tt.name == "made executable" {
				t.Skip("files cannot be made executable here")
			}
			store := open(t)
			if _, err := install(t, store, "x", files{"a": "1", "b": "2"}, false); err != nil {
				t.Fatal(err)
			}
			if err := tt.edit(store.Path("x")); err != nil {
				t.Fatal(err)
			}
			_, changes, err := store.Verify(t.Context(), "x")
			if err != nil || kinds(changes) != tt.want {
				t.Errorf("Verify: %q, %v; want %q", kinds(changes), err, tt.want)
			}
			lost := tt.want != "" && tt.name != "gone" // there is something to lose
			if _, err := install(t, store, "x", files{"a": "new"}, true); errors.Is(err, bundle.ErrLocalEdits) != lost {
				t.Errorf("update: %v", err)
			} else if err == nil {
				return
			}
			if err := store.Remove(t.Context(), "x", false); !errors.Is(err, bundle.ErrLocalEdits) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Remove: %v; want one that names %q", err, tt.want)
			}
			if err := store.Remove(t.Context(), "x", true); err != nil {
				t.Errorf("Remove, discarding edits: %v", err)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	store := open(t)
	old, err := install(t, store, "x", files{"same": "s", "text": "one\ntwo\n", "gone": "g", "image": "\x00\x01"}, false)
	if err != nil {
		t.Fatal(err)
	}
	stage, err := store.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stage.Close()
	for path, body := range (files{"same": "s", "text": "one\n2\n", "new": "n\n", "image": "\x00\x02"}) {
		writeFile(t, filepath.Join(stage.Dir(), path), []byte(body))
	}
	tree, err := stage.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changes := bundle.Compare(bundle.Tree{Hash: old.Tree, Files: old.Files}, tree)
	if got, want := kinds(changes), "removed gone, modified image, added new, modified text"; got != want {
		t.Errorf("Compare = %q, want %q", got, want)
	}
	for i, want := range []string{"-g", "", "+n\n", "-two\n+2\n"} {
		got, err := bundle.Diff(t.Context(), store.Path("x"), stage.Root(), changes[i])
		if err != nil || (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("Diff of %s = %q, %v; want one with %q", changes[i].Path, got, err, want)
		}
	}
	in := bundle.Install{Name: "x", Tree: tree.Hash, Replace: true, Source: old.Source, Consent: old.Consent}
	if _, err := stage.Install(t.Context(), in); err == nil || !strings.Contains(err.Error(), "is for other files") {
		t.Errorf("installing with the consent to other files: %v", err)
	}
	in.Consent = nil
	writeFile(t, filepath.Join(stage.Dir(), "text"), []byte("something else"))
	if _, err := stage.Install(t.Context(), in); !errors.Is(err, bundle.ErrChanged) {
		t.Errorf("installing what was not shown: %v, want ErrChanged", err)
	}
	writeFile(t, filepath.Join(stage.Dir(), "text"), []byte("one\n2\n"))
	entry, err := stage.Install(t.Context(), in)
	if err != nil || entry.Consented() {
		t.Errorf("Install = %+v, %v; want no consent yet", entry, err)
	}
}

func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	store := open(t)
	if _, err := install(t, store, "x", files{"a": "1"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := install(t, store, "x", files{"a": "2"}, false); !errors.Is(err, bundle.ErrInstalled) {
		t.Errorf("installing over another bundle: %v", err)
	}
	writeFile(t, filepath.Join(store.Path("own"), "SKILL.md"), []byte("the user's own"))
	if _, err := install(t, store, "own", files{"a": "2"}, true); !errors.Is(err, bundle.ErrInstalled) || !strings.Contains(err.Error(), "not installed by agent") {
		t.Errorf("installing over the user's own: %v", err)
	}
	for _, name := range []string{"", ".", "..", ".hidden", "a/b", `a\b`, "lock.json", "nul", "a b", "é", strings.Repeat("x", 65), "a."} {
		if _, err := install(t, store, name, files{"a": "2"}, true); err == nil || !strings.Contains(err.Error(), "invalid name") {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	stage, err := store.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stage.Close()
	writeFile(t, filepath.Join(stage.Dir(), "a"), []byte("1"))
	tree, err := stage.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	good := bundle.Source{Kind: "git", Location: "l"}
	for want, change := range map[string]func(*bundle.Install){
		"needs a source":  func(in *bundle.Install) { in.Source.Location = "" },
		"40 hexadecimal":  func(in *bundle.Install) { in.Source.Commit = "v1" },
		"not valid UTF-8": func(in *bundle.Install) { in.Source.Ref = "\xff" },
		"terms:1:":        func(in *bundle.Install) { in.Consent.Terms = json.RawMessage(`{"a":1,"a":2}`) },
	} {
		in := bundle.Install{Name: "y", Tree: tree.Hash, Source: good, Consent: &bundle.Consent{Tree: tree.Hash}}
		change(&in)
		if _, err := stage.Install(t.Context(), in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestEditedLockFile edits each part of an entry.
func TestEditedLockFile(t *testing.T) {
	t.Parallel()
	store := open(t)
	for _, name := range []string{"good", "victim"} {
		if _, err := install(t, store, name, files{"SKILL.md": "# " + name}, false); err != nil {
			t.Fatal(err)
		}
	}
	entry, err := store.Entry(t.Context(), "victim")
	if err != nil {
		t.Fatal(err)
	}
	original, err := os.ReadFile(store.LockFile())
	if err != nil {
		t.Fatal(err)
	}
	start := bytes.Index(original, []byte(`"victim"`))
	for i, edit := range [][2]string{
		{entry.Files[0].SHA256, strings.Repeat("0", 64)},
		{entry.Tree, strings.Repeat("0", 64)},
		{`"ref": "v1"`, `"ref": "v2"`},
		{`"size": 8`, `"size": 9`},
		{"<example.com>", "<example.org>"},
		{strings.Repeat("a1", 20), strings.Repeat("a2", 20)},
		{`"path": "SKILL.md"`, `"path": "OTHER.md"`},
		{entry.Sum, "short"},
	} {
		part := strings.Replace(string(original[start:]), edit[0], edit[1], 1)
		if part == string(original[start:]) {
			t.Fatalf("%q is not in %s", edit[0], original[start:])
		}
		if err := os.WriteFile(store.LockFile(), append(bytes.Clone(original[:start]), part...), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := store.Verify(t.Context(), "victim")
		edited := (*bundle.EditedError)(nil)
		if !errors.As(err, &edited) || edited.Name != "victim" || !strings.HasPrefix(err.Error(), store.LockFile()+":") {
			t.Errorf("%s: Verify: %v, want an EditedError with the position", edit[0], err)
		}
		list, err := store.List(t.Context())
		if !errors.As(err, &edited) || len(list) != 1 || list[0].Name != "good" {
			t.Errorf("%s: List = %v, %v; want good, and the error", edit[0], list, err)
		}
		if _, err := install(t, store, "victim", files{"a": "b"}, true); !errors.As(err, &edited) {
			t.Errorf("%s: update: %v", edit[0], err)
		}
		if _, err := install(t, store, fmt.Sprint("other", i), files{"a": "b"}, false); err != nil {
			t.Errorf("%s: install of another: %v", edit[0], err)
		}
		if _, err := store.Entry(t.Context(), "victim"); !errors.As(err, &edited) {
			t.Errorf("%s: writing another entry made this one valid: %v", edit[0], err)
		}
	}
	if err := store.Remove(t.Context(), "victim", true); err != nil {
		t.Error(err)
	}
	if _, err := store.List(t.Context()); err != nil {
		t.Errorf("after removing the edited entry: %v", err)
	}
}

func TestMalformedLockFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     ":1:1: ",
		"{\n  \"version\": 1,\n  entries\n}":   ":3:3: ",
		`{"version":1,"entires":{}}`:           `did you mean "entries"?`,
		`{"version":1,"entries":{"a":1}}`:      "/entries/a: expected an object",
		`{"version":2,"future":true}`:          "update agent",
		`{"version":1,"entries":{"..":{}}}`:    "was edited",
		"{\"version\":1,\"entries\":{}}\xff\n": ":1:",
	} {
		store := open(t)
		writeFile(t, store.LockFile(), []byte(text))
		if _, err := store.List(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), store.LockFile()) {
			t.Errorf("%q: %v; want an error with %q", text, err, want)
		}
	}
	store := open(t)
	if err := os.MkdirAll(store.LockFile(), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := store.List(t.Context()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder as lock file: %v", err)
	}
}

// TestConcurrent installs from several goroutines, each with a separate store
// as in processes, while others read: no entry is lost, and no reader sees a
// partial update.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	shared := bundle.Open(dir, bundle.Options{})
	if _, err := install(t, shared, "shared", files{"v": "0"}, false); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var readers, writers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := os.Stat(filepath.Join(shared.Path("shared"), "v")); err != nil && runtime.GOOS != "windows" {
				t.Errorf("a reader saw a partial update: %v", err)
				return
			}
		}
	})
	for w := range 4 {
		writers.Go(func() {
			store := bundle.Open(dir, bundle.Options{})
			for i := range 5 {
				if _, err := install(t, store, "shared", files{"v": fmt.Sprint(w, i)}, true); err != nil {
					t.Errorf("update: %v", err)
				}
				if _, err := install(t, store, fmt.Sprintf("own-%d-%d", w, i), files{"v": "1"}, false); err != nil {
					t.Errorf("install: %v", err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	list, err := shared.List(t.Context())
	if err != nil || len(list) != 21 {
		t.Fatalf("List: %d entries, %v; want 21", len(list), err)
	}
	for _, e := range list {
		if _, changes, err := shared.Verify(t.Context(), e.Name); err != nil || len(changes) > 0 {
			t.Errorf("%s: %s, %v", e.Name, kinds(changes), err)
		}
	}
}

func TestTreeHash(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	base := []bundle.File{{Path: "a", SHA256: sum, Size: 1}, {Path: "b", SHA256: sum, Size: 1}}
	seen := map[string]int{}
	for i, list := range [][]bundle.File{
		base, base[:1], nil,
		{{Path: "a", SHA256: sum, Size: 1, Executable: true}, base[1]},
		{{Path: "a", SHA256: sum, Size: 2}, base[1]},
		{{Path: "ab", SHA256: sum, Size: 1}},
		{{Path: "a", SHA256: strings.Repeat("ac", 32), Size: 1}, base[1]},
	} {
		hash := bundle.HashFiles(list)
		if other, ok := seen[hash]; ok || len(hash) != 64 {
			t.Errorf("trees %d and %d have the hash %q", i, other, hash)
		}
		seen[hash] = i
	}
	if got, want := bundle.HashFiles([]bundle.File{base[1], base[0]}), bundle.HashFiles(base); got != want {
		t.Error("the order matters")
	}
	if got := bundle.HashFiles([]bundle.File{{Path: "a", SHA256: "abc"}}); got != "" {
		t.Errorf("a malformed sum hashes to %q", got)
	}
}

func FuzzLockFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"entries":{"a":{"source":{"kind":"x","location":"y"},"files":[],"tree":"","sum":""}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		store := bundle.Open(t.TempDir(), bundle.Options{})
		writeFile(t, store.LockFile(), data)
		list, err := store.List(t.Context())
		if err == nil && len(list) > 0 {
			t.Errorf("forged entries are accepted: %v", list)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	store := bundle.Open(b.TempDir(), bundle.Options{})
	stage, err := store.Stage(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer stage.Close()
	for i := range 20 {
		writeFile(b, filepath.Join(stage.Dir(), fmt.Sprintf("f%d", i)), bytes.Repeat([]byte("line\n"), 2000))
	}
	tree, err := stage.Tree(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := stage.Install(b.Context(), bundle.Install{Name: "x", Tree: tree.Hash, Source: bundle.Source{Kind: "k", Location: "l"}}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, changes, err := store.Verify(b.Context(), "x"); err != nil || len(changes) > 0 {
			b.Fatal(changes, err)
		}
	}
}
