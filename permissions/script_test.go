package permissions_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/permissions"
)

// world is an environment with files.
func world() core.Environment {
	return env.NewMemory(ws, map[string]string{
		"a.go": "", "b.go": "", "docs/x.md": "", "docs/y.md": "", "docs/private/z.md": "",
		"app/.env": "", "app/main.js": "", "keys/server.pem": "", "many/" + strings.Repeat("x", 10): "",
		"web/node_modules/lib/credentials.json": "", "web/index.html": "",
		home + "/.ssh/id_rsa": "", "/etc/hosts": "",
	})
}

// worldly sets the environment of a policy.
func worldly(o permissions.Options) permissions.Options {
	o.Env = world()
	return o
}

func TestScripts(t *testing.T) {
	const def, edits, readOnly, bypass = permissions.ModeDefault, permissions.ModeAcceptEdits, permissions.ModeReadOnly, permissions.ModeBypass
	tests := []struct {
		name             string
		mode             permissions.Mode
		allow, ask, deny string
		script           string
		want             core.Verdict
		rule             string // that decided
		says             string // part of the reason
	}{
		{"reading inside", def, "", "", "", "cat a.go", allow, "mode default", "mode default allows everything the command does"},
		{"reading inside, read-only", readOnly, "", "", "", "cat a.go b.go", allow, "mode read-only", ""},
		{"a pipe", def, "", "", "", "cat a.go | cat", allow, "mode default", ""},
		{"a list", def, "", "", "", "cd docs && cat x.md && cat ../a.go", allow, "mode default", ""},
		{"a glob", def, "", "", "", "cat docs/*.md", allow, "mode default", ""},
		{"into nothing", def, "", "", "", "cat a.go > /dev/null 2>&1", allow, "mode default", ""},
		{"an assignment", def, "", "", "", "x=1", allow, "mode default", ""},
		{"reading outside", def, "", "", "", "cat a.go /etc/hosts", ask, "mode default", `reading "/etc/hosts" by "cat a.go /etc/hosts", which is outside`},
		{"out by dots", def, "", "", "", "cat ../../../../etc/hosts", ask, "mode default", `"/etc/hosts"`},
		{"out by cd", def, "", "", "", "cd / && cat etc/hosts", ask, "mode default", `"/" by "cd /"`},
		{"a secret", def, "", "", "", "cat app/.env", ask, "sensitive", `reading "` + ws + `/app/.env" by "cat app/.env" always needs approval: the path may contain secrets`},
		{"a secret, bypass", bypass, "", "", "", "cat app/.env", ask, "sensitive", ""},
		{"a secret by a glob", def, "", "", "", "cat keys/*", ask, "sensitive", "server.pem"},
		{"no secret by a glob", def, "", "", "", "cat app/*", allow, "mode default", ""},
		{"a secret by an input", def, "", "", "", "cat < app/.env", ask, "sensitive", "app/.env"},
		{"a secret despite an allow rule", def, "shell(cat *)", "", "", "cat app/.env", ask, "sensitive", ""},
		{"reading the file is allowed", def, "fs-read(/etc/**)", "", "", "cat /etc/hosts", allow, "mode default", ""},
		{"the command is allowed", def, "shell(cat *)", "", "", "cat /etc/hosts", allow, "shell(cat *)", ""},
		{"a denied file", bypass, "shell(*)", "", "fs-read(./docs/private/**)", "cat docs/private/z.md", deny, "fs-read(./docs/private/**)", ""},
		{"a denied file by a glob", bypass, "", "", "fs-read(./docs/private/**)", "cat docs/*/*", deny, "fs-read(./docs/private/**)", ""},
		{"an asked file", def, "", "fs-read(./docs/x.md)", "", "cat docs/*.md", ask, "fs-read(./docs/x.md)", ""},
		{"a denied redirect", bypass, "shell(*)", "", "fs-write(./docs/**)", "unknown > docs/x.md", deny, "fs-write(./docs/**)", ""},
		{"an ask rule for a read-only command", def, "", "shell(cat *)", "", "cat a.go", ask, "shell(cat *)", ""},
		{"writing", def, "", "", "", "cat a.go > c.go", ask, "mode default", `writing "` + ws + `/c.go"`},
		{"writing, edits accepted", edits, "", "", "", "cat a.go > c.go", allow, "mode accept-edits", ""},
		{"writing, read-only", readOnly, "", "", "", "cat a.go > c.go", deny, "mode read-only", ""},
		{"writing outside, edits accepted", edits, "", "", "", "cat a.go > /tmp/c.go", ask, "mode accept-edits", ""},
		{"writing a protected file", edits, "", "", "", "cat a.go > .git/hooks/pre-commit", ask, "protected", ""},
		{"one of several", def, "shell(go *)", "", "", "go test ./... && cat a.go && mystery -x | cat", ask, "mode default", `asks before the command "mystery -x"`},
		{"one of several is denied", bypass, "shell(*)", "", "shell(git push *)", "go test && git push -f", deny, "shell(git push *)", ""},
		{"not quoted text", bypass, "", "", "shell(git push *)", "go test && echo 'git push'", allow, "mode bypass", ""},
		{"quoted hazard", bypass, "", "", "", "git commit -m 'x; rm -rf /'", allow, "mode bypass", ""},
		{"hazard", bypass, "shell(*)", "", "", "ls; rm -rf /", deny, "builtin", "removes"},
		{"unknown words for the star", def, "shell(go test *)", "", "", "go test ./$PKG", allow, "shell(go test *)", ""},
		{"a word that may be -exec", def, "shell(go test *)", "", "", "go test $PKG", ask, "mode default", "does not extend"},
		{"unknown words of the rule", def, "shell(go test *)", "", "", "go $PKG", ask, "mode default", ""},
		{"a substitution in a word", def, "shell(timeout *)", "", "", "timeout 5 make $(mystery)", ask, "mode default", "mystery"},
		{"not known", def, "shell(*)", "", "", "$X -rf", ask, "mode default", "$X"},
		{"a redirect of an unknown command", bypass, "", "", "fs-write(./docs/**)", "$X -rf > docs/x.md", deny, "fs-write(./docs/**)", ""},
		{"device", bypass, "shell(*)", "", "", "cat x > /dev/sda", deny, "builtin", "raw device"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPolicy(t, worldly(options(tt.mode, user(settings(tt.allow, tt.ask, tt.deny)))))
			d := p.Decide(t.Context(), request("shell", script(tt.script)))
			if d.Verdict != tt.want || d.Rule != tt.rule || !strings.Contains(d.Reason, tt.says) {
				t.Errorf("%s: %s by %q: %s\nwant %s by %q: …%s…", tt.script, d.Verdict, d.Rule, d.Reason, tt.want, tt.rule, tt.says)
			}
			if strings.Contains(d.Reason, "\n") {
				t.Errorf("the reason has several lines: %s", d.Reason)
			}
		})
	}
}

