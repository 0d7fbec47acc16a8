package env_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/sensitive"
)

// trial returns an environment in which commands can be tried.
func trial(t *testing.T, files map[string]string) (*env.Local, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := env.NewLocal(env.LocalOptions{Dir: dir, Sandbox: &env.Sandbox{ReadOnly: sensitive.ProtectedNames()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if !l.Layers() {
		t.Skip("needs the sandbox level namespace")
	}
	return l, dir
}

// TestTry: what a command creates, changes and deletes is listed, and nothing of it
// happens.
func TestTry(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"a.txt": "a\n", "b.txt": "b\n", "mode.sh": "x\n", "touched": "t\n", "d/one": "1\n", "d/sub/two": "2\n", "e/x": "x\n", "e/sub/y": "y\n",
		"file": "f\n", ".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "", ".git/refs/x": "", ".git/hooks/pre-commit": "hook\n", ".vscode/tasks.json": "{}",
	}
	l, dir := trial(t, files)
	if err := os.Link(filepath.Join(dir, "b.txt"), filepath.Join(dir, "b2.txt")); err != nil {
		t.Fatal(err)
	}
	tried, err := l.Try(t.Context(), core.Command{Script: `
		echo A >a.txt; echo more >>b.txt; chmod +x mode.sh; touch touched; rm -r d; rm -r e; mkdir -p e/sub; echo new >e/sub/new
		rm file; mkdir file; echo in >file/in; ln -s a.txt link; mkdir made; mkfifo pipe; echo temp >temp; rm temp; echo out >/tmp/out
		echo evil >.git/hooks/pre-commit; echo evil >.vscode/tasks.json; echo ok >.git/HEAD; echo x >.envrc; echo x >../outside`})
	if err != nil {
		t.Fatal(err)
	}
	defer tried.Close()
	var got []string
	for _, c := range tried.Dirs[0].Changes {
		got = append(got, fmt.Sprintf("%s %s", c.Kind, c.Path))
	}
	want := []string{
		"create .envrc", "modify .git/HEAD", "modify a.txt", "modify b.txt", "delete d", "delete d/one", "delete d/sub", "delete d/sub/two",
		"delete e/sub/y", "create e/sub/new", "delete e/x", "delete file", "create file", "create file/in", "create link", "create made", "mode mode.sh", "create pipe",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("changes:\n%q\nwant:\n%q", got, want)
	}
	for name, text := range files {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != text {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if limits := strings.Join(tried.Limits, "\n"); !strings.Contains(limits, "b.txt has other names") {
		t.Errorf("limits %q", limits)
	}
	for path, protected := range map[string]bool{
		".envrc": true, ".git/hooks/x": true, ".git/config": true, ".git/HEAD": false, "sub/.git/HEAD": true, ".vscode/tasks.json": true, "main.go": false, ".git": true,
	} {
		if l.Protects(filepath.Join(dir, path)) != protected {
			t.Errorf("%s: protected is %t", path, !protected)
		}
	}
}

// TestTryAlone: processes and the network are effects that no list shows.
func TestTryAlone(t *testing.T) {
	t.Parallel()
	l, _ := trial(t, nil)
	tried, err := l.Try(t.Context(), core.Command{Script: "setsid sleep 100 >/dev/null 2>&1 & exit 3"})
	if err != nil {
		t.Fatal(err)
	}
	defer tried.Close()
	if tried.Exit.Code != 3 || !strings.Contains(strings.Join(tried.Limits, "\n"), "processes running") {
		t.Errorf("exit %+v, limits %q", tried.Exit, tried.Limits)
	}
	off, err := env.NewLocal(env.LocalOptions{Dir: t.TempDir(), Sandbox: &env.Sandbox{Shell: sandbox.ModeOff}})
	if err != nil {
		t.Fatal(err)
	}
	defer off.Close()
	if _, err := off.Try(context.Background(), core.Command{Script: "true"}); !errors.Is(err, env.ErrNoTrial) {
		t.Error(err)
	}
}

// TestTryEnds: a command that is tried for too long is ended, and its changes dropped.
func TestTryEnds(t *testing.T) {
	l, dir := trial(t, map[string]string{"a.txt": "a\n"})
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := l.Try(ctx, core.Command{Script: "echo b >a.txt; sleep 300"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after its time: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(temp, "*", "*", "a.txt"))
	if data, _ := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || len(left) > 0 || string(data) != "a\n" {
		t.Errorf("left %q, %v; a.txt is %q", left, err, data)
	}
}
