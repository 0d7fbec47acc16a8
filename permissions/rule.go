package permissions

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/jsonpos"
)

// Rule is the parsed text of a rule. What its pattern means depends on the scope
// that Name stands for; see the package documentation.
type Rule struct {
	Text    string
	Name    string // a scope, a tool, or "*"
	Pattern string // "*" if the rule has none
}

// RuleError is an invalid rule.
type RuleError struct {
	Rule   string
	Where  string // file:line, file or source; empty if unknown
	Column int    // of the error in Rule, in bytes from 1
	Reason string // and what to write instead
}

// Error implements error.
func (e *RuleError) Error() string {
	place := ""
	if e.Where != "" {
		place = e.Where + ": "
	}
	return fmt.Sprintf("%spermission rule %q, column %d: %s", place, e.Rule, e.Column, e.Reason)
}

const ruleForms = `expected NAME, NAME(pattern) or *, such as shell(go test *), fs-read(./docs/**), mcp(github/get_*) or write_file(*)`

// scopeOf returns the scope that a name in a rule stands for.
func scopeOf(name string) (core.Scope, bool) {
	switch s := core.Scope(name); s {
	case "shell":
		return core.ScopeShell, true
	case core.ScopeRead, core.ScopeWrite, core.ScopeDelete, core.ScopeShell, core.ScopeNetwork, core.ScopeMCP,
		core.ScopePlugin, core.ScopeSkillScript, core.ScopeSubagent, core.ScopeUnknown:
		return s, true
	}
	return "", false
}

// ParseRule parses the text of a rule. The error is a *[RuleError].
func ParseRule(text string) (Rule, error) {
	fail := func(column int, format string, args ...any) (Rule, error) {
		return Rule{}, &RuleError{Rule: text, Column: column + 1, Reason: fmt.Sprintf(format, args...)}
	}
	if i := strings.IndexFunc(text, unprintable); i >= 0 {
		return fail(i, "a rule is one line of printable UTF-8")
	}
	trimmed := strings.TrimSpace(text)
	start := strings.Index(text, trimmed)
	if trimmed == "" {
		return fail(0, "the rule is empty: %s", ruleForms)
	}
	if trimmed == "*" {
		return Rule{Text: trimmed, Name: "*", Pattern: "*"}, nil
	}
	end := strings.IndexFunc(trimmed, func(r rune) bool { return !isNameRune(r) })
	if end < 0 {
		end = len(trimmed)
	}
	name, rest := trimmed[:end], trimmed[end:]
	if name == "" || rest != "" && rest[0] != '(' {
		return fail(start+end, "unexpected %q: %s", rest[:runeLen(rest)], ruleForms)
	}
	if err := checkName(name); err != nil {
		return fail(start, "%v", err)
	}
	if rest == "" {
		return Rule{Text: trimmed, Name: name, Pattern: "*"}, nil
	}
	if !strings.HasSuffix(rest, ")") || len(rest) < 2 {
		return fail(start+len(trimmed), "expected ) at the end: %s", ruleForms)
	}
	pattern := strings.TrimSpace(rest[1 : len(rest)-1])
	if pattern == "" {
		return fail(start+end+1, "the pattern is empty: write %s(*) for everything", name)
	}
	return Rule{Text: trimmed, Name: name, Pattern: pattern}, nil
}

func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

