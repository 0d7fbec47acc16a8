package permissions

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// maxReasons bounds the reasons in a permission request.
const maxReasons = 8

// asking yields what needs approval: accesses, or parts of them.
func asking(findings []finding) iter.Seq[*finding] {
	return func(yield func(*finding) bool) {
		for i := range findings {
			f := &findings[i]
			if f.verdict != core.Ask {
				continue
			}
			if len(f.parts) == 0 {
				if !yield(f) {
					return
				}
				continue
			}
			for part := range asking(f.parts) {
				if !yield(part) {
					return
				}
			}
		}
	}
}

// whys says what needs approval, for the user: the gravest first.
func (p *Policy) whys(findings []finding) []string {
	var all []*finding
	files := false
	for f := range asking(findings) {
		all = append(all, f)
		files = files || f.step == bySensitive && f.subject.Scope.IsFile()
	}
	slices.SortStableFunc(all, func(a, b *finding) int {
		return cmp.Or(cmp.Compare(a.gravity(), b.gravity()), cmp.Compare(a.step, b.step))
	})
	var out []string
	for _, f := range all {
		var texts []string
		f.alone = slices.ContainsFunc(findings, func(whole finding) bool { return whole.subject.Resource == f.subject.Resource })
		if !files || f.step != bySensitive || f.subject.Scope.IsFile() { // else the file says more than its name
			texts = append(texts, p.why(f))
		}
		if startsProgram(f.subject.Scope) && f.step < byMode && f.why != "" {
			texts = append(texts, f.why)
		}
		for _, text := range texts {
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	if len(out) > maxReasons {
		out = append(out[:maxReasons], fmt.Sprintf("… and %d more", len(out)-maxReasons))
	}
	if p.Sandboxed() && slices.ContainsFunc(findings, func(f finding) bool { return f.verdict == core.Ask && f.free }) {
		out = append(out, "runs outside the sandbox")
	}
	return out
}

// gravity orders what needs approval, the gravest first.
func (f *finding) gravity() int {
	switch {
	case f.losing():
		return 0
	case f.step < byMode:
		return 1
	case f.subject.Scope == core.ScopeDelete:
		return 2
	case f.subject.Scope == core.ScopeWrite:
		return 3
	case f.subject.Scope == core.ScopeRead:
		return 5
	}
	return 4
}

// why says in a few words why one thing needs approval.
func (p *Policy) why(f *finding) string {
	s := &f.subject
	what := p.does(s)
	switch {
	case f.need:
		if f.alone {
			return f.why
		}
		return "`" + cmp.Or(f.via, s.Resource) + "` " + strings.TrimPrefix(f.why, "it ")
	case f.losing(), f.step == byUnclear && f.why != "":
		switch {
		case startsProgram(s.Scope) && f.alone: // the question names it
			return f.why
		case startsProgram(s.Scope) && (f.losing() || !strings.HasPrefix(f.why, `"`)):
			return "`" + s.Resource + "` " + f.why
		case startsProgram(s.Scope): // it names the offending part
			return f.why
		}
		return what + " " + f.why
	case f.step == byUnclear && startsProgram(s.Scope):
		return fmt.Sprintf("the command is longer than %d bytes or has control characters", maxCommand)
	case f.step == byUnclear:
		return "it is not known what the call does"
	case f.step == bySensitive && startsProgram(s.Scope):
		return "names " + show(f.word) + ", which may contain secrets"
	case f.step == bySensitive:
		return what + ", which may contain secrets"
	case f.step == byProtected && startsProgram(s.Scope):
		return "names " + show(f.word) + ", which programs run or trust"
	case f.step == byProtected && s.Recursive:
		return what + ", where files may be that programs run or trust"
	case f.step == byProtected:
		return what + ", which programs run or trust"
	case f.step == byAskRule && f.rule != nil:
		return fmt.Sprintf("the rule %s (%s) asks%s", f.rule.Text, f.rule.where, f.rule.because())
	case s.Scope.IsFile() && !s.Inside:
		return what + ", outside the workspace"
	case f.why != "":
		return f.why
	case startsProgram(s.Scope) && p.mode == ModeWorkspace && s.Scope == core.ScopeShell && !p.Sandboxed():
		return "no sandbox works here that would confine the command"
	}
	return fmt.Sprintf("mode %s asks before %s", p.mode, kinds[s.Scope])
}

// kinds names the accesses of a scope.
var kinds = map[core.Scope]string{
	core.ScopeRead: "reading files", core.ScopeWrite: "writing files", core.ScopeDelete: "deleting files",
	core.ScopeShell: "commands", core.ScopeSkillScript: "scripts of skills", core.ScopeNetwork: "connections", core.ScopeMCP: "MCP tools",
	core.ScopePlugin: "tools of plugins", core.ScopeSubagent: "subagents", core.ScopeUnknown: "what it does not know", "": "what it does not know",
}

// does says what is done to a file.
func (p *Policy) does(s *subject) string {
	verb := map[core.Scope]string{core.ScopeRead: "reads ", core.ScopeWrite: "writes ", core.ScopeDelete: "deletes "}[s.Scope]
	if s.Recursive {
		verb += "everything in "
	}
	name := cmp.Or(s.path, s.Resource)
	switch {
	case s.dir != "" && name != s.dir && under(name, s.dir):
		name = strings.TrimPrefix(strings.TrimPrefix(name, s.dir), "/")
	case p.home != "" && name != p.home && under(name, p.home):
		name = "~" + strings.TrimPrefix(name, p.home)
	}
	return verb + name
}
