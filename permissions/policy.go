package permissions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// Options configure a policy. All directories are absolute paths in the
// environment of the calls, with symbolic links resolved.
type Options struct {
	// Mode overrides the modes of the sets. If none of them sets one either, it
	// is ModeDefault; see Confine.
	Mode Mode
	// Sets are the rules, by source.
	Sets []RuleSet
	// Home is the user's home directory, for ~ in rules.
	Home string
	// Workspace lists the directories of the workspace.
	Workspace []string
	// AgentHome is the agent's own directory, protected from writes. Reading
	// the secrets in it needs approval: keys, sign-ins, sessions.
	AgentHome string
	// FoldCase says that the environment's file system may ignore case: deny
	// and ask rules then do, too, as they always do on Windows and macOS.
	FoldCase bool
	// Env is where the calls work. Its files resolve the paths and globs in
	// commands, so that a command that only reads inside the workspace needs no
	// approval; its shell is the default for Shell. Without Env every command
	// that no rule allows needs approval.
	Env core.Environment
	// Shell is the language of command lines, "bash" or "sh"; empty means that of
	// Env. Lines for any other shell are compared with rules as a whole.
	Shell string
	// Confine makes ModeWorkspace the default mode if commands are Sandboxed.
	// Set it for directories that the user trusts.
	Confine bool
	// Sandboxed reports whether Env has a working sandbox for commands that are
	// not granted [core.Access].Unconfined. It may be called from any goroutine
	// and must always return the same; nil means false.
	Sandboxed func() bool
	// Sandbox tells what a command in the sandbox will lack, to ask beforehand. With
	// nil, nothing is foreseen.
	Sandbox Sandbox
	// Held takes a snapshot for a session, and reports whether it holds all of the
	// files. Losing them then needs no approval. With nil, it does.
	Held func(ctx context.Context, session string, files []string) bool
}

// Policy implements [core.Policy] by modes and rules; see the package
// documentation for the order in which they apply. It is immutable and safe for
// concurrent use. The zero Policy denies everything.
type Policy struct {
	mode     Mode
	modeFrom string
	deny     ruleList
	ask      ruleList
	allow    ruleList
	approved ruleList // allow rules that the user approved for the session
	ignored  ruleList // allow rules of untrusted sources
	// conditions are the rules of the lists that are conditions.
	conditions []*rule
	warnings   []string

	environment core.Environment
	dialect     string      // of command lines
	posix       bool        // the dialect can be analyzed
	sandboxed   func() bool // nil = no
	confines    Sandbox     // may be nil
	held        func(ctx context.Context, session string, files []string) bool

	home      string
	workspace []string
	roots     []string // workspace, folded
	known     []string // folded: the roots and the home directory
	protected []string // folded paths of settings and of the agent's directory
	agentHome string   // folded path of the agent's directory
	fold      bool
}

var _ core.Policy = (*Policy)(nil)

