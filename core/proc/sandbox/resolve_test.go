package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// TestResolveAll compares it with Resolve, one path at a time.
func TestResolveAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, sub := range []string{"a/b", "c"} {
		if err := os.MkdirAll(at(sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(at("a/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "a", "c/up": "../link/b", "c/nowhere": "missing", "c/loop": "loop", "c/abs": at("a/file")} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Skip("symbolic links cannot be made here:", err)
		}
	}
	paths := []string{"", ".", "/", dir, "relative/path", "resolve_test.go", dir + "//a/../a/b/"}
	for _, name := range []string{
		"a", "a/b", "a/b/none", "a/b/none/deeper", "a/file", "a/file/below", "link", "link/b", "link/file", "link/none",
		"c/up", "c/up/none", "c/up/../file", "c/nowhere", "c/nowhere/x", "c/loop", "c/loop/x", "c/abs", "none/x", "none/y",
	} {
		paths = append(paths, at(name))
	}
	want := make([]string, len(paths))
	for i, p := range paths {
		want[i] = sandbox.Resolve(p)
	}
	if got := sandbox.ResolveAll(paths); !slices.Equal(got, want) {
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: %q, want %q", paths[i], got[i], want[i])
			}
		}
	}
}
