package tools_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

// TestGlobalExcludes: what the user tells git to ignore everywhere is ignored, as
// git does.
func TestGlobalExcludes(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	files := []string{"a.log", "a.swp", "build/x", "keep.swp", "notes.txt", "sub/b.swp", "sub/build/y", "sub/local.txt", "top.txt"}
	for name, settings := range map[string]map[string]string{
		"default":     {".config/git/ignore": "*.swp\n/build/\n"},
		"setting":     {".gitconfig": "[user]\n\tname = x\n[core]\n\texcludesFile = ~/.ignored # mine\n", ".ignored": "*.swp\n[[:alpha:]].log\n/top.txt\n"},
		"included":    {".gitconfig": "[include]\npath = more\n", "more": "[CORE] excludesfile = \"~/with space\"\n", "with space": "sub/build\n"},
		"XDG":         {"xdg/git/config": "[core]\nexcludesfile=~/none\n", "xdg/git/ignore": "*.swp\n"},
		"XDG default": {"xdg/git/ignore": "*.swp\n", ".config/git/ignore": "*.txt\n"},
		"here":        {".gitconfig": "[includeIf \"gitdir:~/../**/\"]\npath = more\n[includeIf \"gitdir:/elsewhere/\"]\npath = other\n", "more": "[core]\nexcludesFile = ~/x\n", "other": "[core]\nexcludesFile = ~/y\n", "x": "*.swp\n", "y": "*.txt\n"},
		"named":       {".gitconfig": "[includeIf \"gitdir:project/\"]\npath = more\n[includeIf \"gitdir/i:PROJECT/.GIT\"]\n  path = other\n", "more": "[core]\nexcludesFile = ~/x\n", "other": "[core]\nexcludesFile = ~/y\n", "x": "*.swp\n", "y": "*.txt\n"},
		"branch":      {".gitconfig": "[includeIf \"onbranch:feature/\"]\npath = more\n[includeIf \"onbranch:main\"]\npath = other\n", "more": "[core]\nexcludesFile = ~/x\n", "other": "[core]\nexcludesFile = ~/y\n", "x": "*.swp\n", "y": "*.txt\n"},
		"endless":     {".gitconfig": "[include]\npath = .gitconfig\n"},
	} {
		t.Run(name, func(t *testing.T) {
			home, dir := t.TempDir(), filepath.Join(t.TempDir(), "project")
			put := func(root, name, text string) {
				path := filepath.Join(root, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for file, text := range settings {
				put(home, file, text)
			}
			for _, file := range files {
				put(dir, file, "needle\n")
			}
			environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
			if strings.HasPrefix(name, "XDG") {
				environ = append(environ, "XDG_CONFIG_HOME="+filepath.Join(home, "xdg"))
			}
			gitRun := func(args ...string) string {
				cmd := exec.CommandContext(t.Context(), git, args...)
				cmd.Dir, cmd.Env = dir, environ
				out, err := cmd.Output()
				if err != nil && name != "endless" {
					t.Fatalf("git %v: %v", args, err)
				}
				return string(out)
			}
			gitRun("init", "-q", "-b", "feature/x")
			put(dir, ".git/info/exclude", "local.txt\n")
			put(dir, ".gitignore", "!keep.swp\n")
			var want []string
			if name != "endless" { // git refuses to run
				want = strings.Fields(gitRun("ls-files", "--others", "--exclude-standard", "--", ":!.gitignore"))
			} else {
				want = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "sub/local.txt" })
			}
			where, err := env.NewLocal(env.LocalOptions{Dir: dir, Home: home, Environ: environ})
			if err != nil {
				t.Fatal(err)
			}
			defer where.Close()
			_, text := run(t, tools.Grep(), where, args{"pattern": "needle", "output_mode": "files_with_matches"})
			if got := strings.Fields(text); !slices.Equal(got, want) {
				t.Errorf("searched %q, git has %q", got, want)
			}
			// The call may not read the rules above its directory; the user's apply.
			notBelow := func(f string) bool { return !strings.HasPrefix(f, "sub/") || f == "sub/local.txt" }
			_, text = run(t, tools.Grep(), where, args{"pattern": "needle", "path": "sub", "output_mode": "files_with_matches"})
			if got := slices.DeleteFunc(strings.Fields(text), notBelow); !slices.Equal(got, slices.DeleteFunc(want, notBelow)) {
				t.Errorf("searched %q below sub, git has %q", got, want)
			}
		})
	}
}
