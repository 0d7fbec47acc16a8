package permissions

import (
	"context"
	"net"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/seed-009c0928/agent/core"
)

// maxOffered is the greatest number of rules that one answer adds.
const maxOffered = 4

// offers returns the rules that would allow everything that needs approval: those
// that match exactly this, and wider ones. There are none if more than the mode
// asks, or if they would not be enough.
func (p *Policy) offers(ctx context.Context, req *core.PermissionRequest, findings []finding) []core.Offer {
	exact, wider := p.exactAndWider(ctx, findings)
	all := []core.Offer{exact, wider}
	if slices.Equal(exact.Rules, wider.Rules) {
		all = all[:1]
	}
	return slices.DeleteFunc(all, func(o core.Offer) bool {
		return len(o.Rules) == 0 || len(o.Rules) > maxOffered || !p.enough(ctx, req, o.Rules)
	})
}

func (p *Policy) exactAndWider(ctx context.Context, findings []finding) (exact, wider core.Offer) {
	for f := range asking(findings) {
		if f.extra || f.subject.Scope == core.ScopePlugin && f.subject.Resource == webFetch && len(findings) > 1 {
			continue // the rule for the command, or for the host, is enough
		}
		e := p.exactOffer(ctx, &f.subject)
		if f.step != byMode || len(e.Rules) == 0 {
			return core.Offer{}, core.Offer{}
		}
		exact = both(exact, e)
		if w := p.widerOffer(&f.subject); len(w.Rules) > 0 {
			e = w
		}
		wider = both(wider, e)
	}
	return exact, wider
}

// both returns an offer of the rules of two.
func both(a, b core.Offer) core.Offer {
	for _, r := range b.Rules {
		if !slices.Contains(a.Rules, r) {
			a.Rules = append(a.Rules, r)
		}
	}
	switch {
	case a.Confirm == "":
		a.Confirm = b.Confirm
	case b.Confirm != "" && b.Confirm != a.Confirm:
		a.Confirm += " and " + b.Confirm
	}
	return a
}

// enough reports whether a call would be allowed with the rules.
func (p *Policy) enough(ctx context.Context, req *core.PermissionRequest, rules []string) bool {
	with := *req
	with.Rules = append(slices.Clone(req.Rules), rules...)
	_, findings := p.judgeRequest(ctx, &with)
	return !slices.ContainsFunc(findings, func(f finding) bool { return f.verdict != core.Allow })
}

// judgeRequest judges a call by the policy with the rules that the user approved
// for the session, which it returns. A rule that is not valid has no effect.
func (p *Policy) judgeRequest(ctx context.Context, req *core.PermissionRequest) (*Policy, []finding) {
	if p != nil && len(req.Rules) > 0 {
		q := *p
		q.approved = ruleList{}
		set := RuleSet{Source: SourceSession}
		_ = q.compileList(&q.approved, &set, ListAllow, req.Rules, anchor{home: p.home, bases: p.workspace})
		p = &q
	}
	return p, p.judgeAll(ctx, req)
}

// allowedBy returns the first allow rule that matches.
func (p *Policy) allowedBy(s *subject) *rule {
	fits := func(r *rule) bool { return r.allows(s) }
	if r := p.allow.first(s, fits); r != nil {
		return r
	}
	return p.approved.first(s, fits)
}

// exactOffer is the rule that allows exactly this access; none if there is none.
// A rule for the whole program would also allow whatever it can run.
func (p *Policy) exactOffer(ctx context.Context, s *subject) core.Offer {
	name, pattern := string(s.Scope), s.Resource
	switch {
	case s.Scope.IsFile():
		pattern = escapeGlob(s.path)
		if s.Recursive {
			pattern = strings.TrimSuffix(pattern, "/") + "/**"
		}
	case startsProgram(s.Scope):
		switch {
		case s.whole:
		case len(s.Argv) == 0 || s.sure < len(s.Argv):
			return core.Offer{}
		default:
			pattern = quoteArgv(s.Argv)
		}
		if s.Scope == core.ScopeShell {
			name = "shell"
		}
	case s.Scope == core.ScopeNetwork:
		host, port := splitHost(pattern)
		if pattern = host; port != "" {
			pattern = net.JoinHostPort(host, port)
		}
	case (s.Scope == core.ScopeMCP || s.Scope == core.ScopePlugin) && !strings.Contains(pattern, "/"):
		return core.Offer{} // would allow all of its tools
	}
	if !s.Scope.IsFile() && !startsProgram(s.Scope) && strings.Contains(pattern, "*") {
		return core.Offer{}
	}
	return core.Offer{Rules: checkedRule(name, pattern, s), Confirm: p.breadth(ctx, s)}
}

// checkedRule returns a rule if it is valid and allows the access.
func checkedRule(name, pattern string, s *subject) []string {
	parsed, err := ParseRule(name + "(" + pattern + ")")
	if err != nil {
		return nil
	}
	r, err := compile(parsed, ListAllow, anchor{}, false)
	if err != nil || !r.allows(s) {
		return nil
	}
	return []string{parsed.Text}
}

