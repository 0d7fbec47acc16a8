package permissions_test

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/permissions/shell"
)

func TestParseRule(t *testing.T) {
	for _, tt := range []struct{ text, name, pattern string }{
		{"*", "*", "*"},
		{" fs-read ", "fs-read", "*"},
		{"shell(go test *)", "shell", "go test *"},
		{"mcp( github/get_* )", "mcp", "github/get_*"},
		{"my_tool-2(a(b)c)", "my_tool-2", "a(b)c"},
	} {
		r, err := permissions.ParseRule(tt.text)
		if err != nil || r.Name != tt.name || r.Pattern != tt.pattern {
			t.Errorf("ParseRule(%q) = %+v, %v", tt.text, r, err)
		}
	}
	for _, tt := range []struct {
		text   string
		column int
		reason string
	}{
		{"", 1, "the rule is empty"},
		{"(x)", 1, `unexpected "("`},
		{"shell go", 6, `unexpected " "`},
		{"shell(go", 9, "expected )"},
		{"shell(go) x", 12, "expected )"},
		{"shell()", 7, "the pattern is empty: write shell(*)"},
		{"**", 1, "unexpected"},
		{"Shell(ls)", 1, "write shell"},
		{"fs-exec(x)", 1, "fs-read, fs-write and fs-delete"},
		{"shell(a\nb)", 8, "printable"},
		{"shell(a\u202eb)", 8, "printable"},
		{"shell(\xff)", 7, "printable"},
		{"né(x)", 2, `unexpected "é"`},
	} {
		_, err := permissions.ParseRule(tt.text)
		var broken *permissions.RuleError
		if !errors.As(err, &broken) || broken.Column != tt.column || !strings.Contains(broken.Reason, tt.reason) {
			t.Errorf("ParseRule(%q): %v, want column %d, %q", tt.text, err, tt.column, tt.reason)
		}
	}
}

func TestPatternsThatCannotBeCompiled(t *testing.T) {
	for text, reason := range map[string]string{
		"shell(git *push)":    "quote it",
		"shell(git * push)":   "quote it",
		"shell(git 'a)":       "unclosed quote",
		`shell(git \)`:        "expected a character",
		"shell('')":           "name of a program",
		"fs-read(./[a)":       "invalid glob",
		"fs-read({a)":         "invalid glob",
		"fs-read(/a/**/../b)": "only at its start",
		"fs-read(../../b)":    "",
		"fs-read({a,../b})":   "only at its start",
		`fs-read(C:\work)`:    "slashes",
		`fs-read(.\work)`:     "slashes",
		"fs-read(" + strings.Repeat("*/", 40) + ")": "too long",
		"tool([a 'b)": "invalid glob",
	} {
		_, err := permissions.New(options("", user(settings("", "", text))))
		if reason == "" {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: error %v, want one with %q", text, err, reason)
		}
	}
}

// TestDenyOnlyTightens: whatever rules there are, one more deny or ask rule
// never makes a verdict less strict, nor does removing an allow rule.
func TestDenyOnlyTightens(t *testing.T) {
	texts := []string{
		"*", "fs-read", "fs-read(./a/**)", "fs-read(**)", "fs-write(./**/*.go)", "fs-write(/tmp/**)", "fs-delete(*)", "shell(*)", "shell(rm *)",
		"shell(go test *)", "shell(sudo *)", "network(*.test)", "mcp(a/*)", "t", "t(./a/*)", "t(go *)", "subagent(*)", "plugin", "skill-script(x *)",
	}
	accesses := []core.Access{
		read(ws + "/a/x"), read("/etc/passwd"), read(ws + "/.env"), tree(core.ScopeRead, ws), tree(core.ScopeRead, "/tmp"), write(ws + "/a/x.go"),
		write("/tmp/x"), write(ws + "/.git/x"), tree(core.ScopeWrite, ws+"/a"), remove(ws + "/a"), remove(ws), run("rm", "-rf", "x"), run("go", "test"),
		run("sudo", "ls"), script("go test; rm x"), other(core.ScopeNetwork, "x.test"), other(core.ScopeMCP, "a/b"), other(core.ScopePlugin, "p/q"),
		other(core.ScopeSubagent, "s"), other(core.ScopeUnknown, "?"), other("new", "x"), read("odd"),
		{},
	}
	pick := func(bits uint32) (list []string) {
		for i, text := range texts {
			if bits>>i&1 == 1 {
				list = append(list, text)
			}
		}
		return list
	}
	modes := permissions.Modes()
	property := func(allowBits, askBits, denyBits uint32, extra, mode uint8, some uint32) bool {
		base := permissions.Settings{Allow: pick(allowBits), Ask: pick(askBits & denyBits), Deny: pick(denyBits & allowBits & askBits)}
		var req core.PermissionRequest
		req.Tool, req.Session.Dir = "t", ws
		for i, a := range accesses {
			if some>>i&1 == 1 {
				req.Accesses = append(req.Accesses, a)
			}
		}
		more := texts[int(extra)%len(texts)]
		denied, asked, fewer := base, base, base
		denied.Deny = append(slices.Clone(base.Deny), more)
		asked.Ask = append(slices.Clone(base.Ask), more)
		fewer.Allow = slices.DeleteFunc(slices.Clone(base.Allow), func(r string) bool { return r == more })
		verdict := func(s permissions.Settings) core.Verdict {
			return newPolicy(t, options(modes[int(mode)%len(modes)], user(s))).Decide(t.Context(), req).Verdict
		}
		v := verdict(base)
		return verdict(denied) <= v && verdict(asked) <= v && verdict(fewer) <= v
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 500}); err != nil {
		t.Error(err)
	}
}

