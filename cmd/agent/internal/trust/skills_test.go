package trust

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTrustCoversSkills checks that trust covers every file of the project's
// skills, including those of parent directories, but not the user's skills.
func TestTrustCoversSkills(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("repo/.git/HEAD", "x")
	put("repo/.claude/skills/up/SKILL.md", "x")
	put("repo/sub/.agent/skills/a/SKILL.md", "x")
	put("repo/sub/.agent/skills/a/scripts/run.sh", "x")
	put("repo/sub/.agent/skills/a/node_modules/m/index.js", "x")
	put("outside/.agent/skills/b/SKILL.md", "x")
	store, dir := Open(filepath.Join(top, "home")), filepath.Join(top, "repo", "sub")
	state, err := store.Check(dir)
	want := "../.claude/skills/up/SKILL.md .agent/skills/a/SKILL.md .agent/skills/a/scripts/run.sh"
	if err != nil || state.Status != Untrusted || strings.Join(state.Files, " ") != want {
		t.Fatalf("at first: %+v, %v", state, err)
	}
	if state, err = store.Trust(t.Context(), dir, time.Now()); err != nil || state.Status != Trusted {
		t.Fatalf("trusted: %+v, %v", state, err)
	}
	for name, want := range map[string]string{
		"repo/sub/.agent/skills/a/scripts/run.sh": ".agent/skills/a/scripts/run.sh has changed",
		"repo/.claude/skills/up/references/r.md":  "../.claude/skills/up/references/r.md is new",
	} {
		put(name, "other")
		state, err := store.Check(dir)
		if err != nil || state.Status != Changed || !strings.Contains(strings.Join(state.Changes, "; "), want) {
			t.Errorf("%s: %+v, %v", name, state, err)
		}
	}
	put("home/skills/own/SKILL.md", "x")
	if state, err := Open(filepath.Join(top, "home")).Check(filepath.Join(top, "home")); err != nil || state.Status != Nothing {
		t.Errorf("one's own skills: %+v, %v", state, err)
	}
}
