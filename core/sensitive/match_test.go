package sensitive_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/sensitive"
)

func TestMatch(t *testing.T) {
	for path, want := range map[string]sensitive.Class{
		"/home/u/.agent/mcp/auth/x.json": sensitive.Secret, "/home/u/.agent/sessions/1/log.jsonl": sensitive.Secret,
		"/home/u/.git-credentials": sensitive.Secret, "/home/u/.config/git/credentials": sensitive.Secret,
		"/home/u/.terraform.d/credentials.tfrc.json": sensitive.Secret, "/home/u/.pulumi/credentials.json": sensitive.Secret,
		"/home/u/Passwords.KDBX": sensitive.Secret, "/home/u/.local/share/opencode/auth.json": sensitive.Secret, "/home/u/.fly/config.yml": sensitive.Secret,
		"/home/u/.config/stripe/config.toml": sensitive.Secret, "/home/u/.supabase/access-token": sensitive.Secret, "/home/u/.config/slack/Cookies": sensitive.Secret,
		"/ws/config/prod.env": sensitive.Secret, "/ws/terraform.tfstate": sensitive.Secret, "/ws/terraform.tfstate.backup": sensitive.Secret, "/ws/.vault_pass": sensitive.Secret,
		"/ws/service-account-prod.json": sensitive.Secret, "/ws/api_key.txt": sensitive.Secret, "/ws/tls/server.pem": sensitive.Secret, "/ws/id_ed25519": sensitive.Secret, "/ws/a.p12": sensitive.Secret,
		"/ws/.env": sensitive.Secret, "/ws/.ENV.local": sensitive.Secret, ".env": sensitive.Secret, "/ws/.env.": sensitive.Secret,
		"/proc/self/environ": sensitive.Secret, "/proc/1/task/2/environ": sensitive.Secret, "/etc/shadow": sensitive.Secret,
		"/ws/secrets/a.txt": sensitive.Secret, "/ws/.git/config": sensitive.Protected, "/ws/a/b/.git/hooks/pre-commit": sensitive.Protected, "/srv/x.git/config": sensitive.Protected,
		"/ws/.husky/pre-push": sensitive.Protected, "/ws/sub/.vscode/tasks.json": sensitive.Protected, "/ws/.cargo/config.toml": sensitive.Protected,
		"/ws/.yarnrc.yml": sensitive.Protected, "/ws/agents.md": sensitive.Protected, "/ws/sub/CLAUDE.md": sensitive.Protected, "/ws/.mcp.json": sensitive.Protected,
		"/etc/cron.d/x": sensitive.Protected, "/home/u/.config/systemd/user/x": sensitive.Protected,
	} {
		if e, ok := sensitive.Match(path, 0); !ok || e.Class != want {
			t.Errorf("%s: %q (%s), want %s", path, e.Class, e.Pattern, want)
		}
	}
	for _, path := range []string{
		"/ws/.env.example", "/ws/config/example.env", "/ws/id_rsa.pub", "/ws/secrets.go", "/ws/docs/credentials.md", "/ws/main.go", "/ws/.github/workflows/ci.yml",
		"/ws/.gitignore", "/ws/environment.md", "/ws/token/token.go", "/home/u/.terraform.d/plugins/x", "/home/u/.cargo/registry/x", "/ws/etc/shadow", "/proc/cpuinfo", "", "/", "..",
	} {
		if e, ok := sensitive.Match(path, 0); ok {
			t.Errorf("%s: %s, by %s", path, e.Class, e.Pattern)
		}
	}
}

func TestWordsInKnownDirectories(t *testing.T) {
	if _, ok := sensitive.Match("/src/secret-santa/main.txt", len("/src/secret-santa")); ok {
		t.Error("the name of the workspace counts")
	}
	if e, _ := sensitive.Match("/src/secret-santa/my-secret.txt", len("/src/secret-santa")); e.Class != sensitive.Secret {
		t.Error("a name in the workspace does not count")
	}
}

func TestAgentHome(t *testing.T) {
	for rel, want := range map[string]bool{"settings.json": true, "sessions/a/b": true, "MCP/auth/x.json": true, "mcp/servers": false, "skills/x/SKILL.md": false, "": false} {
		if _, ok := sensitive.MatchAgentHome(rel); ok != want {
			t.Errorf("%s: %v", rel, ok)
		}
	}
}

// Every entry matches a path made from it, so that no entry is dead.
func TestEveryEntryMatches(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range sensitive.Entries() {
		if key := string(e.Class) + string(e.Scope) + e.Pattern; seen[key] {
			t.Errorf("%s stands twice", e.Pattern)
		} else {
			seen[key] = true
		}
		path := strings.TrimSuffix(strings.ReplaceAll(e.Pattern, "*", "7x"), "/")
		if e.Scope == sensitive.AgentHome {
			if _, ok := sensitive.MatchAgentHome(path + "/x"); !ok {
				t.Errorf("%s does not match %s", e.Pattern, path)
			}
			continue
		}
		for _, p := range []string{"/" + path, "/" + strings.ToUpper(path), "/" + path + "/below"} {
			if got, ok := sensitive.Match(p, 0); !ok || got.Class == sensitive.Protected && e.Class == sensitive.Secret {
				t.Errorf("%s does not match %s", e.Pattern, p)
			}
		}
		if e.Reason == "" {
			t.Errorf("%s has no reason", e.Pattern)
		}
	}
}

func TestPathsForSandboxes(t *testing.T) {
	paths := sensitive.SecretPaths("/home/u/", "/srv/agent")
	for _, want := range []string{"/etc/shadow", "/home/u/.ssh", "/home/u/.config/google-chrome*", "/home/u/.agent/mcp/auth", "/srv/agent/sessions", "/home/u/.env*"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, p := range paths {
		if i := strings.IndexByte(p, '*'); i >= 0 && strings.Contains(p[i:], "/") {
			t.Errorf("%s: only the last element may be a pattern", p)
		}
	}
	if names := sensitive.ProtectedNames(); !slices.Contains(names, ".git/") || !slices.Contains(names, ".cargo/config.toml") {
		t.Errorf("%q", names)
	}
	for name, want := range map[string]bool{".env": true, ".npmrc": true, "sub/.docker/config.json": true, "config.json": false, "main.go": false} {
		if sensitive.IsSecret(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	for b.Loop() {
		sensitive.Match("/home/u/src/project/internal/handlers/users/create_test.go", 20)
	}
}

func TestFixture(t *testing.T) {
	for path, want := range map[string]bool{
		"testdata/server.key": true, "net/tls/testdata/ca.PEM": true, "tests/fixtures/store.p12": true,
		"server.key": false, "config/prod.key": false, "testdata": false, "testdata/.env": false, "testdata/id_rsa": false, "fixtures/credentials.json": false, "testdata.key": false,
	} {
		if got := sensitive.Fixture(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