// TestNothingBeatsADenyRule: what a deny rule matches is denied in every mode,
// with everything allowed and granted.
func TestNothingBeatsADenyRule(t *testing.T) {
	for rule, access := range map[string]core.Access{
		"fs-read(./a)":      read(ws + "/a"),
		"fs-write":          write(ws + "/a"),
		"fs-delete(./*)":    remove(ws + "/a"),
		"shell(make *)":     run("make", "all"),
		"network(x.test)":   other(core.ScopeNetwork, "x.test"),
		"mcp(s/t)":          other(core.ScopeMCP, "s/t"),
		"plugin(p/*)":       other(core.ScopePlugin, "p/t"),
		"skill-script(x *)": {Scope: core.ScopeSkillScript, Resource: "x y", Argv: []string{"x", "y"}},
		"subagent(a)":       other(core.ScopeSubagent, "a"),
		"unknown":           other(core.ScopeUnknown, "?"),
		"tool":              other("new", "x"),
		"tool(./b)":         read(ws + "/b"),
	} {
		for _, mode := range permissions.Modes() {
			everything := settings("*; tool; shell(make *); fs-read(./**)", "", rule)
			everything.Mode = "bypass"
			p := newPolicy(t, options(mode,
				permissions.RuleSet{Source: permissions.SourceManaged, Settings: settings("*", "", "")},
				permissions.RuleSet{Source: permissions.SourceFlag, Settings: settings("*", "", "")},
				permissions.RuleSet{Source: permissions.SourceProject, Settings: everything}))
			req := request("tool", read(ws+"/c"), access)
			req.Granted = func(core.Access) bool { return true }
			if d := p.Decide(t.Context(), req); d.Verdict != deny || d.Rule != rule {
				t.Errorf("%s, mode %s: %s by %s", rule, mode, d.Verdict, d.Rule)
			}
		}
	}
}

func TestSensitiveAndProtectedPlaces(t *testing.T) {
	p := newPolicy(t, options(permissions.ModeBypass))
	rule := func(a core.Access) string { return p.Decide(t.Context(), request("t", a)).Rule }
	for _, name := range []string{
		"~/.ssh", "~/.ssh/config", "~/.SSH/id_rsa", "~/.gnupg/x", "~/.aws/config", "~/.azure/x", "~/.kube/config", "~/.docker/config.json",
		"~/.config/gcloud/x", "~/.config/gh/hosts.yml", "~/.npmrc", "~/.pypirc", "~/.netrc", "~/.git-credentials", "~/.cargo/credentials.toml",
		"~/.bash_history", "~/.zsh_history", "~/.python_history", "~/.local/share/fish/fish_history", "~/Library/Keychains/x", "~/.mozilla/firefox/x",
		"~/.config/google-chrome/Default/Cookies", "~/Library/Application Support/Google/Chrome/x", "~/.local/share/keyrings/x", "/root/.ssh/x",
		"/proc/self/environ", "/proc/17/environ", "/proc/17/task/3/environ", "/proc/self/root/etc/passwd", "/proc/1/fd/3", "/etc/shadow",
		"./.env", "./.env.local", "./.ENV", "./.env.", "./a/.env.production", "./.envrc", "./my-credentials.json", "./secret/x", "./a/TopSecret.txt",
		"/srv/agent-home/settings.json", "./ſecrets", "./id_ed25519", "./id_rsa.bak", "./server.pem", "./tls.key", "./x.p12", "./.e\u200dnv", "./.env::$DATA", "./.codex/auth.json",
	} {
		if got := rule(read(expand(name))); got != "sensitive" {
			t.Errorf("read of %s: decided by %q, want sensitive", name, got)
		}
		if got := rule(remove(expand(name))); got != "sensitive" {
			t.Errorf("delete of %s: decided by %q, want sensitive", name, got)
		}
	}
	for _, name := range []string{
		"./.git", "./.git/config", "./sub/.GIT/hooks/x", "./.git./config", "./.g\u200cit/config", "./GIT~1/config", "./.gitmodules", "./.vscode/tasks.json", "./.idea/x",
		"./.agent/settings.json", "./.agent/skills/x/SKILL.md", "/srv/agent-home/skills/x/SKILL.md", "./.claude/settings.json", "./.codex/config.toml",
		"./.gemini/x", "./.cursor/mcp.json", "./.mcp.json", "~/.bashrc", "~/.zshenv", "~/.profile", "~/.gitconfig", "~/.config/fish/config.fish",
		"/etc/profile.d/x.sh", "/etc/cron.d/x", "~/.config/git/config",
	} {
		if got := rule(write(expand(name))); got != "protected" {
			t.Errorf("write of %s: decided by %q, want protected", name, got)
		}
		if got := rule(read(expand(name))); got != "mode bypass" {
			t.Errorf("read of %s: decided by %q, want the mode", name, got)
		}
	}
	for _, name := range []string{
		"./.env.example", "./.env.sample", "./.env.template", "./environment.go", "./id_rsa.pub", "./.github/workflows/ci.yml", "./.gitignore", "./git/x",
		"./keyboard.go", "./secret_test.go", "./secrets/manager.go", "./docs/credentials.md", "./key", "./proc/self/environ", "./etc/shadow", "/proc/cpuinfo", "./.config/x", "~/.docker/cli-plugins/x", "./history.md",
	} {
		if got := rule(write(expand(name))); got != "mode bypass" {
			t.Errorf("write of %s: decided by %q, want the mode", name, got)
		}
	}
	// The path of the workspace does not make all of it secret.
	o := options(permissions.ModeDefault)
	o.Workspace = []string{"/srv/secret-project"}
	p = newPolicy(t, o)
	for path, want := range map[string]core.Verdict{"/srv/secret-project/a": allow, "/srv/secret-project/secret": ask, "/srv/secret-project/.env": ask} {
		a := core.Access{Scope: core.ScopeRead, Resource: path, Inside: true}
		if d := p.Decide(t.Context(), request("t", a)); d.Verdict != want {
			t.Errorf("read of %s: %s, want %s", path, d.Verdict, want)
		}
	}
}

