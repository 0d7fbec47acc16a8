package env

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// eachLevel runs a test with a repository on each sandbox level of this machine.
func eachLevel(t *testing.T, test func(t *testing.T, l *Local, ws string)) {
	t.Helper()
	for _, mode := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock} {
		t.Run(string(mode), func(t *testing.T) {
			l, ws := newRepository(t, mode)
			test(t, l, ws)
		})
	}
}

// newRepository returns an environment whose workspace is a repository of git.
func newRepository(t *testing.T, mode sandbox.Mode) (l *Local, ws string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	base := realDir(t)
	ws, home := filepath.Join(base, "ws"), filepath.Join(base, "home")
	script := `git init -q -b main . && git config user.name a && git config user.email a@b && echo a >f && git add f && git commit -qm first && git branch side && echo .env >.git/info/exclude && echo SECRET=1 >.env`
	if err := errors.Join(os.MkdirAll(ws, 0o755), os.MkdirAll(home, 0o755),
		os.WriteFile(filepath.Join(home, ".gitconfig"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
	setup := exec.Command("sh", "-c", script)
	setup.Dir, setup.Env = ws, environ
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l, err := NewLocal(LocalOptions{Dir: ws, Home: home, Environ: environ, Sandbox: &Sandbox{
		Shell: mode, Sensitive: func(name string) bool { return filepath.Base(name) == ".env" || strings.HasSuffix(name, ".key") },
		Fixture: func(path string) bool { return strings.HasPrefix(path, "testdata/") }, ReadOnly: []string{".git/", ".envrc", ".vscode/", ".cargo/config.toml", "*.git/hooks/"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if !l.Sandboxed(t.Context()) {
		t.Skip("this level does not work on this machine")
	}
	return l, ws
}

// TestGitWorks runs real git in the sandbox.
func TestGitWorks(t *testing.T) { eachLevel(t, testGitWorks) }

func testGitWorks(t *testing.T, l *Local, ws string) {
	for _, script := range []string{
		"echo b >>f && git add f && git commit -qm second && git status --porcelain",
		"echo c >>f && git stash && git stash pop && git checkout f",
		"git checkout -q -b topic && echo x >x && git add x && git commit -qm x && git switch -q main",
		"git merge -q --no-ff -m merged topic && git tag v1 && git tag -a -m v2 v2",
		"git branch -D topic", "git switch -q side && echo y >y && git add y && git commit -qm y && git rebase -q main && git switch -q main",
		"git worktree add -q tree side && cd tree && echo z >z && git add z && git commit -qm z && cd .. && git worktree remove tree",
		"git checkout -q -b tracking --track main || git checkout -q -b tracking main; git switch -q main", "git reset -q --hard HEAD^ && git gc -q && git fsck",
		"git cherry-pick side && git revert --no-edit HEAD && git mv f g && git commit -qm moved && git clean -fdq",
		"git init -q sub && cd sub && echo q >q && git add q && git -c user.name=a -c user.email=a@b commit -qm sub && cd .. && rm -rf sub",
	} {
		out, exit, err := core.Exec(t.Context(), l, workspaceCommand(ws, script))
		if err != nil || exit.Code != 0 || strings.Contains(string(out), "[sandbox") {
			t.Errorf("%s: exit %+v, error %v\n%s", script, exit, err, out)
		}
	}
}

// TestGitRunsNothingLater tries to make git run a program after the command.
func TestGitRunsNothingLater(t *testing.T) { eachLevel(t, testGitRunsNothingLater) }

func testGitRunsNothingLater(t *testing.T, l *Local, ws string) {
	for script, says := range map[string]string{
		"git config core.fsmonitor x":                                                  ".git/config is protected",
		"echo x >>.git/config":                                                         ".git/config is protected",
		"echo x >.git/hooks/pre-commit":                                                "is protected",
		"mv .git/hooks .git/h":                                                         "",
		"mv .git git && mkdir .git":                                                    "",
		"echo '* filter=x' >.git/info/attributes":                                      ".git/info/attributes.from-sandbox",
		"echo /x >.git/objects/info/alternates":                                        "alternates.from-sandbox",
		"echo ../evil >.git/commondir":                                                 ".git/commondir.from-sandbox",
		"git init -q t && git -C t config core.fsmonitor x":                            "t/.git/config.from-sandbox",
		"git init -q a/b/c/d/e/f && echo x >a/b/c/d/e/f/.git/hooks/post-commit":        "f/.git/hooks/post-commit.from-sandbox",
		"git init -q --bare bare && git -C bare config alias.st '!x'":                  "bare/config.from-sandbox",
		"mkdir -p lib && echo 'gitdir: ../elsewhere' >lib/.git":                        "lib/.git.from-sandbox",
		"mkdir -p p/.cargo && echo x >p/.cargo/config.toml":                            "p/.cargo/config.toml.from-sandbox",
		"mkdir -p 1/2/3/4/5/6/.vscode && echo x >1/2/3/4/5/6/.vscode/tasks.json":       "6/.vscode.from-sandbox",
		"git config -f .gitx alias.x y; echo x >.envrc":                                ".envrc.from-sandbox",
		"mkdir -p .git/rebase-merge; echo 'exec x' >.git/rebase-merge/git-rebase-todo": "git-rebase-todo.from-sandbox",
	} {
		out, _, err := core.Exec(t.Context(), l, workspaceCommand(ws, script))
		if err != nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: error %v, want %q in\n%s", script, err, says, out)
		}
	}
	for _, path := range []string{".git/info/attributes", ".git/objects/info/alternates", ".git/commondir", "t/.git/config", "lib/.git", ".envrc", "p/.cargo/config.toml", "1/2/3/4/5/6/.vscode"} {
		if _, err := os.Lstat(filepath.Join(ws, path)); err == nil {
			t.Errorf("%s is there", path)
		}
	}
	if text, err := os.ReadFile(filepath.Join(ws, ".git", "config")); err != nil || !harmlessConfig(filepath.Join(ws, ".git", "config")) {
		t.Errorf("the settings are %q (error %v)", text, err)
	}
}

// TestOwnFilesStay checks that what the agent itself writes meanwhile, below a
// protected directory of the workspace, is not set aside.
func TestOwnFilesStay(t *testing.T) {
	l, ws := newRepository(t, sandbox.ModeNamespace)
	own := filepath.Join(ws, ".vscode", "log")
	if err := errors.Join(os.Mkdir(filepath.Dir(own), 0o755), os.WriteFile(own, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	p, err := l.Start(t.Context(), workspaceCommand(ws, "sleep 0.05"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, []byte("more"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "more" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestGitSignsNothing checks that a command says what git left out.
func TestGitSignsNothing(t *testing.T) {
	l, ws := newRepository(t, sandbox.ModeNamespace)
	f, err := os.OpenFile(filepath.Join(l.info.Home, ".gitconfig"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("[commit]\n\tgpgsign = true\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	out, exit, err := core.Exec(t.Context(), l, workspaceCommand(ws, "echo s >s && git add s && git commit -qm s"))
	if err != nil || exit.Code != 0 || !strings.Contains(string(out), "unsigned") {
		t.Errorf("exit %+v, error %v\n%s", exit, err, out)
	}
}

// TestFixtures: a key of a test is visible if it is committed.
func TestFixtures(t *testing.T) {
	eachLevel(t, func(t *testing.T, l *Local, ws string) {
		setup := exec.Command("sh", "-c", "mkdir -p testdata x/testdata && cd testdata && for f in a b; do echo $f >$f.key; done && cp a.key ../a.key && cp b.key ../x/testdata/b.key && cd .. && git add -f testdata/a.key a.key x")
		setup.Dir = ws
		if out, err := setup.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, _, err := core.Exec(t.Context(), l, workspaceCommand(ws, "cat testdata/a.key testdata/b.key a.key 2>/dev/null; true"))
		if err != nil || string(out) != "a\n" {
			t.Errorf("error %v, want only the committed key of a test:\n%s", err, out)
		}
	})
}
