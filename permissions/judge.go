package permissions

import (
	"slices"
	"strings"
	"unicode"

	"github.com/seed-009c0928/agent/core"
)

// subject is an access, made ready for rules.
type subject struct {
	core.Access
	tool   string
	dir    string // the session's, slashed; empty if not known
	path   string // of a file, slashed; empty if it cannot be understood
	folded string // path with case folded
	ruled  string // path as rules that tighten compare it
	handle bool   // a stored output of the session, not a file
	carved bool   // parts of the tree can be left out
	vague  bool   // it is not known what the access touches

	program  string   // of a command whose words are known
	programs []string // that a command may run as well
}

func (p *Policy) subject(tool, dir string, a core.Access) subject {
	s := subject{Access: a, tool: tool, dir: dir}
	_, known := scopeOf(string(a.Scope))
	switch {
	case !known || a.Scope == core.ScopeUnknown:
		s.vague = true
	case startsProgram(a.Scope):
		s.vague = len(a.Resource) > maxCommand || strings.ContainsFunc(a.Resource, hiddenControl)
		s.readPrograms()
	case a.Scope == core.ScopeRead && !a.Recursive && strings.HasPrefix(a.Resource, core.HandlePrefix):
		s.handle = true
	case a.Scope.IsFile():
		path, ok := cleanPath(a.Resource)
		if s.vague = !ok; s.vague {
			break
		}
		s.path, s.folded, s.ruled = path, fold(path), path
		if p != nil && p.fold {
			s.ruled = s.folded
		}
	}
	return s
}

// maxCommand is the length of a command in bytes up to which it is looked into.
const maxCommand = 10_000

// hiddenControl reports whether a character makes a command another than it
// looks like.
func hiddenControl(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }

// step is what decided, the most binding first.
type step uint8

const (
	byNothing step = iota // there is no policy
	byDenyRule
	byBuiltin
	byUnclear
	bySensitive
	byProtected
	byAskRule
	byMode
	byAllowRule
	byGrant
)

func (s step) String() string {
	return [...]string{"none", "deny-rule", "builtin", "unclear", "sensitive", "protected", "ask-rule", "mode", "allow-rule", "grant"}[s]
}

// finding is the verdict on one access.
type finding struct {
	subject subject
	verdict core.Verdict
	step    step
	rule    *rule
	hazard  hazard
	word    string // of a command, that names a special place
}

func (f *finding) worse(g *finding) bool {
	if f.verdict != g.verdict {
		return f.verdict < g.verdict
	}
	return f.step < g.step
}

// grantable reports whether a yes can hold for the session: there must be
// something to know the access by.
func (f *finding) grantable() bool { return f.subject.Resource != "" }

// judgeAll returns the finding on each access, or the one on a call that says
// it touches nothing.
func (p *Policy) judgeAll(req *core.PermissionRequest) []finding {
	dir := slashed(req.Session.Dir)
	if len(req.Accesses) == 0 {
		return []finding{p.judgeNone(subject{tool: req.Tool, dir: dir})}
	}
	carved := !slices.ContainsFunc(req.Accesses, func(a core.Access) bool {
		return !a.Scope.IsFile() && a.Scope != core.ScopeSubagent && a.Scope != core.ScopeNetwork
	})
	findings := make([]finding, len(req.Accesses))
	for i, a := range req.Accesses {
		f := &findings[i]
		f.subject = p.subject(req.Tool, dir, a)
		f.subject.carved = carved && a.Scope == core.ScopeRead
		p.judge(f)
		if f.verdict == core.Ask && f.grantable() && req.Granted != nil && req.Granted(a) {
			f.verdict, f.step, f.rule = core.Allow, byGrant, nil
		}
	}
	return findings
}

// judge decides on one access. The order of its lines is the order of the
// package's documentation; after the allow rules, verdicts only get worse.
func (p *Policy) judge(f *finding) {
	s := &f.subject
	if p == nil || p.mode == "" {
		return
	}
	if f.rule = first(p.deny, s); f.rule != nil {
		f.step = byDenyRule
		return
	}
	if f.hazard = p.forbidden(s); f.hazard.what != "" {
		f.step = byBuiltin
		return
	}
	f.verdict, f.step = p.byDefault(s), byMode
	if f.rule = p.allowing(s); f.rule != nil {
		f.verdict, f.step = core.Allow, byAllowRule
	}
	if f.verdict == core.Deny {
		return
	}
	if s.vague {
		f.verdict, f.step = core.Ask, byUnclear
		return
	}
	if word, at := p.special(s); at != ordinary {
		f.verdict, f.step, f.rule, f.word = core.Ask, bySensitive, nil, word
		if at == guarded {
			f.step = byProtected
		}
		return
	}
	if p.mode == ModeBypass {
		return
	}
	if r := first(p.ask, s); r != nil {
		f.verdict, f.step, f.rule = core.Ask, byAskRule, r
	}
}

