package shell_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/seed-009c0928/agent/permissions/shell"
)

// fixed is a time that no new file has.
var fixed = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// hostile is a git repository whose settings run a program wherever git lets
// them. Each program leaves a file with the setting's name.
type hostile struct {
	t         *testing.T
	dir       string
	marks     string
	gitEnv    []string // to set it up
	scriptEnv []string // as a command of the agent has it
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("commands on Windows are not analysed")
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	h := &hostile{t: t, dir: t.TempDir(), marks: t.TempDir()}
	home := t.TempDir()
	h.scriptEnv = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	h.gitEnv = slices.Concat(h.scriptEnv, []string{
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main", "GIT_CONFIG_KEY_1=protocol.file.allow", "GIT_CONFIG_VALUE_1=always",
	})
	h.git(h.dir, "init", "-q")
	h.write("a.txt", "one\n")
	h.write("src/b.txt", "two\n")
	h.git(h.dir, "add", ".")
	h.git(h.dir, "commit", "-q", "-m", "first")
	h.write("a.txt", "three\n")
	h.git(h.dir, "commit", "-q", "-a", "-m", "second")
	h.write("a.txt", "four!\n") // as long as before: git must look into it
	h.git(h.dir, "config", "user.name", "someone")
	return h
}

func (h *hostile) git(dir string, args ...string) {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, h.gitEnv
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (h *hostile) write(name, content string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// program returns a command line that leaves a mark.
func (h *hostile) program(mark string) string {
	return "touch '" + filepath.Join(h.marks, mark) + "'; cat"
}

// script writes an executable that leaves a mark.
func (h *hostile) script(mark string) string {
	path := filepath.Join(h.dir, ".git", mark+".sh")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\ntouch '"+filepath.Join(h.marks, mark)+"'\n"), 0o755); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// run runs a script with an environment on top, and returns the marks it left.
func (h *hostile) run(script string, env []string) []string {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = h.dir, slices.Concat(h.scriptEnv, env)
	if out, err := cmd.CombinedOutput(); err != nil && testing.Verbose() {
		h.t.Logf("%s: %v\n%s", script, err, out)
	}
	entries, err := os.ReadDir(h.marks)
	if err != nil {
		h.t.Fatal(err)
	}
	var marks []string
	for _, e := range entries {
		marks = append(marks, e.Name())
		if err := os.Remove(filepath.Join(h.marks, e.Name())); err != nil {
			h.t.Fatal(err)
		}
	}
	return marks
}

// gitScripts are the git commands of the table that are read-only.
func gitScripts(t *testing.T) []string {
	var scripts []string
	for _, r := range rows(t) {
		if r.Want == "readonly" && strings.Contains(r.Script, "git ") && !strings.Contains(r.Script, "xargs") {
			scripts = append(scripts, r.Script)
		}
	}
	return append(scripts, "git describe --always --dirty", "git diff-files", "git diff-index HEAD", "git diff HEAD -- a.txt", "git status src", "git log -p", "git log -p --stat",
		"git blame a.txt", "git grep one", "git log --format=%B", "cd src && git status", "git -C src diff", "git show HEAD~1", "git ls-files -m", "git whatchanged", "git stash list -p")
}

// overridden are settings that run a program, and that the environment overrides.
var overridden = []struct {
	name  string
	plant func(h *hostile)
	fires string // a command that runs it without the environment
}{
	{"fsmonitor", func(h *hostile) { h.git(h.dir, "config", "core.fsmonitor", h.script("fsmonitor")) }, "git status"},
	{"hooks", func(h *hostile) {
		script := h.script("hooks")
		dir := filepath.Join(h.dir, ".git", "evil")
		_ = os.MkdirAll(dir, 0o755)
		if err := os.Rename(script, filepath.Join(dir, "post-index-change")); err != nil {
			h.t.Fatal(err)
		}
		h.git(h.dir, "config", "core.hooksPath", dir)
		now := filepath.Join(h.dir, "src/b.txt")
		if err := os.Chtimes(now, fixed, fixed); err != nil { // so that the index is refreshed
			h.t.Fatal(err)
		}
	}, "git status"},
	{"gpg", func(h *hostile) {
		h.git(h.dir, "config", "gpg.program", h.script("gpg"))
		h.git(h.dir, "config", "log.showSignature", "true")
		signCommit(h)
	}, "git log"},
	{"pretty", func(h *hostile) {
		h.git(h.dir, "config", "gpg.program", h.script("gpg"))
		h.git(h.dir, "config", "format.pretty", "%G?")
		signCommit(h)
	}, "git log"},
	{"bare", func(h *hostile) {
		h.git(h.dir, "init", "-q", "--bare", "src")
		h.git(filepath.Join(h.dir, "src"), "config", "core.bare", "false")
		h.git(filepath.Join(h.dir, "src"), "config", "core.worktree", ".")
		h.git(filepath.Join(h.dir, "src"), "config", "core.fsmonitor", h.script("bare"))
	}, "cd src && git status"},
	{"alias", func(h *hostile) { h.git(h.dir, "config", "alias.status", "!"+h.script("alias")) }, ""},
}

// TestGitIsNeutralised shows that the environment turns off each setting with a
// fixed name, and that each runs a program without it.
func TestGitIsNeutralised(t *testing.T) {
	for _, c := range overridden {
		t.Run(c.name, func(t *testing.T) {
			h := newHostile(t)
			c.plant(h)
			if c.fires != "" && len(h.run(c.fires, nil)) == 0 {
				t.Fatalf("%s does not even run without the environment", c.name)
			}
			if err := shell.CheckRepository(h.dir, os.ReadFile); err != nil {
				t.Errorf("the environment is enough, but: %v", err)
			}
			scripts := append(gitScripts(t), c.fires)
			var env []string
			for _, script := range scripts {
				a := shell.Analyze(script, shell.Options{Dir: h.dir, Home: h.dir})
				if a.Effect() != shell.ReadOnly {
					t.Errorf("%s is %v", script, a.Effect())
				}
				env = append(env, a.Env...)
			}
			if marks := h.run("("+strings.Join(scripts, ")\n(")+")", env); len(marks) == 0 {
				return
			}
			for _, script := range scripts {
				if marks := h.run(script, env); len(marks) > 0 {
					t.Errorf("%s ran %v", script, marks)
				}
			}
		})
	}
}

// signCommit makes a commit that looks signed.
func signCommit(h *hostile) {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "git", "cat-file", "commit", "HEAD")
	cmd.Dir, cmd.Env = h.dir, h.gitEnv
	text, err := cmd.Output()
	if err != nil {
		h.t.Fatal(err)
	}
	head, body, _ := bytes.Cut(text, []byte("\n\n"))
	signed := fmt.Sprintf("%s\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n%s", head, body)
	cmd = exec.CommandContext(h.t.Context(), "git", "hash-object", "-t", "commit", "-w", "--stdin")
	cmd.Dir, cmd.Env, cmd.Stdin = h.dir, h.gitEnv, strings.NewReader(signed)
	id, err := cmd.Output()
	if err != nil {
		h.t.Fatal(err)
	}
	h.git(h.dir, "update-ref", "HEAD", strings.TrimSpace(string(id)))
}

// beyondOverride are settings that run a program despite the environment.
var beyondOverride = []struct {
	name  string
	plant func(h *hostile)
	fires string
	want  string // in the error
}{
	{"filter", func(h *hostile) {
		h.git(h.dir, "config", "filter.evil.clean", h.program("filter"))
		h.write(".gitattributes", "*.txt filter=evil\n")
		touchAll(h)
	}, "git diff", "filter.evil.clean"},
	{"filter by attributes of the repository's own", func(h *hostile) {
		h.git(h.dir, "config", "filter.evil.clean", h.program("filter"))
		h.write(".git/info/attributes", "*.txt filter=evil\n")
		touchAll(h)
	}, "git status", "filter.evil.clean"},
	{"process", func(h *hostile) {
		h.git(h.dir, "config", "filter.evil.process", h.program("process"))
		h.write(".gitattributes", "*.txt filter=evil\n")
		touchAll(h)
	}, "git diff", "filter.evil.process"},
	{"textconv", func(h *hostile) {
		h.git(h.dir, "config", "diff.evil.textconv", h.program("textconv"))
		h.write(".gitattributes", "*.txt diff=evil\n")
	}, "git log -p", "diff.evil.textconv"},
	{"external diff", func(h *hostile) { h.git(h.dir, "config", "diff.external", h.script("external")) }, "git diff", "diff.external"},
	{"diff driver", func(h *hostile) {
		h.git(h.dir, "config", "diff.evil.command", h.script("driver"))
		h.write(".gitattributes", "*.txt diff=evil\n")
	}, "git diff", "diff.evil.command"},
	{"include", func(h *hostile) {
		h.write("more", "[diff]\n\texternal = "+h.script("include")+"\n")
		h.git(h.dir, "config", "include.path", filepath.Join(h.dir, "more"))
	}, "git diff", "include.path"},
	{"conditional include", func(h *hostile) {
		h.write("more", "[diff]\n\texternal = "+h.script("include")+"\n")
		h.git(h.dir, "config", "includeIf.onbranch:**.path", filepath.Join(h.dir, "more"))
	}, "git diff", "includeif"},
	{"section on one line", func(h *hostile) {
		appendTo(h, ".git/config", "[diff] external = "+h.script("line")+"\n")
	}, "git diff", "diff.external"},
	{"dotted section", func(h *hostile) {
		appendTo(h, ".git/config", "[diff.evil]\n textconv = "+h.script("dotted")+"\n")
		h.write(".gitattributes", "*.txt diff=evil\n")
	}, "git log -p", "textconv"},
	{"strange case", func(h *hostile) {
		appendTo(h, ".git/config", "[DIFF]\nExTernal="+h.script("case")+"\n")
	}, "git diff", "external"},
	{"settings of a worktree", func(h *hostile) {
		h.git(h.dir, "config", "extensions.worktreeConfig", "true")
		h.git(h.dir, "config", "--worktree", "diff.external", h.script("worktree"))
	}, "git diff", "config.worktree"},
	{"linked repository", func(h *hostile) {
		h.git(h.dir, "config", "diff.external", h.script("linked"))
		if err := os.Rename(filepath.Join(h.dir, ".git"), filepath.Join(h.marks+"-git")); err != nil {
			h.t.Fatal(err)
		}
		h.t.Cleanup(func() { os.RemoveAll(h.marks + "-git") })
		h.write(".git", "gitdir: "+h.marks+"-git\n")
		h.script2(h.marks+"-git", "linked")
	}, "", "diff.external"},
	{"submodule", plantSubmodule, "git diff-index HEAD", "filter.evil.clean"},
	{"submodule, index version 4", func(h *hostile) {
		plantSubmodule(h)
		h.git(h.dir, "update-index", "--index-version", "4")
	}, "git diff-index HEAD", "filter.evil.clean"},
	{"split index", func(h *hostile) { h.git(h.dir, "update-index", "--split-index") }, "", "split"},
	{"files elsewhere", func(h *hostile) { h.git(h.dir, "config", "core.worktree", "/etc") }, "", "core.worktree"},
}

// TestCheckRepositoryFinds shows that what the environment cannot turn off is
// found, in repositories where it runs a program.
func TestCheckRepositoryFinds(t *testing.T) {
	for _, c := range beyondOverride {
		t.Run(c.name, func(t *testing.T) {
			h := newHostile(t)
			if err := shell.CheckRepository(h.dir, os.ReadFile); err != nil {
				t.Fatalf("before anything is planted: %v", err)
			}
			c.plant(h)
			err := shell.CheckRepository(filepath.Join(h.dir, "src"), os.ReadFile)
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), c.want) {
				t.Errorf("CheckRepository: %v, want %q", err, c.want)
			}
			if c.fires == "" {
				return
			}
			a := shell.Analyze(c.fires, shell.Options{Dir: h.dir})
			if marks := h.run(c.fires, a.Env); len(marks) == 0 {
				t.Errorf("%s runs nothing, so the test shows nothing", c.fires)
			}
		})
	}
}

