package bundle_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core/bundle"
)

// TestApproved: a reader sees the files that were installed, whatever else is in the
// folder, and those that changed are errors.
func TestApproved(t *testing.T) {
	store := open(t)
	entry, err := install(t, store, "x", files{"a.md": "one", "b.md": "two", "sub/c.md": "three", "sub/deep/d.md": "four", "sub-e.md": "five"}, false)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(store.Path("x"), filepath.FromSlash(name)) }
	edit := func(name, text string) {
		t.Helper()
		_ = os.Remove(at(name)) // it may be read-only
		writeFile(t, at(name), []byte(text))
	}
	edit("b.md", "2")
	edit("added.md", "six")
	if err := os.Remove(at("sub/c.md")); err != nil {
		t.Fatal(err)
	}
	a, err := store.Approved(entry)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var walked []string
	if err := fs.WalkDir(a, ".", func(name string, _ fs.DirEntry, err error) error {
		walked = append(walked, name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{".", "a.md", "b.md", "sub", "sub/c.md", "sub/deep", "sub/deep/d.md", "sub-e.md"}; !slices.Equal(walked, want) {
		t.Errorf("walked %q, want %q", walked, want)
	}
	for _, name := range []string{"a.md", "sub/deep/d.md"} {
		if data, err := fs.ReadFile(a, name); err != nil || len(data) == 0 {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if changes, err := a.Verify(); err != nil || len(changes) > 0 {
		t.Errorf("after the unchanged files: %v, %v", changes, err)
	}
	for _, name := range []string{"b.md", "sub/c.md", "b.md"} {
		if _, err := fs.ReadFile(a, name); !errors.Is(err, bundle.ErrChanged) {
			t.Errorf("%s: %v, want ErrChanged", name, err)
		}
	}
	if _, err := fs.ReadFile(a, "added.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("added.md: %v, want ErrNotExist", err)
	}
	changes, err := a.Verify()
	if err != nil || len(changes) != 2 || changes[0].Path != "b.md" || changes[0].Kind != bundle.Modified || changes[1].Path != "sub/c.md" || changes[1].Kind != bundle.Removed {
		t.Errorf("changes %+v, %v", changes, err)
	}
}

// TestApprovedRefusesLinks: a file that was replaced by a link is not read, and not
// forgotten either.
func TestApprovedRefusesLinks(t *testing.T) {
	store := open(t)
	entry, err := install(t, store, "x", files{"a.md": "one", "b.md": "one"}, false)
	if err != nil {
		t.Fatal(err)
	}
	a, err := store.Approved(entry)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := os.Remove(filepath.Join(store.Path("x"), "a.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b.md", filepath.Join(store.Path("x"), "a.md")); err != nil {
		t.Skip(err)
	}
	if _, err := fs.ReadFile(a, "a.md"); err == nil {
		t.Error("a link was read")
	}
	if changes, err := a.Verify(); err == nil && len(changes) == 0 {
		t.Error("a link counts as unchanged")
	}
}