// judgeNone decides on a call that touches nothing.
func (p *Policy) judgeNone(s subject) finding {
	f := finding{subject: s}
	if p == nil || p.mode == "" {
		return f
	}
	if f.rule = first(p.deny, &s); f.rule != nil {
		f.step = byDenyRule
		return f
	}
	if f.step = byMode; p.byDefault(&s) == core.Deny {
		return f
	}
	if f.rule = first(p.ask, &s); f.rule != nil && p.mode != ModeBypass {
		f.verdict, f.step = core.Ask, byAskRule
		return f
	}
	f.verdict, f.rule = core.Allow, nil
	return f
}

// allowing returns the first allow rule that names the access.
func (p *Policy) allowing(s *subject) *rule {
	for _, r := range p.allow {
		if r.allows(s) {
			return r
		}
	}
	return nil
}

// first returns the first rule that may name the access.
func first(rules []*rule, s *subject) *rule {
	for _, r := range rules {
		if r.catches(s) {
			return r
		}
	}
	return nil
}

// forbidden looks for what is denied in every mode.
func (p *Policy) forbidden(s *subject) hazard {
	switch {
	case s.Scope == core.ScopeDelete && s.path != "" && p.irremovable(s.path, s.dir):
		return hazard{what: "removes " + show(s.path), instead: insteadRemove}
	case s.Scope == core.ScopeWrite && isRawDevice(s.Resource):
		return hazard{what: "writes to a raw device", instead: insteadDevice}
	case startsProgram(s.Scope):
		h := p.hazards(s)
		if h.escalation == "" || !p.userAllows(s, h.escalation) {
			return h
		}
	}
	return hazard{}
}

// userAllows reports whether a rule of the user allows a command and names the
// program that runs it as another user.
func (p *Policy) userAllows(s *subject, escalation string) bool {
	return slices.ContainsFunc(p.allow, func(r *rule) bool {
		return r.source == SourceUser && r.argv != nil && r.allows(s) &&
			slices.ContainsFunc(r.argv.words, func(w string) bool { return program(w) == escalation })
	})
}

// special says whether an access leads to a place that asks, and for a command
// which of its words names it.
func (p *Policy) special(s *subject) (word string, at place) {
	switch {
	case s.handle:
		return "", ordinary
	case startsProgram(s.Scope):
		return p.namedPlace(s)
	case !s.Scope.IsFile():
		return "", ordinary
	}
	at = p.placeAt(s.folded)
	if s.Scope == core.ScopeRead {
		if at != sensitive {
			at = ordinary
		}
		return "", at
	}
	if at == ordinary && s.Recursive { // a whole tree may hold anything
		at = guarded
	}
	return "", at
}

// placeAt says what an absolute, folded path leads to.
func (p *Policy) placeAt(path string) place {
	skip := 0
	for _, dir := range p.known {
		if len(dir) > skip && under(path, dir) {
			skip = len(dir)
		}
	}
	at := placeOf(path, skip)
	if p.keys != "" && path == p.keys {
		return sensitive
	}
	if at == ordinary {
		for _, dir := range p.protected {
			if under(path, dir) {
				return guarded
			}
		}
	}
	return at
}

// byDefault is the mode's word on an access that no rule allows.
func (p *Policy) byDefault(s *subject) core.Verdict {
	inside := s.Inside || s.handle
	switch p.mode {
	case ModeBypass:
		return core.Allow
	case ModeReadOnly:
		if s.Scope == core.ScopeWrite || s.Scope == core.ScopeDelete || s.Scope == core.ScopeShell {
			return core.Deny
		}
	case ModeAcceptEdits, ModeWorkspace:
		if s.Scope == core.ScopeWrite && inside {
			return core.Allow
		}
	case ModeDefault:
	default:
		return core.Deny
	}
	if s.Scope == core.ScopeSubagent || s.Scope == core.ScopeRead && inside {
		return core.Allow
	}
	return core.Ask
}
