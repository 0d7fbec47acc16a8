package permissions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// Options are what a policy is made of.
type Options struct {
	// Mode comes before the modes of the sets. If nobody names one, it is
	// ModeDefault.
	Mode Mode
	Sets []RuleSet
	// Home is the person's home directory, for ~ in rules. All directories are
	// absolute, their symbolic links resolved, in the environment that the
	// calls work in.
	Home string
	// Workspace are the directories of the workspace.
	Workspace []string
	// AgentHome is the agent's own directory, protected from writes. Its
	// settings.json may hold keys, so reading that asks.
	AgentHome string
	// FoldCase says that the environment's file system may take names for one
	// that differ in case: deny and ask rules then ignore case, as they always
	// do on Windows and macOS.
	FoldCase bool
}

// Policy implements [core.Policy]. It is immutable and safe for concurrent
// use. The zero Policy denies everything.
type Policy struct {
	mode     Mode
	modeFrom string
	deny     []*rule
	ask      []*rule
	allow    []*rule
	ignored  []*rule // not to be trusted
	warnings []string

	home      string
	roots     []string // folded
	known     []string // folded: the roots and the home directory
	protected []string // folded paths of settings and of the agent's directory
	keys      string   // folded path of the settings that may hold keys
	fold      bool
}

var _ core.Policy = (*Policy)(nil)

// New makes a policy. If a rule or a mode is broken there is no policy, and the
// error names all that are; those of rules are *[RuleError].
func New(o Options) (*Policy, error) {
	foldCase := o.FoldCase || runtime.GOOS == "windows" || runtime.GOOS == "darwin"
	p := &Policy{fold: foldCase, home: strings.TrimSuffix(slashed(o.Home), "/")}
	var errs []error
	for _, dir := range append([]string{o.Home, o.AgentHome}, o.Workspace...) {
		if dir != "" && !isAbs(slashed(dir)) {
			errs = append(errs, fmt.Errorf("permissions: directory %q is not absolute", dir))
		}
	}
	anchors := anchor{home: p.home}
	for _, dir := range o.Workspace {
		dir = trimSlash(slashed(dir))
		anchors.bases = append(anchors.bases, dir)
		p.roots = append(p.roots, fold(dir))
	}
	p.known = slices.Clone(p.roots)
	if p.home != "" {
		p.known = append(p.known, fold(p.home))
	}
	if o.AgentHome != "" {
		home := fold(trimSlash(slashed(o.AgentHome)))
		p.protected = append(p.protected, home)
		p.keys = home + "/settings.json"
	}
	sets := slices.Clone(o.Sets)
	slices.SortStableFunc(sets, func(a, b RuleSet) int { return cmp.Compare(a.Source.rank(), b.Source.rank()) })
	for i := range sets {
		errs = append(errs, p.add(&sets[i], anchors))
	}
	errs = append(errs, p.chooseMode(o.Mode, sets))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
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
		return fmt.Errorf("permissions: unknown source %q of rules: use managed, user, project, session or flag", set.Source)
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
		if n := len(set.Settings.Allow); n > 0 {
			name := cmp.Or(set.File, string(set.Source))
			p.warnings = append(p.warnings, fmt.Sprintf(
				"%s: %d allow rule(s) ignored: the project is not trusted, so its rules can only tighten", name, n))
		}
	}
	return errors.Join(
		p.compileList(&p.deny, set, ListDeny, set.Settings.Deny, anchors),
		p.compileList(&p.ask, set, ListAsk, set.Settings.Ask, anchors),
		p.compileList(allow, set, ListAllow, set.Settings.Allow, anchors),
	)
}

func (p *Policy) compileList(to *[]*rule, set *RuleSet, list List, texts []string, anchors anchor) error {
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
		*to = append(*to, r)
	}
	return errors.Join(errs...)
}

// chooseMode sets the mode: the given one, or that of the last source that
// names one and may.
func (p *Policy) chooseMode(given Mode, sets []RuleSet) error {
	p.mode, p.modeFrom = ModeDefault, "builtin"
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
			p.warnings = append(p.warnings, fmt.Sprintf("%s: mode %s ignored: the project is not trusted", name, m))
		case set.Source == SourceProject && m == ModeBypass:
			p.warnings = append(p.warnings, fmt.Sprintf("%s: mode bypass ignored: a project cannot set it", name))
		default:
			p.mode, p.modeFrom = m, name
		}
	}
	if given == "" {
		return nil
	}
	m, err := ParseMode(string(given))
	if err != nil {
		return err
	}
	p.mode, p.modeFrom = m, string(SourceFlag)
	return nil
}

