package permissions_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/permissions"
)

// draw generates rules and accesses that often match.
type draw struct{ *rand.Rand }

func (d draw) of(list ...string) string { return list[d.IntN(len(list))] }

func (d draw) path() string {
	return d.of(ws, "/tmp", home, "/etc") + d.of("", "/a", "/docs", "/.env", "/docs/private/x.md", "/a.go", "/.git/config")
}

func (d draw) pattern() string {
	return d.of("./", ws+"/", "~/", "/", "/tmp/") + d.of("**", "*", "a", "docs/**", "**/*.go", "{a,docs}/**", ".env", "docs/private/*")
}

func (d draw) command() string {
	words := []string{d.of("git", "rm", "cat", "go", "mystery", "sudo", "sh", "env", "/bin/rm", "timeout")}
	for range d.IntN(3) {
		words = append(words, d.of("push", "-rf", "a.go", "test", "-c", "'rm x'", "$X", "docs/*", ".env", "5", "git"))
	}
	return strings.Join(words, " ")
}

func (d draw) script() string {
	s := d.command()
	for range d.IntN(3) {
		s += d.of(" && ", "; ", " | ", " || ") + d.command()
	}
	return s + d.of("", "", " > out", " < a.go", " 2>/dev/null")
}

func (d draw) rule() string {
	switch d.IntN(5) {
	case 0:
		return d.of("*", "shell", "shell(*)", "fs-write", "fs-read(*)", "t", "t(*)", "network", "mcp(a/*)")
	case 1, 2:
		return "shell(" + d.of("git", "rm", "cat", "go", "mystery", "sudo", "timeout 5 rm") + d.of("", " *", " push *", " test") + ")"
	}
	return d.of("fs-read", "fs-write", "fs-delete", "t") + "(" + d.pattern() + ")"
}

func (d draw) access() core.Access {
	switch d.IntN(6) {
	case 0, 1:
		return script(d.script())
	case 2:
		return other(core.Scope(d.of("network", "mcp", "plugin", "subagent", "unknown", "", "odd")), d.of("a/b", "h:1", ""))
	}
	a := file(core.Scope(d.of("fs-read", "fs-write", "fs-delete")), d.path())
	a.Recursive = d.IntN(4) == 0
	return a
}

func (d draw) request() core.PermissionRequest {
	req := request("t")
	for range 1 + d.IntN(2) {
		req.Accesses = append(req.Accesses, d.access())
	}
	return req
}

func (d draw) options() permissions.Options {
	o := worldly(options(permissions.Modes()[d.IntN(len(permissions.Modes()))]))
	sandboxed := d.IntN(2) == 0
	o.Sandboxed = func() bool { return sandboxed }
	s := permissions.Settings{}
	for range d.IntN(3) {
		s.Allow = append(s.Allow, d.rule())
	}
	for range d.IntN(2) {
		s.Ask = append(s.Ask, d.rule())
	}
	for range d.IntN(2) {
		s.Deny = append(s.Deny, d.rule())
	}
	o.Sets = []permissions.RuleSet{user(s)}
	return o
}

// with returns the options with one more rule.
func with(o permissions.Options, list permissions.List, text string) permissions.Options {
	s := permissions.Settings{}
	switch list {
	case permissions.ListAllow:
		s.Allow = []string{text}
	case permissions.ListAsk:
		s.Ask = []string{text}
	case permissions.ListDeny:
		s.Deny = []string{text}
	}
	o.Sets = append(append([]permissions.RuleSet{}, o.Sets...), user(s))
	return o
}

// TestMoreRulesOnlyTighten: a deny or ask rule never makes a verdict less strict,
// whatever the other rules and the mode are; and no allow rule beats a denial.
func TestMoreRulesOnlyTighten(t *testing.T) {
	d := draw{rand.New(rand.NewPCG(1, 2))}
	denied, asked, allowed := 0, 0, 0
	for range 1500 {
		o, req, text := d.options(), d.request(), d.rule()
		before := newPolicy(t, o).Decide(t.Context(), req)
		for _, list := range []permissions.List{permissions.ListAsk, permissions.ListDeny} {
			after := newPolicy(t, with(o, list, text)).Decide(t.Context(), req)
			if after.Verdict > before.Verdict {
				t.Fatalf("%s rule %s made %s of %s\n%s", list, text, after.Verdict, before.Verdict, describe(o, req))
			}
		}
		after := newPolicy(t, with(o, permissions.ListAllow, text)).Decide(t.Context(), req)
		if before.Verdict == deny && before.Rule != "builtin" && !strings.HasPrefix(before.Rule, "mode ") && after.Verdict != deny {
			t.Fatalf("the allow rule %s made %s of a denial by %s\n%s", text, after.Verdict, before.Rule, describe(o, req))
		}
		if after.Verdict < before.Verdict {
			t.Fatalf("the allow rule %s made %s of %s\n%s", text, after.Verdict, before.Verdict, describe(o, req))
		}
		switch before.Verdict {
		case deny:
			denied++
		case ask:
			asked++
		default:
			allowed++
		}
	}
	if min(denied, asked, allowed) < 80 {
		t.Errorf("the draw is one-sided: %d denied, %d asked, %d allowed", denied, asked, allowed)
	}
}

