package env

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// newConfined returns an environment whose commands are confined, its workspace
// and a directory of secrets. It skips the test if no level works.
func newConfined(t *testing.T) (l *Local, ws, secrets string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, secrets = filepath.Join(base, "ws"), filepath.Join(base, "ws", "keys")
	for file, text := range map[string]string{
		ws + "/.git/config": "[core]\n", ws + "/pkg/.env": "TOKEN=x\n", ws + "/file": "text\n", secrets + "/key": "secret\n",
		ws + "/pkg/.git/config": "[core]\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	l, err = NewLocal(LocalOptions{Dir: ws, Sandbox: &Sandbox{
		Shell: sandbox.ModeRequire, Masked: []string{secrets}, Sensitive: func(name string) bool { return filepath.Base(name) == ".env" },
		ReadOnly: []string{".git/", ".envrc"},
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
		t.Skip("no sandbox level works on this machine")
	}
	return l, ws, secrets
}

func grant(scope core.Scope, resource string) core.Grant {
	return core.Grant{Access: core.Access{Scope: scope, Resource: resource}}
}

func TestSandboxFollowsTheGrants(t *testing.T) {
	l, ws, secrets := newConfined(t)
	all := grant(core.ScopeWrite, ws)
	all.Recursive = true
	unconfined := func(script string) core.Grant {
		g := grant(core.ScopeShell, script)
		g.Unconfined = true
		return g
	}
	tests := []struct {
		name, script string
		grants       []core.Grant
		ok           bool
		says         string // in the output
	}{
		{name: "nothing granted", script: "echo x >file", says: "[sandbox: the command cannot write " + ws + "/file. To run"},
		{name: "reading", script: "cat file", ok: true, says: "text"},
		{name: "a tree", script: "echo x >pkg/new", grants: []core.Grant{all}, ok: true},
		{name: "one file", script: "echo x >file", grants: []core.Grant{grant(core.ScopeWrite, ws+"/file")}, ok: true},
		{name: "another file", script: "echo x >pkg/other", grants: []core.Grant{grant(core.ScopeWrite, ws+"/file")}},
		{name: "git", script: "echo x >>.git/config", grants: []core.Grant{all}, says: ".git/config is protected"},
		{name: "git of a part", script: "echo x >>pkg/.git/config", grants: []core.Grant{all}},
		{name: "a pin that was granted", script: "echo x >>.git/config", grants: []core.Grant{all, grant(core.ScopeWrite, ws+"/.git")}, ok: true},
		{name: "a secret", script: "cat keys/key", grants: []core.Grant{all}, says: "keys/key is hidden from commands"},
		{name: "a secret that was granted", script: "cat keys/key", grants: []core.Grant{all, grant(core.ScopeRead, secrets)}, ok: true, says: "secret"},
		{name: "a sensitive file", script: "cat pkg/.env"},
		{name: "a sensitive file that was granted", script: "cat pkg/.env", grants: []core.Grant{grant(core.ScopeRead, ws+"/pkg/.env")}, ok: true, says: "TOKEN"},
		{name: "unconfined", script: "echo x >>.git/config", grants: []core.Grant{unconfined("echo x >>.git/config")}, ok: true},
		{name: "another is unconfined", script: "echo y >>.git/config", grants: []core.Grant{unconfined("echo x >>.git/config")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			grants := append(test.grants, grant(core.ScopeShell, test.script))
			out, exit, err := core.Exec(context.Background(), l, core.Command{Script: test.script, Grants: grants})
			if err != nil {
				t.Fatal(err)
			}
			if (exit.Code == 0) != test.ok || !strings.Contains(string(out), test.says) {
				t.Errorf("exit %+v\n%s", exit, out)
			}
			if test.ok && bytes.Contains(out, []byte("[sandbox")) {
				t.Errorf("a note on a successful command:\n%s", out)
			}
		})
	}
	if out, exit, err := core.Exec(context.Background(), l, core.Command{Script: "echo x >>.git/config"}); err != nil || exit.Code != 0 {
		t.Errorf("a command of the host: %+v, %v\n%s", exit, err, out)
	}
}

func TestSandboxIsASetting(t *testing.T) {
	for _, bad := range []*Sandbox{{Shell: "best"}, {Skills: "x"}, {Hosts: []string{"a b"}}} {
		if _, err := NewLocal(LocalOptions{Dir: t.TempDir(), Sandbox: bad}); err == nil || !strings.Contains(err.Error(), "sandbox") {
			t.Errorf("%+v: error %v", *bad, err)
		}
	}
	for name, s := range map[string]*Sandbox{"none": nil, "off": {Shell: sandbox.ModeOff}} {
		l, err := NewLocal(LocalOptions{Dir: t.TempDir(), Sandbox: s})
		if err != nil {
			t.Fatal(err)
		}
		if l.Sandboxed(t.Context()) {
			t.Errorf("%s: sandboxed", name)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestScanIsBounded(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b", "c", "d", "e", "f", "g", "h")
	for _, file := range []string{filepath.Join(deep, ".env"), filepath.Join(dir, "a", "b", ".env"), filepath.Join(dir, "node_modules", "x", ".env"), filepath.Join(dir, "sub", ".git", "config")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var masked, pinned []string
	scan([]string{dir}, newListings(newNames([]string{".git/"}), func(name string) bool { return filepath.Base(name) == ".env" }),
		func(p string) { masked = append(masked, p) }, func(p string) { pinned = append(pinned, p) })
	if len(masked) != 1 || masked[0] != filepath.Join(dir, "a", "b", ".env") {
		t.Errorf("masked %q", masked)
	}
	if len(pinned) != 1 || pinned[0] != filepath.Join(dir, "sub", ".git") {
		t.Errorf("pinned %q", pinned)
	}
}

func TestGitDirs(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "repo", ".git", "worktrees", "w")
	tree := filepath.Join(dir, "w")
	if err := errors.Join(os.MkdirAll(at, 0o755), os.MkdirAll(tree, 0o755),
		os.WriteFile(filepath.Join(tree, ".git"), []byte("gitdir: "+at+"\n"), 0o600),
		os.WriteFile(filepath.Join(at, "commondir"), []byte("../..\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	got := gitDirs(tree)
	if len(got) != 2 || got[0] != at || got[1] != filepath.Join(dir, "repo", ".git") {
		t.Errorf("%q", got)
	}
	if got := gitDirs(dir); got != nil {
		t.Errorf("without a file .git: %q", got)
	}
}

// TestSandboxInterrupt: an interrupt reaches the command, not what confines it.
func TestSandboxInterrupt(t *testing.T) {
	l, _, _ := newConfined(t)
	const script = `trap 'echo cleaned; exit 3' INT; echo ready; while :; do sleep 0.05; done`
	for _, terminal := range []bool{false, true} {
		r, w := io.Pipe()
		interrupt := make(chan struct{})
		env := core.Restrict(l, []core.Grant{grant(core.ScopeShell, script)}, nil)
		p, err := env.Start(t.Context(), core.Command{Script: script, Stdout: w, Stderr: w, Terminal: terminal, Interrupt: interrupt})
		if err != nil {
			t.Fatal(err)
		}
		out := bufio.NewReader(r)
		if line, err := out.ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		close(interrupt)
		if line, err := out.ReadString('\n'); line != "cleaned\n" {
			t.Errorf("%q, %v", line, err)
		}
		go func() { _, _ = io.Copy(io.Discard, r) }() // until Close
		exit, err := p.Wait()
		w.Close()
		if exit.Code != 3 || err != nil || exit.Sandbox == "none" {
			t.Errorf("exit %+v, %v", exit, err)
		}
	}
}
