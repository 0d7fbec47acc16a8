package permissions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
)

func when(list ...permissions.When) permissions.RuleSet {
	return permissions.RuleSet{
		Source: permissions.SourceUser, File: "/home/ann/.agent/settings.json", Settings: permissions.Settings{When: list},
		Position: func(l permissions.List, i int) (int, int) {
			if l == permissions.ListWhen {
				return 10 + i, 13
			}
			return 0, 0
		},
	}
}

func TestConditions(t *testing.T) {
	pushes := permissions.When{
		If: "scope == 'shell-run' && argv[0] == 'git' && arg(1) == 'push'", Then: permissions.ListDeny, Why: "pushes are for people",
		Match: []string{"git push -f", "go test && git push"}, NotMatch: []string{"git status", "git", "echo git push"},
	}
	for _, tt := range []struct {
		name   string
		mode   permissions.Mode
		when   permissions.When
		access core.Access
		want   core.Verdict
		says   string
	}{
		{"denies", permissions.ModeBypass, pushes, script("git push"), deny, "pushes are for people"},
		{"the example in the documentation", permissions.ModeBypass, permissions.When{If: "program == 'git' && arg(1) == 'push' && '--force' in argv", Then: permissions.ListDeny, Why: "no force pushes", Match: []string{"git push --force"}, NotMatch: []string{"git push"}}, script("git push --force"), deny, "no force pushes"},
		{"denies within a script", permissions.ModeBypass, pushes, script("make && (git push)"), deny, "(/home/ann/.agent/settings.json:10)"},
		{"leaves others", permissions.ModeBypass, pushes, script("git status"), allow, ""},
		{"unknown words ask", permissions.ModeBypass, pushes, script("$X push"), ask, "not enough is known about it"},
		{"unknown words after known ones ask", permissions.ModeBypass, pushes, script("git $X"), ask, "not enough is known"},
		{"known words decide", permissions.ModeBypass, pushes, script("go $X"), allow, ""},
		{"asks", permissions.ModeDefault, permissions.When{If: "path endsWith '.sql'", Then: permissions.ListAsk}, read(ws + "/a.sql"), ask, "path endsWith"},
		{"allows", permissions.ModeDefault, permissions.When{If: "scope == 'fs-write' && inside && tool == 't'", Then: permissions.ListAllow}, write(ws + "/a"), allow, ""},
		{"allows each of a script", permissions.ModeDefault, permissions.When{If: "program in ['make', 'ninja'] && none(argv, # == '-f')", Then: permissions.ListAllow}, script("make x && ninja"), allow, ""},
		{"allows only part of a script", permissions.ModeDefault, permissions.When{If: "program in ['make', 'ninja'] && none(argv, # == '-f')", Then: permissions.ListAllow}, script("make x && ninja -f y"), ask, ""},
		{"allows nothing sensitive", permissions.ModeBypass, permissions.When{If: "true", Then: permissions.ListAllow}, read(ws + "/.env"), ask, "secrets"},
		{"allows if the words it uses are known", permissions.ModeDefault, permissions.When{If: "argv[0] == 'make'", Then: permissions.ListAllow}, script("make $X"), allow, ""},
		{"does not allow unknown words", permissions.ModeDefault, permissions.When{If: "argv[0] == 'make' && none(argv, # == '-f')", Then: permissions.ListAllow}, script("make $X"), ask, ""},
		{"host", permissions.ModeBypass, permissions.When{If: "host endsWith '.test' && port != '443'", Then: permissions.ListDeny}, other(core.ScopeNetwork, "a.test:80"), deny, ""},
		{"MCP", permissions.ModeBypass, permissions.When{If: "scope == 'mcp' && owner == 'github' && name startsWith 'delete_'", Then: permissions.ListDeny}, other(core.ScopeMCP, "github/delete_repo"), deny, ""},
		{"mode", permissions.ModeBypass, permissions.When{If: "mode == 'bypass' && scope == 'network'", Then: permissions.ListAsk}, other(core.ScopeNetwork, "a.test"), allow, ""},
		{"fails", permissions.ModeBypass, permissions.When{If: "scope == 'shell-run' && argv[1] == 'x'", Then: permissions.ListAllow}, script("ls"), deny, "fails on it: index out of range"},
		{"fails on another scope", permissions.ModeBypass, permissions.When{If: "argv[1] == 'x' && scope == 'shell-run'", Then: permissions.ListAsk}, read(ws + "/a"), deny, "fails on it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPolicy(t, worldly(options(tt.mode, when(tt.when))))
			d := p.Decide(t.Context(), request("t", tt.access))
			if d.Verdict != tt.want || !strings.Contains(d.Reason, tt.says) {
				t.Errorf("%s: %s\nwant %s: …%s…", d.Verdict, d.Reason, tt.want, tt.says)
			}
		})
	}
}