// TestIndexChangesNothing: the position of a rule in its list does not matter.
func TestIndexChangesNothing(t *testing.T) {
	d := draw{rand.New(rand.NewPCG(3, 4))}
	for range 800 {
		o, req := d.options(), d.request()
		set := o.Sets[0].Settings
		before := newPolicy(t, o).Decide(t.Context(), req)
		for _, list := range []*[]string{&set.Allow, &set.Ask, &set.Deny} { // rules that never match
			var more []string
			for i := range 20 {
				more = append(more, fmt.Sprintf("shell(never%d *)", i), fmt.Sprintf("fs-write(/never/%d/**)", i), fmt.Sprintf("never%d(x)", i))
			}
			*list = append(more, *list...)
		}
		o.Sets = []permissions.RuleSet{user(set)}
		after := newPolicy(t, o).Decide(t.Context(), req)
		if before.Verdict != after.Verdict || before.Rule != after.Rule {
			t.Fatalf("%s by %s became %s by %s\n%s", before.Verdict, before.Rule, after.Verdict, after.Rule, describe(o, req))
		}
	}
}

func describe(o permissions.Options, req core.PermissionRequest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "mode %s, sandboxed %t\n", o.Mode, o.Sandboxed())
	for _, s := range o.Sets {
		if len(s.Settings.Allow) < 20 {
			fmt.Fprintf(&b, "allow %q ask %q deny %q\n", s.Settings.Allow, s.Settings.Ask, s.Settings.Deny)
		}
	}
	for _, a := range req.Accesses {
		fmt.Fprintf(&b, "%+v\n", a)
	}
	return b.String()
}

// BenchmarkManyRules: a decision with 1,000 rules of all kinds. The targets are
// 50 µs for a file and 300 µs for a script of 20 commands.
func BenchmarkManyRules(b *testing.B) {
	for _, n := range []int{0, 1000, 10_000} {
		var s permissions.Settings
		for i := range n / 5 {
			s.Allow = append(s.Allow, fmt.Sprintf("shell(tool%d run *)", i), fmt.Sprintf("fs-write(./gen%d/**)", i))
			s.Ask = append(s.Ask, fmt.Sprintf("fs-read(./**/%d/*.sql)", i))
			s.Deny = append(s.Deny, fmt.Sprintf("shell(bad%d *)", i), fmt.Sprintf("fs-write(./secret%d/x)", i))
		}
		dir := b.TempDir()
		local, err := env.NewLocal(env.LocalOptions{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		defer local.Close()
		o := options(permissions.ModeDefault, user(s))
		o.Env, o.Workspace = local, []string{local.Info().Dir}
		p := newPolicy(b, o)
		twenty := strings.TrimSuffix(strings.Repeat("head -5 a.go | grep -n x; tool7 run --fast; wc -l b.go && go vet ./... ; ", 4), "; ")
		inside := func(a core.Access) core.Access {
			a.Resource, a.Inside = strings.Replace(a.Resource, ws, local.Info().Dir, 1), true
			return a
		}
		for _, bb := range []struct {
			name   string
			access core.Access
		}{
			{"read", inside(read(ws + "/core/tools/read_file.go"))},
			{"write", inside(write(ws + "/gen7/x/y.go"))},
			{"command", script("go test ./core/...")},
			{"script", script(twenty)},
		} {
			b.Run(fmt.Sprintf("%s/%d", bb.name, n), func(b *testing.B) {
				req := request("t", bb.access)
				req.Session.Dir = local.Info().Dir
				b.ReportAllocs()
				for b.Loop() {
					p.Decide(b.Context(), req)
				}
			})
		}
	}
}