// TestOtherShells: a line for an unknown shell is judged
// only as a whole.
func TestOtherShells(t *testing.T) {
	for _, shell := range []string{"cmd", "powershell", ""} {
		o := options(permissions.ModeDefault, user(settings("shell(dir *); shell(git status)", "", "shell(del *)")))
		o.Shell = shell
		p := newPolicy(t, o)
		for _, tt := range []struct {
			line string
			want core.Verdict
		}{
			{"dir", ask},
			{"dir /s", ask},
			{"dir *", allow},
			{"git status", allow},
			{"git status & x", ask},
			{"type a.txt", ask},
			{"dir & del x", deny},
			{"DEL x", deny},
			{`"d"el x`, deny},
		} {
			if d := p.Decide(t.Context(), request("shell", script(tt.line))); d.Verdict != tt.want {
				t.Errorf("shell %q, %s: %s by %s, want %s", shell, tt.line, d.Verdict, d.Rule, tt.want)
			}
		}
		d := p.Decide(t.Context(), request("shell", script("npm test & echo done")))
		if got := exactRules(d); got != "shell(npm test & echo done)" {
			t.Errorf("shell %q: always %q, want the whole line", shell, got)
		}
	}
}

func TestSandboxedCommands(t *testing.T) {
	rules := settings("shell(npm ci); network(proxy.golang.org); fs-write(/var/cache/app/**)", "shell(docker *)", "shell(git push *); fs-read(./docs/private/**)")
	o := worldly(options(permissions.ModeWorkspace, user(rules)))
	o.Sandboxed = func() bool { return true }
	p := newPolicy(t, o)
	for _, tt := range []struct {
		script string
		leaves bool // the call asks to run outside
		want   core.Verdict
		free   bool
		says   string
	}{
		{"go test ./...", false, allow, false, "runs in the sandbox"},
		{"$X --version", false, allow, false, "sandbox"},
		{"cat /etc/hosts", false, allow, false, ""},
		{"go test > out.txt", false, allow, false, ""},
		{"go test > /tmp/out.txt", false, allow, false, ""},
		{"go test > /srv/out.txt", false, ask, true, "/srv/out.txt"},
		{"go test > .git/x", false, ask, true, "protected"},
		{"cat app/.env", false, ask, true, "secrets"},
		{"cat docs/private/z.md", false, deny, false, ""},
		{"git push", false, deny, false, ""},
		{"docker ps", false, ask, true, "shell(docker *)"},
		{"npm ci", false, allow, true, ""},
		{"npm ci && go test", false, allow, false, ""},
		{"go test ./...", true, ask, true, "outside the sandbox"},
		{"npm ci", true, allow, true, ""},
	} {
		a := script(tt.script)
		a.Unconfined = tt.leaves
		d := p.Decide(t.Context(), request("shell", a))
		if d.Verdict != tt.want || !strings.Contains(d.Reason, tt.says) {
			t.Errorf("%s: %s: %s; want %s", tt.script, d.Verdict, d.Reason, tt.want)
		}
		if tt.want == deny {
			continue
		}
		if outside := strings.HasSuffix(d.Reason, "; if approved, it runs outside the sandbox"); outside != (d.Verdict == ask) {
			t.Errorf("%s: %s: %s", tt.script, d.Verdict, d.Reason)
		}
		if d.Grants[0].Unconfined != tt.free {
			t.Errorf("%s: Unconfined is %t, want %t", tt.script, d.Grants[0].Unconfined, tt.free)
		}
		writable, host := false, false
		for _, g := range d.Grants[1:] {
			writable = writable || g.Scope == core.ScopeWrite && g.Resource == ws && g.Recursive
			host = host || g.Scope == core.ScopeNetwork && g.Resource == "proxy.golang.org"
		}
		if writable == tt.free || host == tt.free {
			t.Errorf("%s: the sandbox may write the workspace: %t, reach the host: %t", tt.script, writable, host)
		}
	}
	// Without a sandbox commands ask, except read-only ones.
	o.Sandboxed = nil
	p = newPolicy(t, o)
	for line, want := range map[string]core.Verdict{"go test ./...": ask, "cat a.go": allow, "cat /etc/hosts": ask, "npm ci": allow} {
		if d := p.Decide(t.Context(), request("shell", script(line))); d.Verdict != want || len(d.Grants) > 1 {
			t.Errorf("without a sandbox, %s: %s (%s) with %d grants, want %s", line, d.Verdict, d.Reason, len(d.Grants), want)
		}
	}
	// A read-only command may write nothing in mode default.
	o.Sandboxed, o.Mode = func() bool { return true }, permissions.ModeDefault
	d := newPolicy(t, o).Decide(t.Context(), request("shell", script("cat a.go")))
	for _, g := range d.Grants {
		if g.Unconfined || g.Scope == core.ScopeWrite && g.Resource == ws {
			t.Errorf("cat in mode default: %+v", g)
		}
	}
}

