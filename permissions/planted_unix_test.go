//go:build unix

package permissions_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
)

// workspaceMode returns a machine in mode workspace with a sandbox.
func workspaceMode(t *testing.T, sets ...permissions.RuleSet) *machine {
	t.Helper()
	m := newMachine(t, permissions.ModeWorkspace, sets...)
	top := filepath.Dir(m.ws)
	m.policy = newPolicy(t, permissions.Options{
		Mode: permissions.ModeWorkspace, Sets: sets, Home: top, Workspace: []string{m.ws}, AgentHome: filepath.Join(top, ".agent"),
		Env: m.env, Shell: "bash", Sandboxed: func() bool { return true },
	})
	return m
}

// decide returns the decision on a command line.
func (m *machine) decide(t *testing.T, line string) core.Decision {
	t.Helper()
	return m.policy.Decide(t.Context(), core.PermissionRequest{
		Tool: "shell", Accesses: []core.Access{script(line)}, Session: core.SessionInfo{Dir: m.ws},
	})
}

func TestSecretsAreAskedForInWorkspaceMode(t *testing.T) {
	m := workspaceMode(t)
	top := filepath.Dir(m.ws)
	for _, name := range []string{
		".agent/mcp/auth/s.json", ".agent/sessions/1/log.jsonl", ".git-credentials", ".config/git/credentials", ".terraform.d/credentials.tfrc.json", "ws/config/prod.env",
		"ws/terraform.tfstate", "ws/.vault_pass", "ws/service-account-1.json", "ws/api_key.txt", "ws/plain.txt",
	} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		m.write(t, path, "x")
	}
	for line, want := range map[string]core.Verdict{
		"cat ~/.agent/mcp/auth/*.json": ask, "cat ~/.agent/sessions/1/log.jsonl": ask, "head -1 ~/.git-credentials": ask, "cat ~/.config/git/credentials": ask,
		"grep -r token ~/.terraform.d": ask, "cat config/prod.env": ask, "cat terraform.tfstate": ask, "cat .vault_pass": ask, "cat *.json": ask, "cat API_KEY.txt; true": ask,
		// The sandbox hides what a search or a pattern includes besides other files.
		"grep -r x .": allow, "grep x *": allow, "grep -r x --include=*.txt .": allow, "grep x *.txt": allow, "cat *": allow,
		"grep x config/*": ask, "grep x prod.env *": ask, "grep -r x . && npm ci": allow, "grep -r x . && git config a.b c": ask,
		"cat plain.txt": allow, "python3 x.py api_key.txt": ask, "wc -l plain.txt": allow,
	} {
		if d := m.decide(t, line); d.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", line, d.Verdict, d.Reason, want)
		}
	}
}

func TestWhatRunsLaterIsProtectedAtAnyDepth(t *testing.T) {
	m := workspaceMode(t)
	for line, want := range map[string]core.Verdict{
		"git init t && git -C t config core.fsmonitor x": ask, "git config core.hooksPath h": ask, "git init --template=h t": ask, "git clone -c core.fsmonitor=x u": ask,
		"git remote add o u": ask, "git submodule add u": ask, "git --git-dir=t/.git config alias.x '!y'": ask, "git config -f t/.git/config a.b c": ask,
		"mkdir -p a/b/.git/hooks": ask, "echo x > a/b/.husky/pre-commit": ask, "cp x sub/.vscode/tasks.json": ask, "touch sub/.envrc": ask, "tee sub/AGENTS.md": ask, "touch d/.cargo/config.toml": ask,
		"mv x y/.yarnrc.yml": ask, "git init t": allow, "git config user.name": allow, "git config --get core.editor": allow, "git add AGENTS.md": allow, "git add remote x": allow, "git commit -m 'Explain AGENTS.md'": allow,
		"git add .env": ask,
	} {
		if d := m.decide(t, line); d.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", line, d.Verdict, d.Reason, want)
		}
	}
	for _, name := range []string{"a/.git/config", "a/b/.husky/x", ".envrc", "x/.mcp.json", "x/.vscode/tasks.json", "x/.cargo/config.toml", "x/.yarnrc.yml", "x/AGENTS.md", "x/claude.md", "x.git/hooks/post-update"} {
		d := m.policy.Decide(t.Context(), core.PermissionRequest{Tool: "write_file", Accesses: []core.Access{{Scope: core.ScopeWrite, Resource: filepath.Join(m.ws, name), Inside: true}}, Session: core.SessionInfo{Dir: m.ws}})
		if d.Verdict != ask {
			t.Errorf("writing %s: %s", name, d.Verdict)
		}
	}
}

func TestWebFetchAndHosts(t *testing.T) {
	for _, test := range []struct {
		mode              permissions.Mode
		allow, deny, host string
		want              core.Verdict
	}{
		{permissions.ModeDefault, "network(docs.example)", "", "docs.example", allow},
		{permissions.ModeDefault, "network(docs.example)", "", "other.example", ask},
		{permissions.ModeDefault, "network(localhost:8080)", "", "localhost:8080", allow},
		{permissions.ModeDefault, "network(localhost:8080)", "", "localhost:9090", ask},
		{permissions.ModeDefault, "plugin(web/*)", "", "docs.example", ask},
		{permissions.ModeBypass, "", "network(localhost:8080)", "localhost:8080", deny},
		{permissions.ModeBypass, "", "network(localhost:8080)", "localhost:9090", allow},
		{permissions.ModeBypass, "", "network(x.example:443)", "x.example", deny},
	} {
		p := newPolicy(t, options(test.mode, user(settings(test.allow, "", test.deny))))
		d := p.Decide(t.Context(), request("web_fetch", other(core.ScopePlugin, "web/web_fetch"), other(core.ScopeNetwork, test.host)))
		if d.Verdict != test.want {
			t.Errorf("%+v: %s (%s)", test, d.Verdict, d.Reason)
		}
	}
}
