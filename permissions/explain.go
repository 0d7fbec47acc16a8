package permissions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// Explanation is the verdict on one access of a call, or on a part of it, and
// the reason. It is what "agent permissions explain" prints.
type Explanation struct {
	Access  core.Access  `json:"access"`
	Verdict core.Verdict `json:"-"` // in JSON "verdict", as a word
	// Step names the check that decided: none, deny-rule, builtin, unclear, sensitive,
	// protected, ask-rule, mode, allow-rule or grant.
	Step   string `json:"step"`
	Rule   string `json:"rule"`
	Source string `json:"source"`
	Reason string `json:"reason"`
	// Always are the rules that would allow the access; none if no rules can.
	Always []string `json:"always,omitempty"`
	// Sandboxed says that a command would run in the sandbox.
	Sandboxed bool `json:"sandboxed,omitempty"`
	// Parts are the simple commands of a command line and the files they access.
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

// Explain returns one verdict per access of a call, or a single one if the call
// declares no access. [Policy.Decide] returns the strictest of them.
func (p *Policy) Explain(ctx context.Context, req core.PermissionRequest) []Explanation {
	q, findings := p.judgeRequest(ctx, &req)
	return q.explain(ctx, findings)
}

func (p *Policy) explain(ctx context.Context, findings []finding) []Explanation {
	all := make([]Explanation, len(findings))
	for i := range findings {
		f, e := &findings[i], &all[i]
		*e = Explanation{Access: f.subject.Access, Verdict: f.verdict, Step: f.step.String()}
		exact, _ := p.exactAndWider(ctx, findings[i:i+1])
		e.Always = exact.Rules
		e.Rule, e.Source = p.named(f)
		e.Reason = p.reason(f, e.Always)
		e.Sandboxed = p != nil && f.verdict == core.Allow && len(f.parts) > 0 && !f.free && p.Sandboxed()
		if len(f.parts) > 1 || len(f.parts) == 1 && f.parts[0].subject.Resource != f.subject.Resource {
			e.Parts = p.explain(ctx, f.parts)
		}
	}
	return all
}

// named returns the rule or check that decided, and its source.
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

// reason explains a verdict; if it is not Allow, it also suggests what to do.
func (p *Policy) reason(f *finding, always []string) string {
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
			return fmt.Sprintf("%s is denied: the condition %s (%s) fails on it: %v; the user can fix the condition", what, show(f.rule.Text), f.rule.where, f.broken)
		}
		return fmt.Sprintf("%s is denied in every mode by the rule %s (%s)%s; try something the rule does not match", what, f.rule.Text, f.rule.where, f.rule.because())
	case byBuiltin:
		return fmt.Sprintf("%s %s, which is denied in every mode; %s", what, f.hazard.what, f.hazard.instead)
	case byUnclear:
		return unclearText(f, what)
	case bySensitive, byProtected:
		return specialReason(f, what)
	case byAskRule:
		if f.rule == s.maybe {
			return fmt.Sprintf("%s needs approval: not enough is known about it to evaluate the condition %s (%s)%s", what, show(f.rule.Text), f.rule.where, f.rule.because())
		}
		return fmt.Sprintf("%s needs approval because of the rule %s (%s)%s", what, f.rule.Text, f.rule.where, f.rule.because())
	case byAllowRule:
		return "allowed by the rule " + f.rule.Text
	case byGrant:
		return "allowed by the user for this session"
	case byMode:
		return p.modeReason(f, whole, what, always)
	}
	return "no permission policy is configured, so nothing is allowed"
}

// because is the reason that the user gave for a rule.
func (r *rule) because() string {
	if r.why == "" {
		return ""
	}
	return ": " + r.why
}

func unclearText(f *finding, what string) string {
	switch {
	case f.via != "" || f.why != "":
		return fmt.Sprintf("%s needs approval: it %s", what, f.why)
	case startsProgram(f.subject.Scope):
		return fmt.Sprintf("%s needs approval in every mode: it is longer than %d bytes or has control characters; put long scripts in a file", what, maxCommand)
	}
	return fmt.Sprintf("%s needs approval in every mode: it is not known what it accesses", what)
}

