package permissions_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/permissions"
)

// TestOffers: what an approval can add, from the narrowest: each is enough for
// the call, and broad ones must be confirmed.
func TestOffers(t *testing.T) {
	for _, tt := range []struct {
		name     string
		accesses []core.Access
		want     string // offers separated by " | ", "?" before one to confirm
	}{
		{"a command", []core.Access{script("go test ./...")}, "shell(go test ./...) | shell(go test *)"},
		{"without arguments", []core.Access{script("go test")}, "shell(go test) | shell(go test *)"},
		{"a script of a package", []core.Access{script("npm run build -- -x")}, "shell(npm run build -- -x) | shell(npm run build *)"},
		{"a program without commands", []core.Access{script("pytest -q tests")}, "shell(pytest -q tests) | shell(pytest *)"},
		{"an interpreter", []core.Access{script("python3 x.py 1")}, "shell(python3 x.py 1) | shell(python3 x.py *)"},
		{"a module", []core.Access{script("python3 -m pytest -q")}, "shell(python3 -m pytest -q) | shell(python3 -m pytest *)"},
		{"code", []core.Access{script("python3 -c 'print(1)'")}, "shell(python3 -c 'print(1)')"},
		{"a program that runs others", []core.Access{script("xargs rm")}, ""},
		{"an argument that executes", []core.Access{script("go test -exec x ./...")}, "shell(go test -exec x ./...)"},
		{"options before the command", []core.Access{script("git -c a=b push")}, "shell(git -c a=b push)"},
		{"an unknown program", []core.Access{script("mystery -x")}, "shell(mystery -x)"},
		{"two commands", []core.Access{script("npm ci && mystery")}, "shell(npm ci), shell(mystery) | shell(npm ci *), shell(mystery)"},
		{"too many commands", []core.Access{script("m1; m2; m3; m4; m5")}, ""},
		{"the root", []core.Access{script("ls -la /")}, "?fs-read(/)"},
		{"a directory elsewhere", []core.Access{script("ls /etc")}, "?fs-read(/etc)"},
		{"a file elsewhere", []core.Access{script("cat /etc/hosts")}, "fs-read(/etc/hosts) | ?fs-read(/etc/**)"},
		{"a tree elsewhere", []core.Access{tree(core.ScopeRead, "/usr/share")}, "?fs-read(/usr/share/**) | ?fs-read(/usr/**)"},
		{"a file of the home directory", []core.Access{read(home + "/notes.txt")}, "fs-read(" + home + "/notes.txt)"},
		{"the home directory", []core.Access{tree(core.ScopeRead, home)}, "?fs-read(" + home + "/**)"},
		{"everything", []core.Access{tree(core.ScopeRead, "/")}, "?fs-read(/**)"},
		{"a file", []core.Access{write(ws + "/docs/x.md")}, "fs-write(" + ws + "/docs/x.md) | fs-write(" + ws + "/docs/**)"},
		{"a file at the top", []core.Access{write(ws + "/x.md")}, "fs-write(" + ws + "/x.md) | ?fs-write(" + ws + "/**)"},
		{"a host", []core.Access{other(core.ScopeNetwork, "proxy.golang.org")}, "network(proxy.golang.org) | network(*.golang.org)"},
		{"a domain", []core.Access{other(core.ScopeNetwork, "golang.org")}, "network(golang.org)"},
		{"a public suffix", []core.Access{other(core.ScopeNetwork, "ann.github.io")}, "network(ann.github.io)"},
		{"a port", []core.Access{other(core.ScopeNetwork, "127.0.0.1:80")}, "network(127.0.0.1:80) | network(127.0.0.1)"},
		{"a fetch", []core.Access{other(core.ScopePlugin, "web/web_fetch"), other(core.ScopeNetwork, "golang.org")}, "network(golang.org)"},
		{"a server's tool", []core.Access{other(core.ScopeMCP, "github/get")}, "mcp(github/get) | mcp(github/*)"},
		{"secrets", []core.Access{script("cat .env")}, ""},
		{"secrets among others", []core.Access{script("cat .env; mystery")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPolicy(t, worldly(options(permissions.ModeDefault)))
			d := p.Decide(t.Context(), request("shell", tt.accesses...))
			var got []string
			for _, o := range d.Offers {
				text := strings.Join(o.Rules, ", ")
				if o.Confirm != "" {
					text = "?" + text
				}
				got = append(got, text)
				req := request("shell", tt.accesses...)
				req.Rules = o.Rules
				if d := p.Decide(t.Context(), req); d.Verdict != allow {
					t.Errorf("with %s it still is %s: %s", text, d.Verdict, d.Reason)
				}
			}
			if strings.Join(got, " | ") != tt.want {
				t.Errorf("got %s, want %s (%s: %s)", strings.Join(got, " | "), tt.want, d.Verdict, d.Reason)
			}
		})
	}
}

// TestWhy: what the user is told, the gravest first, without the names of scopes.
func TestWhy(t *testing.T) {
	rules := settings("", "network(asked.example)", "")
	for script, want := range map[string]string{
		"go test ./...":              "go test may run programs or change files",
		"cat /etc/hosts .env; npm i": "reads .env, which may contain secrets | npm is not known to be read-only | reads /etc/hosts, outside the workspace",
		"echo x > .git/config":       "writes .git/config, which programs run or trust",
		"rm -rf $X; cat .env":        "`rm -rf $X` deletes up to 2 files with content that git does not have, in the working directory | reads .env, which may contain secrets | $X may be an option",
		"rm docs/x.md && mystery":    "`rm docs/x.md` deletes docs/x.md, whose content git does not have | mode default asks before deleting files | mystery is not known to be read-only",
		"rm -r docs":                 "deletes docs/x.md, whose content git does not have | mode default asks before deleting files",
	} {
		o := options(permissions.ModeDefault, user(rules))
		o.Env = env.NewMemory(ws, map[string]string{"docs/x.md": "x", ".env": "x"})
		d := newPolicy(t, o).Decide(t.Context(), request("shell", core.Access{Scope: core.ScopeShell, Resource: script}))
		if got := strings.Join(d.Why, " | "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", script, got, want)
		}
	}
	d := newPolicy(t, options(permissions.ModeDefault, user(rules))).Decide(t.Context(), request("t", other(core.ScopeNetwork, "asked.example"), other(core.ScopeMCP, "a/b")))
	if got, want := strings.Join(d.Why, " | "), "the rule network(asked.example) (user) asks | mode default asks before MCP tools"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