func (h *hostile) script2(dir, mark string) {
	if err := os.WriteFile(filepath.Join(dir, mark+".sh"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		h.t.Fatal(err)
	}
}

func appendTo(h *hostile, name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	old, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, append(old, text...), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// touchAll changes the times of all files, so that git reads them.
func touchAll(h *hostile) {
	h.t.Helper()
	for _, name := range []string{"a.txt", "src/b.txt"} {
		if err := os.Chtimes(filepath.Join(h.dir, name), fixed, fixed); err != nil {
			h.t.Fatal(err)
		}
	}
}

// plantSubmodule puts a repository with a filter into the hostile one.
func plantSubmodule(h *hostile) {
	h.t.Helper()
	origin := h.t.TempDir()
	h.git(origin, "init", "-q")
	if err := os.WriteFile(filepath.Join(origin, "c.txt"), []byte("x\n"), 0o644); err != nil {
		h.t.Fatal(err)
	}
	h.git(origin, "add", ".")
	h.git(origin, "commit", "-q", "-m", "first")
	h.git(h.dir, "submodule", "--quiet", "add", origin, "deep/sub")
	h.git(h.dir, "commit", "-q", "-m", "submodule")
	sub := filepath.Join(h.dir, "deep/sub")
	h.git(sub, "config", "filter.evil.clean", h.program("submodule"))
	h.write("deep/sub/.gitattributes", "*.txt filter=evil\n")
	if err := os.Chtimes(filepath.Join(sub, "c.txt"), fixed, fixed); err != nil {
		h.t.Fatal(err)
	}
}

// TestCheckRepositoryIsCalm shows that ordinary repositories are accepted.
func TestCheckRepositoryIsCalm(t *testing.T) {
	h := newHostile(t)
	for _, setting := range []string{
		"remote.origin.url=https://example.com/x", "remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*", "branch.main.remote=origin", "branch.main.merge=refs/heads/main",
		"user.email=a@example.com", "core.autocrlf=input", "core.ignorecase=true", "pull.rebase=true", "push.default=current", "diff.algorithm=histogram", "diff.go.xfuncname=^func",
		"color.ui=auto", "alias.st=status", "commit.gpgsign=true", "core.hooksPath=.husky", "lfs.repositoryformatversion=0", "merge.conflictstyle=zdiff3", "gc.auto=0", "fetch.prune=true", "core.editor=vim",
	} {
		name, v, _ := strings.Cut(setting, "=")
		h.git(h.dir, "config", name, v)
	}
	if err := shell.CheckRepository(h.dir, os.ReadFile); err != nil {
		t.Error(err)
	}
	if err := shell.CheckRepository(t.TempDir(), os.ReadFile); err != nil {
		t.Errorf("no repository: %v", err)
	}
}

// TestCheckRepositoryBadInput shows that what cannot be read makes the check
// fail.
func TestCheckRepositoryBadInput(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"link to nothing known": {"w/.git": {Data: []byte("what")}},
		"continued line":        {"w/.git/config": {Data: []byte("[core]\nbare = \\\nfalse\n")}},
		"escaped section":       {"w/.git/config": {Data: []byte("[diff \"a\\\"b\"]\nx=1\n")}},
		"brackets":              {"w/.git/config": {Data: []byte("[a]b]\nx=1\n")}},
		"open section":          {"w/.git/config": {Data: []byte("[core\nx=1\n")}},
		"key without a section": {"w/.git/config": {Data: []byte("external=x\n")}},
		"unknown section":       {"w/.git/config": {Data: []byte("[hook \"x\"]\ncommand=x\n")}},
		"index of another kind": {"w/.git/index": {Data: []byte("what is this?")}, "w/.git/config": {}},
		"index cut off":         {"w/.git/index": {Data: []byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x05")}, "w/.git/config": {}},
		"outer repository":      {"w/.git/config": {}, ".git/config": {Data: []byte("[diff]\nexternal=x\n")}},
	} {
		read := func(path string) ([]byte, error) { return fs.ReadFile(files, strings.TrimPrefix(path, "/")) }
		if err := shell.CheckRepository("/w", read); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	denied := func(string) ([]byte, error) { return nil, fs.ErrPermission }
	if err := shell.CheckRepository("/w", denied); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("unreadable: %v", err)
	}
}

// FuzzCheckRepository shows that no settings and no index make it panic.
func FuzzCheckRepository(f *testing.F) {
	f.Add([]byte("[core]\n\tbare = false\n"), []byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Add([]byte("[diff \"x\"] textconv=y"), []byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, config, index []byte) {
		files := fstest.MapFS{"w/.git/config": {Data: config}, "w/.git/index": {Data: index}}
		err := shell.CheckRepository("/w", func(path string) ([]byte, error) { return fs.ReadFile(files, strings.TrimPrefix(path, "/")) })
		if err == nil && bytes.Contains(bytes.ToLower(config), []byte("[filter")) && bytes.Contains(config, []byte("clean=x")) && !bytes.ContainsAny(config, "#;\"") {
			t.Errorf("passed: %q", config)
		}
	})
}