// expand makes ~/x and ./x absolute, without cleaning.
func expand(name string) string {
	switch {
	case strings.HasPrefix(name, "~/"):
		return home + name[1:]
	case strings.HasPrefix(name, "./"):
		return ws + name[1:]
	}
	return name
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"*", "shell(go test *)", "fs-read(./**/{a,b}/[!c]*)", `shell(a 'b"c' "d\"" \e)`, "mcp(a/b)", "t(", "fs-write(~/x)", "fs-read(../..)"} {
		f.Add(s, "/w/a")
	}
	f.Fuzz(func(t *testing.T, text, resource string) {
		r, err := permissions.ParseRule(text)
		if err != nil {
			var broken *permissions.RuleError
			if !errors.As(err, &broken) || broken.Column < 1 || broken.Column > len(text)+1 || broken.Reason == "" {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		if !utf8.ValidString(r.Text) || r.Name == "" || r.Pattern == "" {
			t.Fatalf("%q: %+v", text, r)
		}
		if again, err := permissions.ParseRule(r.Text); err != nil || again != r {
			t.Fatalf("%q: parsed again %+v, %v", text, again, err)
		}
		// A rule that compiles denies at least what it allows.
		denying, err := permissions.New(options(permissions.ModeBypass, user(permissions.Settings{Deny: []string{text}})))
		if err != nil {
			return
		}
		allowing, err := permissions.New(options(permissions.ModeDefault, user(permissions.Settings{Allow: []string{text}})))
		if err != nil {
			return // only deny rules may name what is unknown
		}
		for _, a := range []core.Access{
			write(path.Clean("/" + resource)), run(strings.Fields("x " + resource)[1:]...), other(core.ScopeNetwork, resource), other(core.ScopeMCP, resource),
		} {
			allowed := allowing.Decide(t.Context(), request(r.Name, a))
			if denied := denying.Decide(t.Context(), request(r.Name, a)); allowed.Rule == r.Text && allowed.Verdict == allow && denied.Verdict != deny {
				t.Fatalf("%q allows %s %q and does not deny it", text, a.Scope, a.Resource)
			}
		}
	})
}

// FuzzDecide gives commands and paths of any kind to a policy: it must neither
// fail nor allow a script by itself.
func FuzzDecide(f *testing.F) {
	for _, s := range []string{"rm -rf /", ":(){ :|:& };:", "sh -c 'a\x00'", "/a/../b", "\\\\srv\\x", "~", "cat > /dev/sda", "$(", "''"} {
		f.Add(s)
	}
	o := options(permissions.ModeDefault, user(settings("shell(*)", "", "shell(rm *); fs-read(./**/x)")))
	o.FoldCase = true
	p, err := permissions.New(o)
	if err != nil {
		f.Fatal(err)
	}
	bare := newPolicy(f, options(permissions.ModeDefault))
	f.Fuzz(func(t *testing.T, text string) {
		if d := bare.Decide(t.Context(), request("t", script(text))); d.Verdict == allow {
			if a := shell.Analyze(text, shell.Options{Dir: ws, Home: home}); len(a.Commands)+len(a.Unclear) > 0 {
				t.Errorf("script %q is allowed by %s", text, d.Rule)
			}
		}
		accesses := []core.Access{run(text), run("sh", "-c", text), read(text), tree(core.ScopeDelete, text), other(core.ScopeNetwork, text), other(core.Scope(text), text)}
		for _, a := range accesses {
			if d := p.Decide(t.Context(), request("t", a)); d.Reason == "" || d.Verdict == deny && d.Grants != nil {
				t.Errorf("%+v: %+v", a, d)
			}
		}
	})
}