func specialReason(f *finding, what string) string {
	s := &f.subject
	kind, rest := "may contain secrets", "other files may not need it"
	if f.step == byProtected {
		kind, rest = "is protected because programs run or trust what it contains", "reading it or changing other files may not need it"
	}
	switch {
	case startsProgram(s.Scope):
		return fmt.Sprintf("%s always needs approval: it names %s, which %s", what, show(f.word), kind)
	case f.step == byProtected && s.Recursive:
		return fmt.Sprintf("%s always needs approval: the directory may contain protected files; name individual files instead", what)
	}
	return fmt.Sprintf("%s always needs approval: the path %s; %s", what, kind, rest)
}

// snapshot says that what the command removes can be brought back.
func (f *finding) snapshot() string {
	switch f.kept {
	case 0:
		return ""
	case 1:
		return "; a snapshot holds the file that it may remove or overwrite"
	}
	return fmt.Sprintf("; a snapshot holds the %d files that it may remove or overwrite", f.kept)
}

func (p *Policy) modeReason(f, whole *finding, what string, always []string) string {
	s := &f.subject
	switch {
	case f.verdict == core.Allow && whole.reads:
		return "mode " + string(p.mode) + " allows everything the command does"
	case f.verdict == core.Allow && len(whole.parts) > 0 && !whole.free:
		return "mode " + string(p.mode) + " allows it: the command runs in the sandbox, which can write only in the workspace and reach only the hosts that rules allow" + whole.snapshot()
	case f.verdict == core.Allow:
		return "mode " + string(p.mode) + " allows it"
	case f.verdict == core.Deny && (p.mode == ModeReadOnly || p.mode == ModePlan):
		return fmt.Sprintf("mode %s denies %s%s; reading inside the workspace is allowed", p.mode, what, because(f))
	case f.verdict == core.Deny:
		return fmt.Sprintf("unknown mode %q, so %s is denied", string(p.mode), what)
	}
	text := fmt.Sprintf("mode %s asks before %s%s", p.mode, what, because(f))
	if f.need {
		return text + f.foreseen()
	}
	switch {
	case s.Scope.IsFile() && !s.Inside:
		text += ", which is outside the workspace"
		if len(p.roots) > 0 {
			text += " (" + strings.Join(p.roots, ", ") + ")"
		}
	case s.Scope == core.ScopeShell && whole.subject.Unconfined && p.Sandboxed():
		text += ": it would run outside the sandbox"
	case s.Scope == core.ScopeShell && p.mode == ModeWorkspace && !p.Sandboxed():
		text += ": there is no sandbox to confine it to the workspace"
	}
	switch len(always) {
	case 0:
	case 1:
		text += "; the rule " + always[0] + " would allow it"
	default:
		text += "; the rules " + strings.Join(always, ", ") + " would allow it"
	}
	return text
}

// because says why a command is not known to be read-only.
func because(f *finding) string {
	if f.why == "" {
		return ""
	}
	return " (" + f.why + ")"
}

// doing describes an access in a few words.
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
		verb = "connecting to "
	case core.ScopeMCP:
		verb = "the MCP tool "
	case core.ScopePlugin:
		verb = "the plugin tool "
	case core.ScopeSkillScript:
		verb = "the skill script "
	case core.ScopeSubagent:
		verb = "the subagent "
	default:
		if s.Resource == "" {
			return "the tool " + s.tool
		}
	}
	return verb + show(s.Resource)
}

// show quotes a text and shortens it.
func show(text string) string {
	const most = 160
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

// Tool returns the tool that the rule names; false if it is a condition, a rule
// for a scope or "*".
func (r RuleInfo) Tool() (string, bool) {
	parsed, err := ParseRule(r.Rule)
	if err != nil || parsed.Name == "*" {
		return "", false
	}
	_, scope := scopeOf(parsed.Name)
	return parsed.Name, !scope && !r.When
}
