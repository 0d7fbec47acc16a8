//go:build unix

package permissions_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
)

// TestTreesWithSecrets: where no sandbox hides them, a command that reads a directory
// with secrets asks, also if a rule allows it or in mode bypass. Others do not.
func TestTreesWithSecrets(t *testing.T) {
	rules := permissions.RuleSet{Source: permissions.SourceUser, Settings: permissions.Settings{Allow: []string{
		"shell(tar c *)", "shell(tar czf *)", "shell(zip -r *)", "shell(find . -type f -exec cat {} +)", "shell(find . -exec *)", "shell(find . -name *)", "shell(rsync -a *)", "shell(cp -r *)", "shell(cp -a *)",
		"shell(grep *)", "shell(cat *)", "shell(rg *)", "shell(git grep --no-index *)", "fs-write(/**)",
	}}}
	for _, m := range []*machine{newMachine(t, permissions.ModeDefault, rules), newMachine(t, permissions.ModeBypass)} {
		for _, name := range []string{"src/a.go", "docs/a.md", "src/.env", "keys/id_rsa", "data/big/x"} {
			path := filepath.Join(m.ws, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			m.write(t, path, "x")
		}
		for line, want := range map[string]core.Verdict{
			"grep -r x .": ask, "grep -r x docs": allow, "grep -rn x src": ask, "grep -r x src --include=*.go": allow, "grep -r x src --exclude=.env": allow, "grep -r x . --exclude=.env": ask, "grep -r x . --exclude=.env --exclude-dir=keys": allow,
			"cat src/*": allow, "cat keys/*": ask, "cat src/.*": ask, "rg x": ask, "rg x src": allow, "rg -uu x src": ask,
			"find . -type f -exec cat {} +": ask, "find . -exec grep x {} +": ask, `find . -name '*.go' -type f -exec cat {} +`: allow, `find . -name '*.go' -exec cat {} \;`: allow, `find . -name '.e*' -exec cat {} \;`: ask, `find . -name '*.go' -o -name .env -exec cat {} \;`: ask,
			"find . -exec ls {} +": allow, "tar c .": ask, "tar czf /dev/null docs": allow, "tar czf /dev/null src": ask, "tar c --exclude=a.go src": ask, "tar c -C src .": ask, "zip -r - .": ask, "zip -r - docs": allow,
			"rsync -a . host:x": ask, "rsync -a docs host:x": allow, "cp -r src data": ask, "cp -a keys data": ask, "cp -r docs data": allow, "git grep --no-index x": ask,
		} {
			if d := m.decide(t, line); d.Verdict != want {
				t.Errorf("%s, %s: %s (%s), want %s", m.policy.Mode(), line, d.Verdict, d.Reason, want)
			}
		}
	}
}

// TestSecretsThatTheSandboxDoesNotHide: a search may include only secrets that the
// sandbox hides.
func TestSecretsThatTheSandboxDoesNotHide(t *testing.T) {
	m := newMachine(t, permissions.ModeWorkspace)
	for _, name := range []string{"src/.env", "deep/.env"} {
		path := filepath.Join(m.ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		m.write(t, path, "x")
	}
	m.policy = newPolicy(t, permissions.Options{
		Mode: permissions.ModeWorkspace, Home: filepath.Dir(m.ws), Workspace: []string{m.ws}, Env: m.env, Shell: "bash", Sandboxed: func() bool { return true }, Sandbox: &box{},
	})
	for line, want := range map[string]core.Verdict{"grep -r x src": allow, "grep -r x deep": ask, "grep -r x .": ask, "tar c src": allow, "tar c deep": ask, "cat src/.env": ask} {
		if d := m.decide(t, line); d.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", line, d.Verdict, d.Reason, want)
		}
	}
}
