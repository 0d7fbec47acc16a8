package permissions

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/sensitive"
)

// subject is an access, or a part of one, prepared for matching rules.
type subject struct {
	core.Access
	tool    string
	source  string // the tool's toolset
	agent   string // the calling subagent; empty for the root
	dir     string // the session's, slashed; empty if unknown
	session string // its ID
	path    string // of a file, slashed; empty if invalid
	folded  string // path with case folded
	ruled   string // path as deny and ask rules compare it
	handle  bool   // a stored output of the session, not a file
	carved  bool   // parts of the tree can be excluded
	vague   bool   // it is not known what is accessed
	whole   bool   // a command for an unknown shell

	sure     int      // how many words of Argv are known, from the first
	program  string   // of a command whose first word is known
	programs []string // that the command may also run

	holds []bool // whether each condition holds
	maybe *rule  // a condition that cannot be evaluated, as too little is known
}

// subject prepares an access.
func (p *Policy) subject(req *core.PermissionRequest, a core.Access) subject {
	s := subject{
		Access: a, tool: req.Tool, source: req.Source, dir: slashed(req.Session.Dir), session: req.Session.ID,
		agent: strings.Join(req.Session.AgentPath, "/"), sure: len(a.Argv),
	}
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

// certain returns the words of a command before the first unknown one.
func (s *subject) certain() []string { return s.Argv[:min(s.sure, len(s.Argv))] }

// maxCommand is the length in bytes up to which a command is analyzed.
const maxCommand = 10_000

// hiddenControl reports whether a character can make a command look different
// from what it does.
func hiddenControl(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }

// step is the check that decided, the most binding first.
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

// finding is the verdict on an access or on a part of one.
type finding struct {
	subject subject
	verdict core.Verdict
	step    step
	rule    *rule
	broken  error // of the condition, if it failed
	hazard  hazard
	word    string // of a command: the word that names a special place
	why     string // why a command is not known to be read-only
	via     string // the part of a script that accesses the file

	sensitive []string // places that it can access, whatever the verdict

	// Of a command line: its parts, and the index of the one that decided.
	parts []finding
	worst int
	// free says that it may run outside the sandbox; environ must be in its
	// environment.
	free    bool
	environ []string
	reads   bool // allowed because of what it does
	extra   bool // it only says more about another one
	alone   bool // it is a part that is the whole command line
	// confined says that an approval does not take it out of the sandbox: it needs
	// that only for files that it loses, or for what opened opens.
	confined bool
	opened   []core.Grant
	kept     int    // files that are lost, but for a snapshot
	need     bool   // a part that is foreseen
	remedy   string // flags that would allow all that is foreseen
}

// losing reports whether an approval is needed only for files that would be lost.
func (f *finding) losing() bool { return f.confined && !f.need }

func (f *finding) worse(g *finding) bool {
	if f.verdict != g.verdict {
		return f.verdict < g.verdict
	}
	return f.step < g.step
}

// grantable reports whether an approval can last for the session: the access
// must be identifiable.
func (f *finding) grantable() bool { return f.subject.Resource != "" }

// decisive returns the part that decided, or the finding itself if it has none.
func (f *finding) decisive() *finding {
	if len(f.parts) == 0 {
		return f
	}
	return &f.parts[f.worst]
}

// sensitivePlaces returns the sensitive places that the access leads to: paths, or
// words of a command.
func (f *finding) sensitivePlaces() []string {
	parts := f.parts
	if len(parts) == 0 {
		parts = []finding{*f}
	}
	var places []string
	for i := range parts {
		if part := &parts[i]; part.step == bySensitive {
			if name := cmp.Or(part.subject.path, part.word); !slices.Contains(places, name) {
				places = append(places, name)
			}
		}
	}
	return places
}

// judgeAll returns the finding on each access, or a single one on a call that
// declares no access.
func (p *Policy) judgeAll(ctx context.Context, req *core.PermissionRequest) []finding {
	if len(req.Accesses) == 0 {
		return []finding{p.judgeNone(p.subject(req, core.Access{}))}
	}
	carved := !slices.ContainsFunc(req.Accesses, func(a core.Access) bool {
		return !a.Scope.IsFile() && a.Scope != core.ScopeSubagent && a.Scope != core.ScopeNetwork
	})
	findings := make([]finding, len(req.Accesses))
	for i, a := range req.Accesses {
		f := &findings[i]
		f.subject = p.subject(req, a)
		f.subject.carved = carved && a.Scope == core.ScopeRead
		judge := p
		if p != nil && p.mode == ModePlan && (a.Scope == core.ScopeWrite || a.Scope == core.ScopeDelete || a.Scope == core.ScopeShell) {
			judge = p.withoutRules()
		}
		judge.judge(ctx, f)
		f.sensitive = f.sensitivePlaces()
		if f.verdict == core.Ask && judge == p && f.grantable() && req.Granted != nil && req.Granted(a) {
			f.verdict, f.step, f.rule, f.parts = core.Allow, byGrant, nil, nil
		}
	}
	settleFetch(findings)
	p.widen(findings)
	return findings
}

// withoutRules returns the policy without allow rules.
func (p *Policy) withoutRules() *Policy {
	q := *p
	q.allow, q.approved = ruleList{}, ruleList{}
	return &q
}

// webFetch is the tool of the bundled plugin that does nothing but connect to
// hosts: allow rules for them are enough.
const webFetch = "web/web_fetch"

func settleFetch(findings []finding) {
	var fetch, host *finding
	for i := range findings {
		switch f := &findings[i]; {
		case f.subject.Scope == core.ScopePlugin && f.subject.Resource == webFetch && f.step == byMode && f.verdict == core.Ask:
			fetch = f
		case f.subject.Scope == core.ScopeNetwork && f.verdict == core.Allow && f.step == byAllowRule:
			host = f
		default:
			return
		}
	}
	if fetch != nil && host != nil {
		fetch.verdict, fetch.step, fetch.rule = core.Allow, byAllowRule, host.rule
	}
}

// judge decides on one access. A command line that can be analyzed is judged by
// its parts.
func (p *Policy) judge(ctx context.Context, f *finding) {
	if p == nil || p.mode == "" {
		return
	}
	s := &f.subject
	if !startsProgram(s.Scope) {
		p.judgeWhole(f, byItself)
		return
	}
	switch {
	case s.vague:
		p.judgeWhole(f, byItself)
	case s.Scope == core.ScopeShell && p.posix:
		p.judgeScript(ctx, f)
	default:
		s.whole = len(s.Argv) == 0
		p.judgeWhole(f, p.settledBy(s))
		f.free = f.step == byAllowRule
	}
	// What the user approves runs as the user would run it. Scripts of skills
	// stay in the sandbox, and so do commands that would run there but for the
	// files that they lose or what can be opened to them. Mode bypass has none.
	f.free = p.mode == ModeBypass || s.Scope == core.ScopeShell && (f.free || f.verdict == core.Ask && !f.confined)
}

// settled says what decides on an access that no rule matches.
type settled uint8

const (
	byItself    settled = iota // the mode decides
	bySandbox                  // allowed: it happens in a sandbox
	byPermitted                // allowed: it is part of an allowed command
)

// settledBy reports whether a sandbox settles what a command does.
func (p *Policy) settledBy(s *subject) settled {
	if p.mode == ModeWorkspace && s.Scope == core.ScopeShell && !s.Unconfined && p.Sandboxed() {
		return bySandbox
	}
	return byItself
}

// judgeWhole decides on an access as a whole, in the order that the package
// documentation gives; after the allow rules, verdicts only get stricter.
func (p *Policy) judgeWhole(f *finding, by settled) {
	s := &f.subject
	if p.denied(f) {
		return
	}
	f.verdict, f.step = p.byDefault(s, by), byMode
	if by != byPermitted {
		if f.rule = p.allowedBy(s); f.rule != nil {
			f.verdict, f.step = core.Allow, byAllowRule
		}
	}
	if f.verdict == core.Deny {
		return
	}
	if s.vague {
		f.verdict, f.step = core.Ask, byUnclear
		return
	}
	p.tighten(f)
}

// denied checks for what is denied in every mode.
func (p *Policy) denied(f *finding) bool {
	s := &f.subject
	if failed := p.tryConditions(s); failed != nil {
		f.verdict, f.step, f.rule, f.broken = core.Deny, byDenyRule, failed.rule, failed.err
		return true
	}
	if f.rule = p.deny.first(s, func(r *rule) bool { return r.catches(s) }); f.rule != nil {
		f.verdict, f.step = core.Deny, byDenyRule
		return true
	}
	if f.hazard = p.forbidden(s); f.hazard.what != "" {
		f.verdict, f.step = core.Deny, byBuiltin
		return true
	}
	return false
}

// tighten turns the verdict into Ask for special places and ask rules.
func (p *Policy) tighten(f *finding) {
	s := &f.subject
	if word, at := p.special(s); at != ordinary {
		f.verdict, f.step, f.rule, f.word = core.Ask, bySensitive, nil, word
		if at == guarded {
			f.step = byProtected
		}
		return
	}
	if s.maybe != nil && (s.maybe.list == ListDeny || p.mode != ModeBypass) {
		f.verdict, f.step, f.rule = core.Ask, byAskRule, s.maybe
		return
	}
	if p.mode == ModeBypass {
		return
	}
	if r := p.ask.first(s, func(r *rule) bool { return r.catches(s) }); r != nil {
		f.verdict, f.step, f.rule = core.Ask, byAskRule, r
	}
}

// judgeNone decides on a call that declares no access.
func (p *Policy) judgeNone(s subject) finding {
	f := finding{subject: s}
	if p == nil || p.mode == "" || p.denied(&f) {
		return f
	}
	if f.step = byMode; p.byDefault(&s, byItself) == core.Deny {
		return f
	}
	f.verdict = core.Allow
	p.tighten(&f)
	return f
}

// forbidden looks for what no rule can allow.
func (p *Policy) forbidden(s *subject) hazard {
	switch {
	case s.Scope == core.ScopeDelete && s.path != "" && p.irremovable(s.path, s.dir):
		return hazard{what: "removes " + show(s.path), instead: insteadRemove}
	case s.Scope == core.ScopeWrite && isRawDevice(s.Resource):
		return hazard{what: "writes to a raw device", instead: insteadDevice}
	case startsProgram(s.Scope):
		return p.excused(s, p.hazards(s))
	}
	return hazard{}
}

// excused drops a hazard that a rule of the user allows.
func (p *Policy) excused(s *subject, h hazard) hazard {
	if h.escalation != "" && p.userAllows(s, h.escalation) {
		return hazard{}
	}
	return h
}

// userAllows reports whether a rule of the user allows a command and names the
// program that runs it as another user.
func (p *Policy) userAllows(s *subject, escalation string) bool {
	return slices.ContainsFunc(p.allow.rules, func(r *rule) bool {
		return r.source == SourceUser && r.argv != nil && r.allows(s) &&
			slices.ContainsFunc(r.argv.words, func(w string) bool { return program(w) == escalation })
	})
}

// special says whether an access leads to a sensitive or protected place, and
// for a command which word names it.
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
		if at != secret {
			at = ordinary
		}
		return "", at
	}
	if at == ordinary && s.Recursive { // a tree may contain protected places
		at = guarded
	}
	return "", at
}