// widerOffer is a rule that also allows what is similar: other arguments, the
// files of the same directory, the hosts of the same domain, the tools of the
// same server.
func (p *Policy) widerOffer(s *subject) core.Offer {
	switch {
	case s.Scope.IsFile():
		dir := path.Dir(s.path)
		if s.path == "" || isVolumeRoot(dir) || p.holdsHome(fold(dir)) {
			return core.Offer{}
		}
		return core.Offer{Rules: checkedRule(string(s.Scope), escapeGlob(dir)+"/**", s), Confirm: p.breadthOf(s, dir, true)}
	case s.Scope == core.ScopeShell && !s.whole:
		if n := familyOf(s.Argv); n > 0 && s.sure >= n {
			return core.Offer{Rules: checkedRule("shell", quoteArgv(s.Argv[:n])+" *", s)}
		}
	case s.Scope == core.ScopeNetwork:
		host, port := splitHost(s.Resource)
		if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil && domain != host && net.ParseIP(host) == nil {
			return core.Offer{Rules: checkedRule("network", "*."+domain, s)}
		}
		if port != "" {
			return core.Offer{Rules: checkedRule("network", host, s)}
		}
	case s.Scope == core.ScopeMCP:
		if server, _, ok := strings.Cut(s.Resource, "/"); ok && !strings.Contains(server, "*") {
			return core.Offer{Rules: checkedRule("mcp", server+"/*", s)}
		}
	}
	return core.Offer{}
}

// breadth says what is broad about the exact rule for an access.
func (p *Policy) breadth(ctx context.Context, s *subject) string {
	if !s.Scope.IsFile() {
		return ""
	}
	if !s.Recursive && p.environment != nil {
		if info, err := p.environment.Files().Stat(ctx, s.path); err != nil || !info.IsDir() {
			return ""
		}
	}
	return p.breadthOf(s, s.path, s.Recursive)
}

// breadthOf says what is broad about a rule for a directory: one outside the
// workspace, the home directory, or one that contains a workspace.
func (p *Policy) breadthOf(s *subject, dir string, tree bool) string {
	folded := fold(dir)
	inside := slices.ContainsFunc(p.roots, func(root string) bool { return under(folded, root) && (folded != root || s.Scope == core.ScopeRead) })
	if inside && !p.holdsHome(folded) {
		return ""
	}
	what := map[core.Scope]string{core.ScopeRead: "reading ", core.ScopeWrite: "writing ", core.ScopeDelete: "deleting "}[s.Scope]
	if tree {
		what += "everything in "
	}
	return what + dir
}

// holdsHome reports whether a folded directory contains the home directory or a
// workspace, or is the home directory.
func (p *Policy) holdsHome(dir string) bool {
	return slices.ContainsFunc(p.known, func(known string) bool { return under(known, dir) && !slices.Contains(p.roots, dir) }) || p.home != "" && dir == fold(p.home)
}

// families are the programs of which a rule for all arguments makes sense, with
// the words that it must name at least: the program, its command, or what that
// runs.
var families = []struct {
	words    int
	programs string // "git/stash" is the command stash of git
}{
	{1, "pytest py.test jest vitest mocha eslint prettier tsc mypy ruff black isort gofmt gofumpt goimports staticcheck shellcheck rspec phpunit ctest tox"},
	{2, "go git gh npm pnpm yarn bun deno cargo rustup pip pip3 uv poetry dotnet mvn gradle make gmake just task rake bundle composer mix swift zig brew docker podman kubectl helm terraform tofu golangci-lint buf"},
	{3, "npm/run npm/exec pnpm/run pnpm/exec yarn/run bun/run deno/run deno/task uv/run poetry/run bundle/exec cargo/run go/run go/tool docker/run docker/exec docker/compose podman/run podman/exec gh/api gh/pr gh/issue gh/run gh/repo git/stash git/remote git/worktree git/submodule git/config dotnet/run kubectl/exec uv/pip"},
}

// familyOf returns the number of words that name what a command does, without
// its arguments; 0 if no rule should cover all of them.
func familyOf(argv []string) int {
	name := program(argv[0])
	n := 0
	for _, f := range families {
		for known := range strings.FieldsSeq(f.programs) {
			if known == name || len(argv) > 1 && known == name+"/"+argv[1] {
				n = f.words
			}
		}
	}
	bare := strings.TrimRight(name, "0123456789.-")
	switch {
	case n > 0:
	case strings.Contains(argv[0], "/"):
		n = 1 // a script or program of the project
	case interprets(bare) && len(argv) > 2 && argv[1] == "-m":
		n = 3
	case interprets(bare) && !strings.HasSuffix(bare, "awk"):
		n = 2
	}
	if n > len(argv) || n == 2 && strings.HasPrefix(argv[1], "-") || n == 3 && strings.HasPrefix(argv[2], "-") {
		return 0
	}
	return n
}