// New returns a policy. The error lists every invalid rule, mode and directory;
// those of rules are *[RuleError].
func New(o Options) (*Policy, error) {
	foldCase := o.FoldCase || runtime.GOOS == "windows" || runtime.GOOS == "darwin"
	p := &Policy{fold: foldCase, home: strings.TrimSuffix(slashed(o.Home), "/")}
	var errs []error
	for _, dir := range append([]string{o.Home, o.AgentHome}, o.Workspace...) {
		if dir != "" && !isAbs(slashed(dir)) {
			errs = append(errs, fmt.Errorf("permissions: directory %q is not absolute", dir))
		}
	}
	p.setWorkspace(o.Workspace)
	anchors := anchor{home: p.home, bases: slices.Clone(p.workspace)}
	p.known = slices.Clone(p.roots)
	if p.home != "" {
		p.known = append(p.known, fold(p.home))
	}
	if o.AgentHome != "" {
		home := fold(trimSlash(slashed(o.AgentHome)))
		p.protected = append(p.protected, home)
		p.agentHome = home
	}
	p.setEnv(&o)
	sets := slices.Clone(o.Sets)
	slices.SortStableFunc(sets, func(a, b RuleSet) int { return cmp.Compare(a.Source.rank(), b.Source.rank()) })
	errs = append(errs, p.chooseMode(&o, sets))
	for i := range sets {
		errs = append(errs, p.add(&sets[i], anchors))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p.warnOfContradictions()
	return p, nil
}

func (p *Policy) setEnv(o *Options) {
	p.environment, p.dialect, p.sandboxed, p.confines, p.held = o.Env, o.Shell, o.Sandboxed, o.Sandbox, o.Held
	if p.dialect == "" && o.Env != nil {
		p.dialect = o.Env.Info().Shell
	}
	p.posix = p.dialect == "bash" || p.dialect == "sh"
}

// warnOfContradictions warns of allow rules that an identical deny rule makes
// useless.
func (p *Policy) warnOfContradictions() {
	denied := make(map[Rule]*rule, len(p.deny.rules))
	for _, r := range p.deny.rules {
		if r.cond == nil {
			denied[r.Rule] = r
		}
	}
	for _, r := range p.allow.rules {
		if by, ok := denied[r.Rule]; ok && r.cond == nil {
			p.warnings = append(p.warnings, fmt.Sprintf("%s: allow rule %s has no effect: %s denies the same, and deny wins", r.where, r.Text, by.where))
		}
	}
}

func trimSlash(dir string) string {
	if isVolumeRoot(dir) {
		return dir
	}
	return strings.TrimSuffix(dir, "/")
}

// add compiles the rules of a set.
func (p *Policy) add(set *RuleSet, anchors anchor) error {
	if set.Source.rank() < 0 {
		return fmt.Errorf("permissions: unknown source %q: use managed, user, project, session or flag", set.Source)
	}
	if set.Base != "" {
		base := slashed(set.Base)
		if !isAbs(base) {
			return fmt.Errorf("permissions: directory %q of the %s rules is not absolute", set.Base, set.Source)
		}
		anchors.bases = []string{trimSlash(base)}
	}
	if set.File != "" {
		p.protected = append(p.protected, fold(slashed(set.File)))
	}
	allow := &p.allow
	if !set.mayAllow() {
		allow = &p.ignored
		if n := set.Settings.allowing(); n > 0 {
			ignored := "1 allow rule is"
			if n > 1 {
				ignored = fmt.Sprintf("%d allow rules are", n)
			}
			p.warnings = append(p.warnings, fmt.Sprintf("%s: %s ignored: %s", cmp.Or(set.File, string(set.Source)), ignored, set.refusal()))
		}
	}
	return errors.Join(
		p.compileList(&p.deny, set, ListDeny, set.Settings.Deny, anchors),
		p.compileList(&p.ask, set, ListAsk, set.Settings.Ask, anchors),
		p.compileList(allow, set, ListAllow, set.Settings.Allow, anchors),
		p.compileConditions(allow, set),
	)
}

func (p *Policy) compileList(to *ruleList, set *RuleSet, list List, texts []string, anchors anchor) error {
	var errs []error
	for i, text := range texts {
		where, line, column := set.where(list, i)
		parsed, err := ParseRule(text)
		var r *rule
		if err == nil {
			r, err = compile(parsed, list, anchors, p.fold)
		}
		if err != nil {
			var broken *RuleError
			if errors.As(err, &broken) {
				broken.Where = where
				if line > 0 && column > 0 {
					broken.Where = fmt.Sprintf("%s:%d", where, column)
				}
			}
			errs = append(errs, err)
			continue
		}
		r.source, r.where = set.Source, where
		to.add(r)
	}
	return errors.Join(errs...)
}

// compileConditions compiles the conditions of a set and checks their examples.
func (p *Policy) compileConditions(allow *ruleList, set *RuleSet) error {
	var errs []error
	for i := range set.Settings.When {
		w := &set.Settings.When[i]
		where, line, column := set.where(ListWhen, i)
		r, err := p.compileWhen(w)
		if err != nil {
			if line > 0 && column > 0 {
				where = fmt.Sprintf("%s:%d", where, column)
			}
			err.Where = where
			errs = append(errs, err)
			continue
		}
		r.source, r.where = set.Source, where
		to := map[List]*ruleList{ListAllow: allow, ListAsk: &p.ask, ListDeny: &p.deny}[r.list]
		to.add(r)
		if to != &p.ignored {
			r.index = len(p.conditions)
			p.conditions = append(p.conditions, r)
		}
	}
	return errors.Join(errs...)
}

func (p *Policy) compileWhen(w *When) (*rule, *RuleError) {
	r := &rule{Rule: Rule{Text: w.If, Name: "*", Pattern: w.If}, list: w.Then, every: true, why: w.Why}
	if w.Then != ListAllow && w.Then != ListAsk && w.Then != ListDeny {
		return nil, &RuleError{Rule: w.If, Column: 1, Reason: fmt.Sprintf(`"then" is %q: write "allow", "ask" or "deny"`, w.Then)}
	}
	var column int
	var err error
	if r.cond, column, err = compileCondition(w.If); err != nil {
		return nil, &RuleError{Rule: w.If, Column: column, Reason: err.Error()}
	}
	if err := p.checkExamples(r, w); err != nil {
		return nil, &RuleError{Rule: w.If, Column: 1, Reason: err.Error()}
	}
	return r, nil
}

// chooseMode sets the mode: that of the options, or of the last source that sets
// one and may do so.
func (p *Policy) chooseMode(o *Options, sets []RuleSet) error {
	for i := range sets {
		set := &sets[i]
		if set.Settings.Mode == "" {
			continue
		}
		name := cmp.Or(set.File, string(set.Source))
		m, err := ParseMode(set.Settings.Mode)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		switch {
		case !set.mayAllow():
			p.warnings = append(p.warnings, fmt.Sprintf("%s: mode %s ignored: %s", name, m, set.refusal()))
		case set.Source == SourceProject && m == ModeBypass:
			p.warnings = append(p.warnings, fmt.Sprintf("%s: mode bypass ignored: a project cannot set it", name))
		default:
			p.mode, p.modeFrom = m, name
		}
	}
	switch {
	case o.Mode != "":
	case p.mode != "":
		return nil
	case o.Confine && p.Sandboxed():
		p.mode, p.modeFrom = ModeWorkspace, "builtin, for a trusted directory"
		return nil
	default:
		p.mode, p.modeFrom = ModeDefault, "builtin"
		return nil
	}
	m, err := ParseMode(string(o.Mode))
	if err != nil {
		return err
	}
	p.mode, p.modeFrom = m, string(SourceFlag)
	return nil
}

// Mode returns the mode.
func (p *Policy) Mode() Mode { return p.mode }

// ModeFrom returns the file or the source that sets the mode.
func (p *Policy) ModeFrom() string { return p.modeFrom }

// Sandboxed reports whether commands can run in a sandbox.
func (p *Policy) Sandboxed() bool { return p.sandboxed != nil && p.sandboxed() }

// firstRoot is the first directory of the workspace, or / if there is none.
func (p *Policy) firstRoot() string {
	if len(p.workspace) == 0 {
		return "/"
	}
	return p.workspace[0]
}

// absolute makes a path of an example absolute.
func (p *Policy) absolute(name string) string {
	switch {
	case isAbs(name):
		return name
	case name == "~" || strings.HasPrefix(name, "~/"):
		return path.Join(p.home, name[1:])
	}
	return path.Join(p.firstRoot(), name)
}

// WithMode returns the policy with another mode. With an unknown mode it denies
// what no rule allows.
func (p *Policy) WithMode(m Mode) *Policy {
	q := *p
	q.mode, q.modeFrom = m, string(SourceSession)
	return &q
}

// Within returns the policy for an environment that is a part of its own: the
// workspace is that of env. Relative paths in rules keep their meaning.
func (p *Policy) Within(env core.Environment) core.Policy {
	q := *p
	q.environment = env
	q.setWorkspace(env.Info().Roots)
	return &q
}

func (p *Policy) setWorkspace(dirs []string) {
	p.workspace, p.roots = nil, nil
	for _, dir := range dirs {
		dir = trimSlash(slashed(dir))
		p.workspace = append(p.workspace, dir)
		p.roots = append(p.roots, fold(dir))
	}
}

// Warnings lists what was ignored, for the user.
func (p *Policy) Warnings() []string { return slices.Clone(p.warnings) }

// RuleInfo describes a rule of a policy.
type RuleInfo struct {
	List    List   `json:"list"`
	Rule    string `json:"rule"`
	Source  Source `json:"source"`
	Where   string `json:"where"`             // file:line, file or source
	When    bool   `json:"when,omitempty"`    // the rule is a condition
	Why     string `json:"why,omitempty"`     // of a condition
	Ignored bool   `json:"ignored,omitempty"` // an allow rule of an untrusted source; see Warnings
}

// Rules returns the rules in evaluation order, ignored ones last.
func (p *Policy) Rules() []RuleInfo {
	var infos []RuleInfo
	for _, list := range []*ruleList{&p.deny, &p.ask, &p.allow, &p.ignored} {
		for _, r := range list.rules {
			infos = append(infos, RuleInfo{List: r.list, Rule: r.Text, Source: r.source, Where: r.where, When: r.cond != nil, Why: r.why})
		}
	}
	for i := len(infos) - len(p.ignored.rules); i < len(infos); i++ {
		infos[i].Ignored = true
	}
	return infos
}

// Decide implements [core.Policy]. See [Policy.Explain] for the details of a
// decision.
func (p *Policy) Decide(ctx context.Context, req core.PermissionRequest) core.Decision {
	p, findings := p.judgeRequest(ctx, &req)
	worst := &findings[0]
	d := core.Decision{}
	for i := range findings {
		f := &findings[i]
		if f.worse(worst) {
			worst = f
		}
		d.Sensitive = append(d.Sensitive, f.sensitive...)
		d.NoSession = d.NoSession || f.verdict == core.Ask && !f.grantable()
	}
	d.Verdict = worst.verdict
	d.NoSession = d.NoSession && d.Verdict == core.Ask
	var always []string
	if d.Verdict == core.Ask {
		if d.Offers = p.offers(ctx, &req, findings); len(d.Offers) > 0 {
			always = d.Offers[0].Rules
		}
		d.Why = p.whys(findings)
	}
	d.Rule, d.Source = p.named(worst)
	d.Reason = p.reason(worst, always)
	if d.Verdict == core.Ask && slices.ContainsFunc(findings, func(f finding) bool { return f.free }) && p.Sandboxed() {
		d.Reason += "; if approved, it runs outside the sandbox"
	}
	if d.Verdict != core.Deny {
		d.Grants = append(p.grants(&req, findings), p.around(&req, findings)...)
	}
	return d
}

// around opens the rest of the session's directory for an allowed read inside
// it, as far as reading that is allowed: a search respects .gitignore files
// further up, and a misspelled name is answered with similar ones.
func (p *Policy) around(req *core.PermissionRequest, findings []finding) []core.Grant {
	reads := false
	for _, f := range findings {
		if a := f.subject.Access; a.Scope == core.ScopeRead && f.verdict == core.Allow {
			if a.Recursive && a.Resource == req.Session.Dir {
				return nil // already open
			}
			reads = reads || a.Inside
		}
	}
	if !reads || req.Session.Dir == "" {
		return nil
	}
	root := core.Access{Scope: core.ScopeRead, Resource: req.Session.Dir, Recursive: true, Inside: true}
	asked := core.PermissionRequest{Tool: req.Tool, Source: req.Source, Session: req.Session}
	return []core.Grant{{Access: root, Except: func(path string) bool {
		f := finding{subject: p.subject(&asked, core.Access{Scope: core.ScopeRead, Resource: path, Inside: true})}
		p.judgeWhole(&f, byItself)
		return f.verdict != core.Allow
	}}}
}

// grants opens the accesses of a call and, for a command in the sandbox, what
// the sandbox allows.
func (p *Policy) grants(req *core.PermissionRequest, findings []finding) []core.Grant {
	if len(req.Accesses) == 0 {
		return nil
	}
	grants := make([]core.Grant, len(req.Accesses))
	confined, script := false, false
	var opened []core.Grant
	for i, a := range req.Accesses {
		f, g := &findings[i], &grants[i]
		g.Access = a
		switch {
		case startsProgram(a.Scope):
			g.Unconfined, g.Env = f.free, f.environ
			if !f.free {
				confined, script = true, script || a.Scope == core.ScopeSkillScript
				opened = append(opened, f.opened...)
			}
		case a.Scope == core.ScopeRead && a.Recursive:
			g.Except = p.except(req, &f.subject)
		}
	}
	if confined && p.widens() {
		for i := range grants {
			if grants[i].Scope == core.ScopeNetwork {
				grants[i].Resource = "*"
			}
		}
	}
	if confined && p.Sandboxed() {
		grants = append(append(grants, p.sandbox(script)...), opened...)
	}
	return grants
}

// sandbox returns what a command in the sandbox may write and reach: the
// workspace if the mode allows writing, and the trees and hosts of allow rules.
// Scripts of skills, which stay in the sandbox when they are approved, write to
// the workspace also where approved commands may.
func (p *Policy) sandbox(script bool) []core.Grant {
	var grants []core.Grant
	open := func(scope core.Scope, resource string, recursive bool) {
		grants = append(grants, core.Grant{Access: core.Access{Scope: scope, Resource: resource, Recursive: recursive}})
	}
	if p.mode == ModeWorkspace || p.mode == ModeAcceptEdits || script && p.mode == ModeDefault {
		for _, dir := range p.workspace {
			open(core.ScopeWrite, dir, true)
		}
	}
	for _, r := range slices.Concat(p.allow.rules, p.approved.rules) {
		switch r.scope {
		case core.ScopeNetwork:
			if r.cond == nil {
				open(core.ScopeNetwork, r.Pattern, false)
			}
		case core.ScopeWrite:
			for _, g := range r.globs {
				if g.tree != "" && g.tree != "/" && p.mode != ModeReadOnly && p.mode != ModePlan {
					open(core.ScopeWrite, g.tree, true)
				}
			}
		}
	}
	for i := range grants {
		if grants[i].Recursive {
			grants[i].Except = p.unwritable
		}
	}
	return grants
}

// unwritable reports whether a path in a writable tree needs approval anyway.
func (p *Policy) unwritable(path string) bool {
	f := finding{subject: p.subject(&core.PermissionRequest{}, core.Access{Scope: core.ScopeWrite, Resource: path, Inside: true})}
	p.judgeWhole(&f, byPermitted)
	return f.verdict != core.Allow
}

// except returns what stays closed under a recursive read: sensitive paths,
// unless the root itself is one and was approved, and what deny and ask rules
// match that do not match the root.
func (p *Policy) except(req *core.PermissionRequest, root *subject) func(string) bool {
	rules := slices.DeleteFunc(slices.Concat(p.deny.rules, p.ask.rules), func(r *rule) bool {
		return r.cond == nil && !r.about(root) || r.catches(root) || r.list == ListAsk && p.mode == ModeBypass
	})
	open := p.placeAt(root.folded) == secret
	asked := core.PermissionRequest{Tool: req.Tool, Source: req.Source, Session: req.Session}
	return func(path string) bool {
		s := p.subject(&asked, core.Access{Scope: core.ScopeRead, Resource: path})
		return s.path == "" || !open && p.placeAt(s.folded) == secret || p.tryConditions(&s) != nil ||
			slices.ContainsFunc(rules, func(r *rule) bool { return r.catches(&s) })
	}
}
