//go:build unix

package plugins_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinkedManifestCannotGrow: a linked plugin whose manifest asks for more than
// was approved does not start until it is linked again.
func TestLinkedManifestCannotGrow(t *testing.T) {
	pl := newPlace(t)
	dir := pl.link(t, "good", "good:good", func(s map[string]any) { s["manifest"] = map[string]any{"network": []string{"example.com"}} })
	if err := os.Remove(filepath.Join(pl.home, "plugin-links.json")); err != nil {
		t.Fatal(err)
	}
	link := func() {
		t.Helper()
		store := open(t, pl.options()).Store()
		p, err := store.Look(t.Context(), dir)
		if err == nil {
			err = store.Link(t.Context(), p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	link()
	only(t, open(t, pl.options()))

	writeSpec(t, dir, "good", "good:good", func(s map[string]any) {
		s["manifest"] = map[string]any{"network": []string{"example.com"}, "read": []string{"$HOME"}, "exec": true}
	})
	broken := open(t, pl.options()).Broken()
	if len(broken) != 1 || !strings.Contains(broken[0].Error(), "asks for more than you approved (read $HOME, exec)") {
		t.Fatalf("broken: %v", broken)
	}
	link()
	only(t, open(t, pl.options()))
}

// TestLinkedSources: a file that the command does not name, such as a module that the
// program imports, is also one of the plugin.
func TestLinkedSources(t *testing.T) {
	pl := newPlace(t)
	dir := pl.link(t, "good", "good:good", nil)
	p := only(t, open(t, pl.options()))
	pid := mustPid(t, p)
	if again := mustPid(t, p); again != pid {
		t.Errorf("restarted without a change: %s, was %s", again, pid)
	}
	if err := os.WriteFile(filepath.Join(dir, "imported.py"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := mustPid(t, p); again == pid {
		t.Error("the call went to the old process")
	}
}
