//go:build unix

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHideExcept(t *testing.T) {
	root := Resolve(t.TempDir())
	for _, dir := range []string{"home/me/.ssh", "home/me/work/docs", "home/me/work/src", "home/you", "plugin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	at := func(dir string) string { return filepath.Join(root, dir) }
	got := HideExcept([]string{at("home"), at("plugin"), at("missing")}, []string{at("home/me/work/docs"), at("plugin")})
	want := []string{at("home/me/.ssh"), at("home/me/work/src"), at("home/you")}
	if !slices.Equal(got, want) {
		t.Errorf("hidden: %q, want %q", got, want)
	}
}


func TestProgramPaths(t *testing.T) {
	home := Resolve(t.TempDir())
	at := func(dir string) string { return filepath.Join(home, dir) }
	for _, dir := range []string{".pyenv/shims", ".pyenv/.git", "go/bin", ".cargo/bin", ".local/bin", "src/project/bin", "src/project/.git", "sdk/bin"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{
		".pyenv/shims": ".pyenv", ".cargo/bin": ".rustup", "sdk/bin": "sdk", ".local/bin": ".local/share/uv",
	} {
		if got := ProgramPaths([]string{at(dir)}, home); !slices.Contains(got, at(want)) {
			t.Errorf("%s: %q does not contain %s", dir, got, want)
		}
	}
	for dir, not := range map[string]string{"go/bin": "go", ".local/bin": ".local", "src/project/bin": "src/project", ".": ".", "..": ".."} {
		if got := ProgramPaths([]string{at(dir)}, home); slices.Contains(got, at(not)) {
			t.Errorf("%s: %q contains %s", dir, got, not)
		}
	}
}