// placeAt classifies an absolute, folded path.
func (p *Policy) placeAt(path string) place {
	skip := 0
	for _, dir := range p.known {
		if len(dir) > skip && under(path, dir) {
			skip = len(dir)
		}
	}
	at := placeOf(path, skip)
	if p.agentHome != "" && path != p.agentHome && under(path, p.agentHome) {
		at = max(at, placeOfEntry(sensitive.MatchAgentHome(path[len(p.agentHome)+1:])))
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

// byDefault is the verdict on an access that no rule matches.
func (p *Policy) byDefault(s *subject, by settled) core.Verdict {
	inside := s.Inside || s.handle
	switch {
	case by == byPermitted, by == bySandbox && (startsProgram(s.Scope) || s.Scope == core.ScopeRead):
		return core.Allow
	case by == bySandbox && under(s.path, "/tmp") && s.path != "": // the sandbox has its own
		return core.Allow
	}
	switch p.mode {
	case ModeBypass:
		return core.Allow
	case ModeReadOnly, ModePlan:
		if s.Scope == core.ScopeWrite || s.Scope == core.ScopeDelete || s.Scope == core.ScopeShell {
			return core.Deny
		}
	case ModeAcceptEdits, ModeWorkspace:
		if s.Scope == core.ScopeWrite && inside || by == bySandbox && s.Scope == core.ScopeDelete && inside {
			return core.Allow
		}
	case ModeDefault:
	default:
		return core.Deny
	}
	if s.Scope == core.ScopeSubagent || s.Scope == core.ScopeRead && inside || s.Scope == core.ScopePlugin && readers[s.Resource] {
		return core.Allow
	}
	return core.Ask
}

// readers are tools of bundled plugins, whose names no other plugin can have, that
// only read the workspace; their processes see neither secrets nor the network.
var readers = map[string]bool{"graph/get_impact": true, "graph/graph_query": true}