// TestAlwaysHolds: the rule allows the identical call and no other one.
func TestAlwaysHolds(t *testing.T) {
	plain := func(line string) core.Access {
		a := script(line)
		if strings.HasPrefix(line, "sh ") { // as the tool says it of plain words
			a.Argv = strings.Fields(line)
		}
		return a
	}
	for _, tt := range []struct{ script, always, other string }{
		{"mystery -x 'a b'", "shell(mystery -x 'a b')", "mystery -x 'a b' c"},
		{"python3 -c 'print(1)'", "shell(python3 -c 'print(1)')", "python3 -c 'print(2)'"},
		{"git commit -m x", "shell(git commit -m x)", "git push"},
		{"sh say.sh", "shell(sh say.sh)", "sh other.sh"},
		{"npm run build", "shell(npm run build)", "npm run other"},
		{"mystery | cat", "shell(mystery)", "mystery x | cat"},
		{"cat a.go > c.go", "fs-write(" + ws + "/c.go)", "cat a.go > d.go"},
		{"cat /etc/hosts", "fs-read(/etc/hosts)", "cat /etc/passwd"},
		{"mystery && other", "shell(mystery), shell(other)", "mystery && third"},
		{"mystery $X", "", ""},
		{"sudo ls", "", ""},
	} {
		d := newPolicy(t, worldly(options(permissions.ModeDefault))).Decide(t.Context(), request("shell", plain(tt.script)))
		if got := exactRules(d); got != tt.always {
			t.Errorf("%s: always %q, want %q (%s)", tt.script, got, tt.always, d.Reason)
		}
		if tt.always == "" {
			continue
		}
		p := newPolicy(t, worldly(options(permissions.ModeDefault, user(settings(strings.ReplaceAll(tt.always, ", ", "; "), "", "")))))
		if d := p.Decide(t.Context(), request("shell", plain(tt.script))); d.Verdict != allow {
			t.Errorf("%s with %s: %s: %s", tt.script, tt.always, d.Verdict, d.Reason)
		}
		if d := p.Decide(t.Context(), request("shell", plain(tt.other))); d.Verdict == allow {
			t.Errorf("%s is allowed by %s", tt.other, tt.always)
		}
	}
}
