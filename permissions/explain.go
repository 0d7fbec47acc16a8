package permissions

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// Explanation is the verdict on one access of a call, or on a part of one.
type Explanation struct {
	Access  core.Access  `json:"access"`
	Verdict core.Verdict `json:"-"` // in JSON "verdict", as a word
	// Step is what decided: none, deny-rule, builtin, unclear, sensitive,
	// protected, ask-rule, mode, allow-rule or grant.
	Step   string `json:"step"`
	Rule   string `json:"rule"`
	Source string `json:"source"`
	Reason string `json:"reason"`
	// Always is the rule that would allow the access, where one can.
	Always string `json:"always,omitempty"`
	// Sandboxed says that a command would run in the sandbox.
	Sandboxed bool `json:"sandboxed,omitempty"`
	// Parts are what a command line consists of: its simple commands, and the
	// files that they touch.
	Parts []Explanation `json:"parts,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (e Explanation) MarshalJSON() ([]byte, error) {
	type plain Explanation
	return json.Marshal(struct {
		Verdict string `json:"verdict"`
		plain
	}{e.Verdict.String(), plain(e)})
}

// Explain returns the verdict on each access of a call, or one on the call if
// it says that it touches nothing. [Policy.Decide] gives the worst of them.
func (p *Policy) Explain(ctx context.Context, req core.PermissionRequest) []Explanation {
	return p.explain(p.judgeAll(ctx, &req))
}

func (p *Policy) explain(findings []finding) []Explanation {
	all := make([]Explanation, len(findings))
	for i := range findings {
		f, e := &findings[i], &all[i]
		*e = Explanation{Access: f.subject.Access, Verdict: f.verdict, Step: f.step.String(), Always: always(findings[i : i+1])}
		e.Rule, e.Source = p.named(f)
		e.Reason = p.reason(f, e.Always)
		e.Sandboxed = p != nil && f.verdict == core.Allow && len(f.parts) > 0 && !f.free && p.Sandboxed()
		if len(f.parts) > 1 || len(f.parts) == 1 && f.parts[0].subject.Resource != f.subject.Resource {
			e.Parts = p.explain(f.parts)
		}
	}
	return all
}

// named returns what decided and where it stands.
func (p *Policy) named(f *finding) (rule, source string) {
	switch {
	case f.rule != nil:
		return f.rule.Text, f.rule.where
	case f.step == byMode:
		return "mode " + string(p.mode), p.modeFrom
	case f.step == byGrant:
		return "granted for the session", string(SourceSession)
	case f.step == byNothing:
		return "no policy", "builtin"
	}
	return f.step.String(), "builtin"
}

// reason says why, and where it is not a yes, what would be allowed.
func (p *Policy) reason(f *finding, always string) string {
	whole := f
	f = f.decisive()
	s := &f.subject
	what := doing(s)
	if f.via != "" {
		what += " by " + show(f.via)
	}
	switch f.step {
	case byDenyRule:
		if f.broken != nil {
			return fmt.Sprintf("%s is denied, since the condition %s (%s) fails on it: %v; the person can correct it", what, show(f.rule.Text), f.rule.where, f.broken)
		}
		return fmt.Sprintf("%s is denied by the rule %s (%s)%s, in every mode; what the rule does not name may be tried instead", what, f.rule.Text, f.rule.where, f.rule.because())
	case byBuiltin:
		return fmt.Sprintf("%s %s, which is denied in every mode: %s", what, f.hazard.what, f.hazard.instead)
	case byUnclear:
		return unclearText(f, what)
	case bySensitive, byProtected:
		return specialReason(f, what)
	case byAskRule:
		if f.rule == s.maybe {
			return fmt.Sprintf("%s asks, since what is not known of it decides on the condition %s (%s)%s", what, show(f.rule.Text), f.rule.where, f.rule.because())
		}
		return fmt.Sprintf("%s asks because of the rule %s (%s)%s", what, f.rule.Text, f.rule.where, f.rule.because())
	case byAllowRule:
		return "allowed by the rule " + f.rule.Text
	case byGrant:
		return "allowed by the person for this session"
	case byMode:
		return p.modeReason(f, whole, what, always)
	}
	return "no permissions have been set up, so nothing is allowed"
}

// because is the person's own reason for a rule.
func (r *rule) because() string {
	if r.why == "" {
		return ""
	}
	return ": " + r.why
}

func unclearText(f *finding, what string) string {
	switch {
	case f.via != "" || f.why != "":
		return fmt.Sprintf("%s asks, since it %s", what, f.why)
	case startsProgram(f.subject.Scope):
		return fmt.Sprintf("%s is longer than %d bytes or has control characters in it, so it asks in every mode; put a long script into a file", what, maxCommand)
	}
	return fmt.Sprintf("it is not known what %s touches, so it asks in every mode", what)
}

func specialReason(f *finding, what string) string {
	s := &f.subject
	kind, rest := "may hold secrets", "other files"
	if f.step == byProtected {
		kind, rest = "is protected: what lies there is run or obeyed by programs", "reading it, and other files,"
	}
	switch {
	case startsProgram(s.Scope):
		return fmt.Sprintf("%s names %s, which %s; it asks whatever allows the command", what, show(f.word), kind)
	case f.step == byProtected && s.Recursive:
		return fmt.Sprintf("%s asks, whatever allows it: the tree may hold protected files; name single files instead", what)
	}
	return fmt.Sprintf("%s asks, whatever allows it: the path %s; %s may do without", what, kind, rest)
}

func (p *Policy) modeReason(f, whole *finding, what, always string) string {
	s := &f.subject
	switch {
	case f.verdict == core.Allow && whole.reads:
		return "mode " + string(p.mode) + " allows it: the command only does what the mode allows"
	case f.verdict == core.Allow && len(whole.parts) > 0 && !whole.free:
		return "mode " + string(p.mode) + " allows it: the command runs in the sandbox, which has the workspace to write in and no network but what rules allow"
	case f.verdict == core.Allow:
		return "mode " + string(p.mode) + " allows it"
	case f.verdict == core.Deny && p.mode == ModeReadOnly:
		return fmt.Sprintf("mode read-only denies %s; reading inside the workspace is allowed%s", what, because(f))
	case f.verdict == core.Deny:
		return fmt.Sprintf("mode %q does not exist, so %s is denied", string(p.mode), what)
	}
	text := fmt.Sprintf("mode %s asks before %s%s", p.mode, what, because(f))
	switch {
	case s.Scope.IsFile() && !s.Inside:
		text += ", which is outside the workspace"
		if len(p.roots) > 0 {
			text += " (" + strings.Join(p.roots, ", ") + ")"
		}
	case s.Scope == core.ScopeShell && whole.subject.Unconfined && p.Sandboxed():
		text += ": it is to run outside the sandbox"
	case s.Scope == core.ScopeShell && p.mode == ModeWorkspace && !p.Sandboxed():
		text += ": commands are not confined to the workspace by a sandbox"
	}
	if always != "" {
		text += "; the rule " + always + " would allow it"
	}
	return text
}

// because says what keeps a command from being one that only reads.
func because(f *finding) string {
	if f.why == "" {
		return ""
	}
	return " (" + f.why + ")"
}

// doing says in a few words what an access does.
func doing(s *subject) string {
	verb := "the tool " + s.tool + " with "
	switch s.Scope {
	case core.ScopeRead:
		verb = "reading "
	case core.ScopeWrite:
		verb = "writing "
	case core.ScopeDelete:
		verb = "deleting "
	case core.ScopeShell:
		verb = "the command "
	case core.ScopeNetwork:
		verb = "the connection to "
	case core.ScopeMCP:
		verb = "the MCP tool "
	case core.ScopePlugin:
		verb = "the plugin's tool "
	case core.ScopeSkillScript:
		verb = "the skill's script "
	case core.ScopeSubagent:
		verb = "the subagent "
	default:
		if s.Resource == "" {
			return "the tool " + s.tool
		}
	}
	return verb + show(s.Resource)
}

// show quotes a text and keeps it short.
func show(text string) string {
	const most = 160
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

// always returns the rule that would allow all that asks, if only the mode
// asks and one rule can name it. The rule names the very access and no more:
// a rule for a program as a whole would allow what that program can run.
func always(findings []finding) string {
	text := ""
	for i := range findings {
		f := &findings[i]
		if f.verdict != core.Ask {
			continue
		}
		rule := ""
		switch {
		case len(f.parts) > 0:
			rule = always(f.parts)
		case f.step == byMode:
			rule = exactRule(&f.subject)
		}
		if rule == "" || text != "" && text != rule {
			return ""
		}
		text = rule
	}
	return text
}

// exactRule returns the rule that allows this access; empty if there is none.
func exactRule(s *subject) string {
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
			return ""
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
		return "" // would be all of its tools
	}
	if !s.Scope.IsFile() && !startsProgram(s.Scope) && strings.Contains(pattern, "*") {
		return ""
	}
	parsed, err := ParseRule(name + "(" + pattern + ")")
	if err != nil {
		return ""
	}
	r, err := compile(parsed, ListAllow, anchor{}, false)
	if err != nil || !r.allows(s) {
		return ""
	}
	return parsed.Text
}

// Tool returns the name of the tool that the rule is for; false if it is for a
// scope, a condition or everything.
func (r RuleInfo) Tool() (string, bool) {
	parsed, err := ParseRule(r.Rule)
	if err != nil || parsed.Name == "*" {
		return "", false
	}
	_, scope := scopeOf(parsed.Name)
	return parsed.Name, !scope && !r.When
}
