package env

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func testListings() *listings {
	return newListings(newNames([]string{".git/", ".envrc", "*.git/config", ".vscode/", "AGENTS.*.md"}),
		func(rel string) bool { return strings.HasSuffix(rel, ".pem") || rel == "a/secret" })
}

// walked returns the listings of a directory and of all below it.
func walked(t *testing.T, l *listings, dir, rel string) []listing {
	t.Helper()
	found, err := l.of(dir, rel, 1000)
	if err != nil {
		t.Fatal(err)
	}
	plain := *found
	plain.at = stamp{}
	plain.entries = slices.SortedFunc(slices.Values(found.entries), func(a, b entry) int { return strings.Compare(a.name, b.name) })
	all := []listing{plain}
	for _, e := range plain.entries {
		if e.kind.IsDir() {
			all = append(all, walked(t, l, e.path, rel+e.name+"/")...)
		}
	}
	return all
}

// TestListingsAreCurrent: what is remembered of directories is what reading them
// again finds, whatever changes in them.
func TestListingsAreCurrent(t *testing.T) {
	root := t.TempDir()
	remembering := testListings()
	remembering.clock = func() stamp { return stamp{sec: time.Now().Unix() + 100} } // all is settled
	if !steady(root) {
		t.Skip("the file system of temporary files is not one whose stamps are trusted")
	}
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", ".git", ".envrc", "x.git", "config", "key.pem", "secret", ".vscode", "AGENTS.md", "AGENTS.x.md", "HEAD", "objects", "refs"}
	dirs := []string{root}
	for i := range 150 {
		dir := dirs[r.IntN(len(dirs))]
		path := filepath.Join(dir, names[r.IntN(len(names))])
		before, _ := stampOf(dir)
		switch r.IntN(5) {
		case 0:
			if len(dirs) < 12 && os.Mkdir(path, 0o755) == nil {
				dirs = append(dirs, path)
			}
		case 1:
			_ = os.WriteFile(path, nil, 0o600) // it may be a directory
		case 2:
			_ = os.Symlink("b", path)
		case 3:
			_ = os.Remove(path)
		case 4:
			_ = os.Rename(path, filepath.Join(dir, fmt.Sprint("renamed", i)))
		}
		dirs = slices.DeleteFunc(dirs, func(dir string) bool { _, err := os.Lstat(dir); return err != nil })
		tick(t, dir, before)
		if got, want := walked(t, remembering, root, ""), walked(t, testListings(), root, ""); !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: remembered %+v\nread %+v", i, got, want)
		}
	}
	if len(remembering.dirs) < 5 {
		t.Errorf("%d directories are remembered", len(remembering.dirs))
	}
}

// tick waits until the directory has another stamp, which takes a tick of the clock.
func tick(t *testing.T, dir string, before stamp) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for at, ok := stampOf(dir); ok && at == before; at, ok = stampOf(dir) {
		if time.Now().After(deadline) {
			t.Fatal("the clock of the file system stands still")
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestListingsAreNotTrusted: what could change without a trace is read each time.
func TestListingsAreNotTrusted(t *testing.T) {
	dir := t.TempDir()
	l := testListings()
	for _, name := range []string{".envrc", "AGENTS.x.md", ".vscode"} { // within one tick
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := l.of(dir, "", 1000)
		if err != nil || !slices.ContainsFunc(found.entries, func(e entry) bool { return e.name == name && e.protected }) {
			t.Errorf("%s is missing: %+v, %v", name, found, err)
		}
	}
	if len(l.dirs) != 0 {
		t.Errorf("a directory that has just changed is remembered: %v", l.dirs)
	}
	l.clock = func() stamp { return stamp{sec: time.Now().Unix() + 100} }
	if _, err := l.of(dir, "", 2); err != nil || len(l.dirs) != 0 {
		t.Errorf("a part of a directory is remembered: %v, %v", l.dirs, err)
	}
	if _, err := l.of("/proc/self", "", 1000); err != nil || len(l.dirs) != 0 {
		t.Errorf("a directory of /proc is remembered: %v, %v", l.dirs, err)
	}
	if _, err := l.of(filepath.Join(dir, "missing"), "", 1000); err == nil {
		t.Error("a missing directory has no error")
	}
}

// BenchmarkLooking measures what is looked at before and after a command that may
// write a workspace of 1,000 directories, which did not change.
func BenchmarkLooking(b *testing.B) {
	root := b.TempDir()
	for i := range 1000 {
		dir := filepath.Join(root, fmt.Sprint("d", i%10), fmt.Sprint("e", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 5 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("file", j)), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	l := testListings()
	l.clock = func() stamp { return stamp{sec: time.Now().Unix() + 100} }
	b.ReportAllocs()
	for b.Loop() {
		look := inspect(l, []string{root})
		scan([]string{root}, l, func(string) {}, look.remember)
		if renamed := look.setAside(); len(renamed) > 0 {
			b.Fatal(renamed)
		}
	}
}