// Mode returns the mode.
func (p *Policy) Mode() Mode { return p.mode }

// WithMode returns the policy with another mode. With one that does not exist
// it denies what no rule allows.
func (p *Policy) WithMode(m Mode) *Policy {
	q := *p
	q.mode, q.modeFrom = m, string(SourceSession)
	return &q
}

// Warnings says what was ignored, for the person.
func (p *Policy) Warnings() []string { return slices.Clone(p.warnings) }

// RuleInfo describes a rule of a policy.
type RuleInfo struct {
	List    List   `json:"list"`
	Rule    string `json:"rule"`
	Source  Source `json:"source"`
	Where   string `json:"where"`             // file:line, file or source
	Ignored bool   `json:"ignored,omitempty"` // the project is not trusted
}

// Rules returns the rules in the order in which they are looked through, those
// that are ignored last.
func (p *Policy) Rules() []RuleInfo {
	var infos []RuleInfo
	for _, list := range [][]*rule{p.deny, p.ask, p.allow, p.ignored} {
		for _, r := range list {
			infos = append(infos, RuleInfo{List: r.list, Rule: r.Text, Source: r.source, Where: r.where})
		}
	}
	for i := len(infos) - len(p.ignored); i < len(infos); i++ {
		infos[i].Ignored = true
	}
	return infos
}

// Decide implements [core.Policy].
func (p *Policy) Decide(_ context.Context, req core.PermissionRequest) core.Decision {
	findings := p.judgeAll(&req)
	worst := &findings[0]
	d := core.Decision{}
	for i := range findings {
		f := &findings[i]
		if f.worse(worst) {
			worst = f
		}
		d.NoSession = d.NoSession || f.verdict == core.Ask && !f.grantable()
	}
	d.Verdict = worst.verdict
	d.NoSession = d.NoSession && d.Verdict == core.Ask
	if d.Verdict == core.Ask {
		d.Always = always(findings)
	}
	d.Rule, d.Source = p.named(worst)
	d.Reason = p.reason(worst, d.Always)
	if d.Verdict != core.Deny {
		d.Grants = append(p.grants(req.Accesses, findings), p.around(&req, findings)...)
	}
	return d
}

// around opens what lies about an allowed read inside the session's directory,
// as far as reading it would be allowed by itself: a search heeds .gitignore
// files further up, and a wrong name is answered with similar ones.
func (p *Policy) around(req *core.PermissionRequest, findings []finding) []core.Grant {
	reads := false
	for _, f := range findings {
		if a := f.subject.Access; a.Scope == core.ScopeRead && f.verdict == core.Allow {
			if a.Recursive && a.Resource == req.Session.Dir {
				return nil // it is open as it is
			}
			reads = reads || a.Inside
		}
	}
	if !reads || req.Session.Dir == "" {
		return nil
	}
	tool, dir := req.Tool, slashed(req.Session.Dir)
	root := core.Access{Scope: core.ScopeRead, Resource: req.Session.Dir, Recursive: true, Inside: true}
	return []core.Grant{{Access: root, Except: func(path string) bool {
		f := finding{subject: p.subject(tool, dir, core.Access{Scope: core.ScopeRead, Resource: path, Inside: true})}
		p.judge(&f)
		return f.verdict != core.Allow
	}}}
}

// grants opens the accesses of a call.
func (p *Policy) grants(accesses []core.Access, findings []finding) []core.Grant {
	if len(accesses) == 0 {
		return nil
	}
	grants := make([]core.Grant, len(accesses))
	for i, a := range accesses {
		grants[i].Access = a
		if a.Scope == core.ScopeRead && a.Recursive {
			grants[i].Except = p.except(&findings[i].subject)
		}
	}
	return grants
}

// except returns what stays closed under a recursive read: what is sensitive,
// unless the whole is and was said yes to, and what rules name that do not name
// the whole.
func (p *Policy) except(root *subject) func(string) bool {
	rules := slices.DeleteFunc(slices.Concat(p.deny, p.ask), func(r *rule) bool {
		return !r.about(root) || r.catches(root) || r.list == ListAsk && p.mode == ModeBypass
	})
	open := p.placeAt(root.folded) == sensitive
	tool, dir := root.tool, root.dir
	return func(path string) bool {
		s := p.subject(tool, dir, core.Access{Scope: core.ScopeRead, Resource: path})
		return s.path == "" || !open && p.placeAt(s.folded) == sensitive ||
			slices.ContainsFunc(rules, func(r *rule) bool { return r.catches(&s) })
	}
}
