package worktree_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/worktree"
)

func TestMain(m *testing.M) {
	if root := os.Getenv("WORKTREE_OF"); root != "" { // a process that is killed while it has a worktree
		w, err := worktree.Create(context.Background(), worktree.Options{Root: root, Home: os.Getenv("WORKTREE_HOME")})
		fmt.Println(w.Info().Dir, err)
		select {}
	}
	goleak.VerifyTestMain(m)
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "missing"
	}
	return string(data)
}

// repo returns a repository with staged, changed, deleted, untracked and ignored
// files, and a stash.
func repo(t *testing.T) (root, home string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, home = filepath.Join(dir, "repo"), filepath.Join(dir, ".agent")
	write(t, root, map[string]string{
		"main.txt": "one\ntwo\nthree\nfour\nfive\n", "gone.txt": "x\n", "staged.txt": "old\n", ".gitignore": "*.log\n", "kept.log": "tracked\n",
		"crlf.txt": "a\r\nb\r\n", "sub/deep.txt": "deep\n",
	})
	run(t, root, "git", "init", "-q", "-b", "main")
	run(t, root, "git", "config", "user.name", "U")
	run(t, root, "git", "config", "user.email", "u@example.com")
	run(t, root, "git", "config", "core.fsmonitor", "touch "+filepath.Join(dir, "ran"))
	run(t, root, "git", "remote", "add", "origin", "https://me:secret@example.com/r.git")
	run(t, root, "git", "-c", "core.fsmonitor=false", "add", "-A", "-f")
	run(t, root, "git", "-c", "core.fsmonitor=false", "commit", "-qm", "first")
	write(t, root, map[string]string{"main.txt": "stashed\n"})
	run(t, root, "git", "-c", "core.fsmonitor=false", "stash", "-q")
	write(t, root, map[string]string{"staged.txt": "new\n", "main.txt": "one\ntwo\nthree\nfour\nFIVE\n", "untracked.txt": "u\n", "noise.log": "n\n"})
	run(t, root, "git", "-c", "core.fsmonitor=false", "add", "staged.txt")
	if err := os.Remove(filepath.Join(root, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, "ran"))
	return root, home
}