// TestBrokenConditions: New rejects invalid conditions.
func TestBrokenConditions(t *testing.T) {
	const where = "/home/ann/.agent/settings.json:10:13: permission rule "
	for _, tt := range []struct {
		when permissions.When
		want string
	}{
		{permissions.When{If: "scop == 'x'", Then: "deny"}, "column 1: unknown name scop"},
		{permissions.When{If: "scope == ", Then: "deny"}, "unexpected token EOF"},
		{permissions.When{If: "", Then: "deny"}, "unexpected token EOF"},
		{permissions.When{If: "len(argv)", Then: "deny"}, "expected bool, but got int"},
		{permissions.When{If: "scope == 3", Then: "deny"}, "mismatched types"},
		{permissions.When{If: "inside", Then: "forbid"}, `"then" is "forbid": write "allow", "ask" or "deny"`},
		{permissions.When{If: "inside"}, `"then" is ""`},
		{permissions.When{If: "any(1..1000000, # > 3)", Then: "deny"}, "column 6: a condition cannot use .."},
		{permissions.When{If: "any(argv, any(argv, # == '1'))", Then: "deny"}, "within an iteration"},
		{permissions.When{If: "any(argv, # == command)", Then: "deny"}, "command cannot be used within an iteration"},
		{permissions.When{If: "any(argv, # == $env.command)", Then: "deny"}, "cannot use $env"},
		{permissions.When{If: "reduce(argv, #acc + #, '') == ''", Then: "deny"}, "cannot call reduce"},
		{permissions.When{If: "repeat(command, 1000000) == ''", Then: "deny"}, "cannot call repeat"},
		{permissions.When{If: "now().Year() > 2000", Then: "deny"}, "column "},
		{permissions.When{If: "let x = command + command; x == ''", Then: "deny"}, "cannot declare variables"},
		{permissions.When{If: "command matches argv[0]", Then: "deny"}, "must be a string literal"},
		{permissions.When{If: "command matches '('", Then: "deny"}, "missing closing )"},
		{permissions.When{If: strings.Repeat("inside && ", 300) + "inside", Then: "deny"}, "nodes"},
		{permissions.When{If: strings.Repeat("(", 1000), Then: "deny"}, "column "},
		{permissions.When{If: strings.Repeat("x", 5000), Then: "deny"}, "longer than 4096 bytes"},
		{permissions.When{If: "argv[0] == 'git'", Then: "deny", Match: []string{"go"}}, `match 1, "go": the condition does not match it`},
		{permissions.When{If: "argv[0] == 'git'", Then: "deny", NotMatch: []string{"ls", "git"}}, `notMatch 2, "git": the condition matches it`},
		{permissions.When{If: "argv[1] == 'x'", Then: "deny", NotMatch: []string{"git"}}, "the condition fails on it"},
		{permissions.When{If: "argv[0] == 'x'", Then: "deny", NotMatch: []string{"$X"}}, "cannot be analyzed: "},
		{permissions.When{If: "path == '/x'", Then: "deny", Match: []string{"fs-write(/y)"}}, "the condition does not match it"},
	} {
		_, err := permissions.New(options(permissions.ModeDefault, when(tt.when)))
		var broken *permissions.RuleError
		if err == nil || !errors.As(err, &broken) || !strings.HasPrefix(err.Error(), where) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60s: %v\nwant …%s…", tt.when.If, err, tt.want)
		}
	}
}