func isNameRune(r rune) bool {
	return r == '_' || r == '-' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func runeLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// checkName rejects misspelled scopes: as tool names they would match nothing,
// and a deny rule would have no effect.
func checkName(name string) error {
	if _, ok := scopeOf(name); ok {
		return nil
	}
	lower := strings.ToLower(name)
	if _, ok := scopeOf(lower); ok {
		return fmt.Errorf("unknown scope %q: write %s", name, lower)
	}
	// A name this close to a scope is not a tool.
	if near := jsonpos.Nearest(lower, []string{"shell", "shell-run", "network", "plugin", "skill-script", "subagent"}); near != "" {
		return fmt.Errorf("unknown scope %q: did you mean %s?", name, near)
	}
	if strings.HasPrefix(lower, "fs-") {
		return fmt.Errorf("unknown scope %q: the scopes of files are fs-read, fs-write and fs-delete", name)
	}
	return nil
}

// rule is a compiled rule.
type rule struct {
	Rule
	list   List
	source Source
	where  string
	order  int        // in its list
	cond   *condition // instead of a pattern
	index  int        // of cond among all conditions
	why    string     // of a condition, for users
	every  bool       // the name is *
	all    bool       // the pattern is *
	scope  core.Scope // empty if the name is a tool's
	// The compiled pattern, by scope. A rule for a tool can have several; nil if
	// the pattern is not valid for that scope.
	globs []glob
	argv  *argvPattern
}

// compile compiles a rule. Deny and ask rules compare folded paths if the policy
// does.
func compile(r Rule, list List, a anchor, folded bool) (*rule, error) {
	c := &rule{Rule: r, list: list, every: r.Name == "*", all: r.Pattern == "*"}
	c.scope, _ = scopeOf(r.Name)
	if c.scope == core.ScopeUnknown && list == ListAllow {
		return nil, c.fail(1, "an unknown access always needs approval: allow the tool's known scopes instead")
	}
	if c.all {
		return c, nil
	}
	globs, globErr := a.globs(r.Pattern, folded && list != ListAllow)
	argv, column, argvErr := parseArgvPattern(r.Pattern)
	column += strings.IndexByte(r.Text, '(') + 2
	switch {
	case c.scope.IsFile() && globErr != nil:
		return nil, c.fail(len(r.Name)+2, globErr.Error())
	case startsProgram(c.scope) && argvErr != nil:
		return nil, c.fail(column, argvErr.Error())
	case c.scope == "" && globErr != nil && argvErr != nil:
		return nil, c.fail(len(r.Name)+2, errors.Join(globErr, argvErr).Error())
	}
	if globErr == nil {
		c.globs = globs
	}
	if argvErr == nil {
		c.argv = argv
	}
	return c, nil
}

func (r *rule) fail(column int, reason string) error {
	return &RuleError{Rule: r.Text, Column: column, Reason: reason}
}

func startsProgram(s core.Scope) bool { return s == core.ScopeShell || s == core.ScopeSkillScript }

// about reports whether the rule applies to the scope or the tool of an access.
func (r *rule) about(s *subject) bool {
	return r.every || r.scope == s.Scope && r.scope != "" || r.scope == "" && r.Name == s.tool
}

// allows reports whether the rule matches the whole access. It never does if the
// access is not fully known.
func (r *rule) allows(s *subject) bool {
	if s.vague {
		return false
	}
	if r.cond != nil {
		return r.index < len(s.holds) && s.holds[r.index]
	}
	if !r.about(s) {
		return false
	}
	if r.all {
		return !startsProgram(s.Scope) || len(s.Argv) > 0
	}
	switch {
	case s.Scope.IsFile():
		for i := range r.globs {
			if g := &r.globs[i]; s.Recursive && g.covers(s.path) || !s.Recursive && g.match(s.path) {
				return true
			}
		}
		return false
	case s.whole:
		return r.Pattern == s.Resource
	case startsProgram(s.Scope):
		return r.argv != nil && r.argv.matches(s)
	}
	return matchResource(r.Pattern, s)
}

// catches reports whether the rule matches the access or could match a part of
// it. If in doubt, it does.
func (r *rule) catches(s *subject) bool {
	if r.cond != nil {
		return r.index < len(s.holds) && s.holds[r.index]
	}
	if r.all && (r.about(s) || r.Name == s.tool) {
		return true
	}
	if !r.about(s) {
		return false
	}
	switch {
	case s.handle:
		return false
	case s.Scope.IsFile():
		return s.path == "" || r.globs == nil || r.meets(s)
	case startsProgram(s.Scope):
		return r.argv == nil || r.argv.mayMatch(s)
	case s.Scope == "" || s.Scope == core.ScopeUnknown:
		return false // needs approval anyway
	case s.Scope == core.ScopeNetwork:
		wantHost, _ := splitHost(r.Pattern)
		host, port := splitHost(s.Resource)
		return port == "" && wild(wantHost, host) || matchHost(r.Pattern, s.Resource) // without a port, it could be any
	}
	return matchResource(r.Pattern, s)
}

// meets reports whether the rule may match a path or one in its tree.
func (r *rule) meets(s *subject) bool {
	for i := range r.globs {
		g := &r.globs[i]
		if g.match(s.ruled) || s.Recursive && !s.carved && g.meets(s.ruled) {
			return true
		}
	}
	return false
}

// matchResource matches resources that are neither paths nor commands.
func matchResource(pattern string, s *subject) bool {
	switch s.Scope {
	case core.ScopeNetwork:
		return matchHost(pattern, s.Resource)
	case core.ScopeMCP, core.ScopePlugin:
		owner, tool, _ := strings.Cut(s.Resource, "/")
		wantOwner, wantTool, both := strings.Cut(pattern, "/")
		return wild(wantOwner, owner) && (!both || wild(wantTool, tool))
	}
	return wild(pattern, s.Resource)
}

// matchHost matches a host, and its port if the pattern has one.
func matchHost(pattern, resource string) bool {
	host, port := splitHost(resource)
	wantHost, wantPort := splitHost(pattern)
	return wild(wantHost, host) && (wantPort == "" || wantPort == port)
}

// splitHost splits a host, host:port or URL.
func splitHost(s string) (host, port string) {
	s = fold(s)
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	if i := strings.IndexAny(s, `/?#\`); i >= 0 {
		s = s[:i]
	}
	host = s[strings.LastIndexByte(s, '@')+1:]
	if i := strings.LastIndexByte(host, ':'); i > 0 && (strings.Count(host, ":") == 1 || host[i-1] == ']') {
		host, port = host[:i], host[i+1:]
	}
	return strings.TrimSuffix(strings.Trim(host, "[]"), "."), port
}