// sum identifies everything in a directory.
func sum(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d %s\n", path, len(data), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func create(t *testing.T, opts worktree.Options) *worktree.Worktree {
	t.Helper()
	w, err := worktree.Create(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// state returns what changed, as "kind path".
func state(t *testing.T, w *worktree.Worktree) (worktree.State, []string) {
	t.Helper()
	s, err := w.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range s.Files {
		all = append(all, f.Kind+" "+f.Path)
	}
	return s, all
}

// TestState: a worktree has the files, staged changes and branches of the user,
// who sees nothing of what happens there, also not in the repository.
func TestState(t *testing.T) {
	t.Parallel()
	root, home := repo(t)
	before := sum(t, root)
	w := create(t, worktree.Options{Root: root, Home: home, Name: "fix"})
	dir := w.Info().Dir
	if got := run(t, dir, "git", "status", "--porcelain"); got != "D gone.txt\n M main.txt\nM  staged.txt\n?? untracked.txt" {
		t.Errorf("status:\n%s", got)
	}
	if got := run(t, dir, "git", "branch", "--show-current"); got != "agent/fix" {
		t.Errorf("branch %q", got)
	}
	if got := run(t, dir, "git", "remote", "-v"); strings.Contains(got, "secret") || !strings.Contains(got, "https://example.com/r.git") {
		t.Errorf("remotes %q", got)
	}
	if read(t, dir, "noise.log") != "missing" || read(t, dir, "crlf.txt") != "a\r\nb\r\n" || read(t, dir, "untracked.txt") != "u\n" {
		t.Error("the files differ")
	}
	if _, got := state(t, w); got != nil {
		t.Errorf("changes at the beginning: %q", got)
	}
	write(t, dir, map[string]string{"main.txt": "ONE\ntwo\nthree\nfour\nFIVE\n", "kept.log": "changed\n", "new/file.txt": "n\n", "more.log": "ignored\n"})
	run(t, dir, "git", "stash", "-q")
	run(t, dir, "git", "stash", "drop", "-q")
	run(t, dir, "git", "branch", "-D", "main")
	run(t, dir, "git", "commit", "-q", "--allow-empty", "-m", "mine")
	if got := sum(t, root); got != before {
		t.Error("the user's files or repository changed")
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(root), "ran")); err == nil {
		t.Error("a program that the repository names was run")
	}
}

// TestApply: changes are merged with those in the workspace; what cannot be is kept
// and named.
func TestApply(t *testing.T) {
	t.Parallel()
	root, home := repo(t)
	w := create(t, worktree.Options{Root: root, Home: home})
	dir := w.Info().Dir
	write(t, dir, map[string]string{"main.txt": "ONE\ntwo\nthree\nfour\nFIVE\n", "kept.log": "changed\n", "new/file.txt": "n\n", "staged.txt": "theirs\n"})
	if err := os.Remove(filepath.Join(dir, "untracked.txt")); err != nil {
		t.Fatal(err)
	}
	s, got := state(t, w)
	if want := []string{"modify kept.log", "modify main.txt", "create new/file.txt", "modify staged.txt", "delete untracked.txt"}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	write(t, root, map[string]string{"main.txt": "one\ntwo\nthree\nfour\nFIVE\nsix\n", "staged.txt": "mine\n"})
	git := sum(t, filepath.Join(root, ".git"))
	conflicts, err := w.Apply(t.Context(), s.ID, false)
	if err != nil || len(conflicts) != 1 || conflicts[0].Path != "staged.txt" {
		t.Errorf("conflicts %v, %v", conflicts, err)
	}
	for name, want := range map[string]string{
		"main.txt": "ONE\ntwo\nthree\nfour\nFIVE\nsix\n", "kept.log": "changed\n", "new/file.txt": "n\n", "untracked.txt": "missing", "staged.txt": "mine\n",
	} {
		if got := read(t, root, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if conflicts, err := w.Apply(t.Context(), s.ID, true); err != nil || len(conflicts) > 0 || read(t, root, "staged.txt") != "theirs\n" {
		t.Errorf("overwrite: %v, %v", conflicts, err)
	}
	if sum(t, filepath.Join(root, ".git")) != git {
		t.Error("the user's repository changed")
	}
}

// TestBranch: a worktree becomes a branch, with its commits and one of the rest;
// index, HEAD, stash and other branches of the user are as they were.
func TestBranch(t *testing.T) {
	t.Parallel()
	root, home := repo(t)
	w := create(t, worktree.Options{Root: root, Home: home, Name: "b"})
	dir := w.Info().Dir
	write(t, dir, map[string]string{"a.txt": "a\n"})
	run(t, dir, "git", "add", "a.txt")
	run(t, dir, "git", "-c", "core.fsmonitor=false", "commit", "-qm", "add a", "a.txt")
	write(t, dir, map[string]string{"b.txt": "b\n"})
	kept := func() string {
		refs := run(t, root, "git", "for-each-ref", "refs/heads/main", "refs/stash")
		return refs + sum(t, filepath.Join(root, ".git", "logs", "refs", "heads")) + read(t, root, ".git/HEAD") + read(t, root, ".git/index")
	}
	before := kept()
	branch, commit, err := w.Branch(t.Context(), "", "the rest")
	if err != nil || branch != "agent/b" {
		t.Fatal(branch, err)
	}
	if got := run(t, root, "git", "log", "--format=%s %an", "agent/b"); got != "the rest U\nadd a U\nfirst U" {
		t.Errorf("log %q", got)
	}
	if got := run(t, root, "git", "ls-tree", "-r", "--name-only", commit); !strings.Contains(got, "b.txt") || !strings.Contains(got, "untracked.txt") || strings.Contains(got, "noise.log") {
		t.Errorf("files %q", got)
	}
	if _, _, err := w.Branch(t.Context(), "", "again"); err == nil || !strings.Contains(err.Error(), "give another name") {
		t.Error(err)
	}
	if err := w.Remove(); err != nil {
		t.Fatal(err)
	}
	run(t, root, "git", "fsck", "--full", "--strict", "--no-dangling")
	run(t, root, "git", "branch", "-q", "-D", "agent/b")
	_ = os.RemoveAll(filepath.Join(root, ".git", "logs", "refs", "heads", "agent"))
	if kept() != before {
		t.Error("index, HEAD, stash or another branch changed")
	}
}

// TestWithoutGit: a copy of all files. In a subdirectory of a repository, the
// worktree is of the whole repository.
func TestWithoutGit(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, home := filepath.Join(dir, "plain"), filepath.Join(dir, "plain", ".agent")
	write(t, root, map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n", ".agent/settings.json": "{}"})
	w := create(t, worktree.Options{Root: root, Home: home})
	if got := read(t, w.Info().Dir, "sub/b.txt"); got != "b\n" || read(t, w.Info().Dir, ".agent/settings.json") != "missing" {
		t.Errorf("sub/b.txt: %q", got)
	}
	write(t, w.Info().Dir, map[string]string{"a.txt": "A\n", "large": strings.Repeat("x", 11<<20)})
	s, got := state(t, w)
	if !slices.Equal(got, []string{"modify a.txt"}) || len(s.Left) != 1 || s.Left[0].Path != "large" {
		t.Errorf("changes %q, left %v", got, s.Left)
	}
	if _, _, err := w.Branch(t.Context(), "", "m"); err == nil || !strings.Contains(err.Error(), "not in a git repository") {
		t.Error(err)
	}
	if _, err := w.Apply(t.Context(), s.ID, false); err != nil || read(t, root, "a.txt") != "A\n" {
		t.Error(err)
	}

	whole, home2 := repo(t)
	sub := create(t, worktree.Options{Root: filepath.Join(whole, "sub"), Home: home2})
	if got := read(t, sub.Info().Dir, "../main.txt"); got == "missing" || read(t, sub.Info().Dir, "deep.txt") != "deep\n" {
		t.Errorf("main.txt: %q", got)
	}
	write(t, sub.Info().Dir, map[string]string{"deep.txt": "deeper\n"})
	s, got = state(t, sub)
	if _, err := sub.Apply(t.Context(), s.ID, false); err != nil || read(t, whole, "sub/deep.txt") != "deeper\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLifetime: kept ones are listed and can be opened again; others end with their
// process, also one that is killed.
func TestLifetime(t *testing.T) {
	t.Parallel()
	root, home := repo(t)
	opts := worktree.Options{Root: root, Home: home, Name: "kept", Keep: true}
	w := create(t, opts)
	if _, err := worktree.Create(t.Context(), opts); !errors.Is(err, worktree.ErrExists) {
		t.Error(err)
	}
	for _, bad := range []string{"../x", "a/b", "-x", "x.lock", "a..b", strings.Repeat("x", 65)} {
		if _, err := worktree.Create(t.Context(), worktree.Options{Root: root, Home: home, Name: bad}); err == nil {
			t.Errorf("the name %q is allowed", bad)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	killed := exec.CommandContext(t.Context(), os.Args[0])
	killed.Env = append(os.Environ(), "WORKTREE_OF="+root, "WORKTREE_HOME="+home)
	out, err := killed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	var left string
	if _, err := fmt.Fscanln(out, &left, new(string)); err != nil || left == "" {
		t.Fatal(left, err)
	}
	if err := worktree.Sweep(home); err != nil || read(t, left, "main.txt") == "missing" {
		t.Errorf("a worktree in use was removed: %v", err)
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if err := worktree.Sweep(home); err != nil || read(t, left, "main.txt") != "missing" {
		t.Errorf("a worktree of a killed process is left: %v", err)
	}
	list, err := worktree.List(home, root)
	if err != nil || len(list) != 1 || list[0].Name != "kept" || worktree.Origin(home, list[0].Dir) != root {
		t.Errorf("list %v, %v", list, err)
	}
	again, err := worktree.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Remove(); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(changes.Worktrees(home), "*", "*"))
	stores, _ := filepath.Glob(filepath.Join(home, "snapshots", "*"))
	if err != nil || len(found)+len(stores) > 0 {
		t.Errorf("left: %q %q %v", found, stores, err)
	}
	if _, err := worktree.Open(opts); err == nil || !strings.Contains(err.Error(), "there is no worktree") {
		t.Error(err)
	}
}
