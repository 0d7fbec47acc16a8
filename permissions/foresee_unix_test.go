//go:build unix

package permissions_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
)

// box is a sandbox whose abilities a test chooses.
type box struct {
	weak   bool // like Landlock
	hosts  []string
	listen []int
}

func (b *box) Hides() func(string) bool {
	return func(path string) bool { return !strings.Contains(path, "deep") }
}
func (b *box) LimitsHosts() bool         { return !b.weak }
func (b *box) Layers() bool              { return !b.weak }
func (b *box) Reaches(host string) bool  { return slices.Contains(b.hosts, host) }
func (b *box) Listens(port int) bool     { return slices.Contains(b.listen, port) }
func (b *box) Getenv(name string) string { return map[string]string{"GOSUMDB": "off"}[name] }

// TestForesee: what a command will need outside the sandbox is asked for before it
// runs, and an approval opens that and no more.
func TestForesee(t *testing.T) {
	const npm = "network:registry.npmjs.org"
	for _, c := range []struct {
		name, line string
		box        box
		allow      []string
		deny       []string
		args       core.Access // a host that the model names
		want       core.Verdict
		opens      string // grants besides those of every command
		free       bool
		reason     string
	}{
		{name: "host", line: "npm ci", want: core.Ask, opens: npm, reason: "--allow 'network(registry.npmjs.org)'"},
		{name: "host in a list", line: "cd sub && npm ci | tail -3", want: core.Ask, opens: npm, reason: "downloads packages"},
		{name: "allowed host", line: "npm ci", allow: []string{"network(registry.npmjs.org)"}, want: core.Allow, opens: npm + " " + npm},
		{name: "denied host", line: "npm ci", deny: []string{"network(*)"}, want: core.Deny, reason: "network(*)"},
		{name: "host of the settings", line: "npm ci", box: box{hosts: []string{"registry.npmjs.org"}}, want: core.Allow},
		{name: "allowed command", line: "npm ci", allow: []string{"shell(npm ci)"}, want: core.Allow, free: true},
		{name: "unclear script", line: "FOO=$BAR npm ci", want: core.Ask, opens: npm},
		{name: "no need", line: "make && npm test", want: core.Allow},
		{name: "keys", line: "git push git@example.test:a/b", want: core.Ask, free: true, reason: "over SSH with your keys"},
		{name: "keys and host", line: "npm ci && git push git@example.test:a/b", want: core.Ask, free: true, reason: "outside the sandbox"},
		{name: "own server", line: "./server & curl localhost:8080", want: core.Allow},
		{name: "another server", line: "curl localhost:8080", box: box{listen: []int{8080}}, want: core.Ask, opens: "network:localhost:8080"},
		{name: "unknown host", line: "curl $URL", want: core.Ask, opens: "network:*", reason: "whole network"},
		{name: "host that the model names", line: "make", args: core.Access{Scope: core.ScopeNetwork, Resource: "example.test"}, want: core.Ask},

		{name: "weak host", line: "npm view x", box: box{weak: true}, want: core.Ask, opens: "network:*", reason: "registry.npmjs.org; this sandbox level cannot limit"},
		{name: "weak allowed host", line: "npm view x", box: box{weak: true}, allow: []string{"network(registry.npmjs.org)"}, want: core.Ask, opens: "network:registry.npmjs.org network:*"},
		{name: "weak network", line: "npm view x", box: box{weak: true}, allow: []string{"network(*)"}, want: core.Allow, opens: "network:* network:*"},
		{name: "weak named host", line: "make", box: box{weak: true}, allow: []string{"network(example.test)"}, args: core.Access{Scope: core.ScopeNetwork, Resource: "example.test"}, want: core.Ask, opens: "network:example.test", reason: "whole network"},
		{name: "weak repository", line: "git add -A && touch new", box: box{weak: true}, want: core.Allow},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, permissions.ModeWorkspace)
			for _, dir := range []string{".git", "sub"} {
				if err := os.Mkdir(filepath.Join(m.ws, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			p := newPolicy(t, permissions.Options{
				Mode: permissions.ModeWorkspace, Home: filepath.Dir(m.ws), Workspace: []string{m.ws}, Env: m.env, Shell: "bash",
				Sandboxed: func() bool { return true }, Sandbox: &c.box,
				Sets: []permissions.RuleSet{{Source: permissions.SourceUser, Trusted: true, Settings: permissions.Settings{Allow: c.allow, Deny: c.deny}}},
			})
			accesses := []core.Access{{Scope: core.ScopeShell, Resource: c.line}}
			if c.args.Scope != "" {
				accesses = append(accesses, c.args)
			}
			d := p.Decide(t.Context(), core.PermissionRequest{Session: core.SessionInfo{Dir: m.ws}, Tool: "shell", Accesses: accesses})
			if d.Verdict != c.want || !strings.Contains(strings.Join(append(slices.Clone(d.Why), d.Reason), "\n"), c.reason) {
				t.Errorf("%s: %v: %s %q", c.line, d.Verdict, d.Reason, d.Why)
			}
			var opens []string
			free := false
			for i, g := range d.Grants {
				free = free || g.Unconfined
				if i >= len(accesses) && !g.Unconfined && g.Resource != m.ws {
					opens = append(opens, string(g.Scope)+":"+g.Resource)
				}
			}
			if got := strings.Join(opens, " "); got != c.opens || free != c.free {
				t.Errorf("%s: opens %q, outside the sandbox: %v", c.line, got, free)
			}
		})
	}
}