func TestConditionExamples(t *testing.T) {
	newPolicy(t, options(permissions.ModeDefault, when(
		permissions.When{If: "scope == 'fs-write' && inside", Then: "ask", Match: []string{"fs-write(./migrations/1.sql)", "fs-write(a)"}, NotMatch: []string{"fs-write(/etc/hosts)", "fs-read(a)", "fs-write(~/x)"}},
		permissions.When{If: "host == 'evil.test'", Then: "deny", Match: []string{"network(evil.test:80)"}, NotMatch: []string{"network(good.test)"}},
		permissions.When{If: "program == 'rm'", Then: "deny", Match: []string{"/bin/rm -r x", "shell(rm x)", "ls; rm x"}, NotMatch: []string{"ls (1)"[:2]}},
	)))
}

// TestConditionsOfAProject: conditions of an untrusted project can only ask or deny.
func TestConditionsOfAProject(t *testing.T) {
	set := when(
		permissions.When{If: "scope == 'network'", Then: permissions.ListAllow},
		permissions.When{If: "scope == 'mcp'", Then: permissions.ListDeny},
	)
	set.Source = permissions.SourceProject
	p := newPolicy(t, options(permissions.ModeDefault, set))
	if d := p.Decide(t.Context(), request("t", other(core.ScopeNetwork, "a.test"))); d.Verdict != ask {
		t.Errorf("its allowing condition: %s", d.Verdict)
	}
	if d := p.Decide(t.Context(), request("t", other(core.ScopeMCP, "a/b"))); d.Verdict != deny {
		t.Errorf("its denying condition: %s", d.Verdict)
	}
	if w := p.Warnings(); len(w) != 1 || !strings.Contains(w[0], "1 allow rule is ignored") {
		t.Errorf("warnings %q", w)
	}
}

// TestConditionCost: the most expensive condition within the limits, on the longest command.
func BenchmarkCondition(b *testing.B) {
	cond := permissions.When{If: "scope == 'shell-run' && any(argv, # matches '^(a|b)*c$' || # contains 'xyz' || # == 'w')", Then: permissions.ListAsk}
	long := script("tool " + strings.TrimSpace(strings.Repeat("ab ", 3000)))
	for name, access := range map[string]core.Access{"long": long, "short": script("go test ./..."), "file": read(ws + "/a.go")} {
		b.Run(name, func(b *testing.B) {
			p := newPolicy(b, options(permissions.ModeDefault, when(cond)))
			req := request("t", access)
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(b.Context(), req)
			}
		})
	}
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{"inside", "argv[0] == 'git'", "any(argv, # in ['a'])", "host matches '^a'", "((((", "1..9", "$env", "path?.x", "argv[1:][0]", "not (inside or recursive)", "{'a': 1}.a == 1", "`x` == command"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := permissions.New(options(permissions.ModeBypass, when(permissions.When{If: text, Then: permissions.ListDeny})))
		if err != nil {
			return
		}
		for _, a := range []core.Access{script("git push $X"), script("a b c"), read(ws + "/a"), other(core.ScopeNetwork, "h:1"), {}} {
			if d := p.Decide(t.Context(), request("t", a)); d.Reason == "" {
				t.Errorf("%+v", d)
			}
		}
	})
}

func ExampleWhen() {
	p, err := permissions.New(permissions.Options{
		Workspace: []string{"/work"}, Shell: "bash", Mode: permissions.ModeBypass,
		Sets: []permissions.RuleSet{{Source: permissions.SourceUser, Settings: permissions.Settings{When: []permissions.When{{
			If:   "scope == 'shell-run' && argv[0] == 'git' && arg(1) == 'push'",
			Then: permissions.ListDeny, Why: "pushes are for people",
			Match: []string{"git push -f"}, NotMatch: []string{"git status"},
		}}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range []string{"git status", "make test && git push"} {
		d := p.Decide(context.Background(), core.PermissionRequest{Tool: "shell", Accesses: []core.Access{{Scope: core.ScopeShell, Resource: line}}})
		fmt.Println(line+":", d.Verdict)
	}
	// Output:
	// git status: allow
	// make test && git push: deny
}
