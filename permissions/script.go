package permissions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions/shell"
)

// judgeScript decides on a command line by what it consists of: the simple
// commands, the files that they and the shell touch, and what of it cannot be
// known. The worst verdict counts.
func (p *Policy) judgeScript(ctx context.Context, f *finding) {
	s := &f.subject
	j := &scriptJudge{Policy: p, ctx: ctx, whole: s, by: p.settledBy(s)}
	j.request.Tool, j.request.Source, j.request.Session.Dir = s.tool, s.source, s.dir
	j.script = shell.Analyze(s.Resource, shell.Options{Dialect: p.dialect, Dir: s.dir, Home: p.home})
	j.writes = j.script.Effect() == shell.Writes
	switch {
	case len(j.script.Unclear) == 0:
		j.commands()
	case len(s.Argv) > 0: // the words are plain, only what they do is not
		why := unclearReason(j.script.Unclear[0])
		j.script = shell.Analysis{Commands: []shell.Command{{Argv: s.Argv, Text: s.Resource, Why: why}}}
		j.commands()
	default:
		j.unclear(j.script.Unclear[0])
	}
	f.parts = j.parts
	for i := range f.parts {
		if f.parts[i].worse(&f.parts[f.worst]) {
			f.worst = i
		}
	}
	worst := &f.parts[f.worst]
	f.verdict, f.step, f.rule, f.broken, f.hazard = worst.verdict, worst.step, worst.rule, worst.broken, worst.hazard
	f.word, f.why, f.reads = worst.word, worst.why, j.relied
	f.free = j.permitted
	if j.relied && f.verdict == core.Allow {
		f.environ = j.script.Env
	}
}

// scriptJudge goes through a script.
type scriptJudge struct {
	*Policy
	ctx     context.Context
	whole   *subject
	request core.PermissionRequest // what the parts have of it
	script  shell.Analysis
	by      settled
	parts   []finding

	touched map[touch]bool // what was judged already

	writes    bool // a command that is understood changes files
	relied    bool // a command is allowed because of what it does
	permitted bool // every command is allowed by a rule

	// outer is a command that a rule allows with all that it runs in turn.
	outer     *shell.Command
	outerRule *rule
}

// touch is an access to a file as it is judged.
type touch struct {
	path string
	kind shell.Kind
	by   settled
}

// add appends a part.
func (j *scriptJudge) add(f finding) { j.parts = append(j.parts, f) }

// news appends a part that its command touches, if it is news: what happens
// by permission of the command speaks for itself.
func (j *scriptJudge) news(f finding, by settled) {
	if by != byPermitted || f.verdict != core.Allow {
		j.add(f)
	}
}

// part makes the subject of a part.
func (j *scriptJudge) part(a core.Access) subject {
	s := j.subject(&j.request, a)
	s.agent = j.whole.agent
	return s
}

// unclear judges a script whose commands are not all known: by its text.
func (j *scriptJudge) unclear(found shell.Finding) {
	f := finding{subject: *j.whole, why: unclearReason(found)}
	f.subject.Argv, f.subject.sure = nil, 0
	f.subject.readPrograms()
	j.judgeWhole(&f, j.by)
	j.add(f)
	for a := range j.script.Accesses() {
		j.access(a, "", byPermitted) // the text was judged
	}
}

func unclearReason(f shell.Finding) string { return show(f.Text) + " " + f.Why }

// commands judges a script that was understood.
func (j *scriptJudge) commands() {
	n := len(j.script.Commands)
	for range j.script.Accesses() {
		n++
	}
	j.parts = make([]finding, 0, n+1)
	if isForkBomb(j.whole.Resource) {
		j.add(finding{subject: *j.whole, verdict: core.Deny, step: byBuiltin, hazard: bombHazard})
	}
	if j.mode == ModeBypass {
		j.by = byPermitted
	}
	at := cwd{j.whole.dir, j.whole.dir}
	j.permitted = len(j.script.Commands) > 0
	for i := range j.script.Commands {
		c := &j.script.Commands[i]
		f := finding{subject: j.part(core.Access{Scope: j.whole.Scope, Resource: c.Text, Argv: c.Argv})}
		if !c.Exact() {
			f.subject.sure = c.Vague[0]
		}
		if !j.within(c) {
			j.outer = nil
		}
		by := j.command(&f, c, at)
		j.permitted = j.permitted && f.step == byAllowRule
		j.add(f)
		for k := range c.Accesses {
			j.access(&c.Accesses[k], c.Text, by)
		}
		if name := c.Argv[0]; name == "cd" || name == "pushd" {
			at.now = j.changeDir(c.Argv[1:], at.now)
		}
	}
	for i := range j.script.Redirects {
		j.access(&j.script.Redirects[i], "", j.by)
	}
	if len(j.parts) == 0 { // an assignment, or nothing at all
		j.relied = true
		j.add(finding{subject: *j.whole, verdict: core.Allow, step: byMode})
	}
}

// within reports whether a command is run by the outer one, so that the rule
// which names that one with all its words allows it. What an assignment in
// front of the outer one runs is not.
func (j *scriptJudge) within(c *shell.Command) bool {
	o := j.outer
	return o != nil && c.Offset >= o.Offset && c.Offset < o.Offset+len(o.Text) && strings.HasPrefix(o.Text, o.Argv[0])
}

// wordsOf returns the words of a command for the search of hazards: those that
// are not known as they stand in the script, quotes taken away.
func wordsOf(c *shell.Command) []string {
	if c.Exact() {
		return c.Argv
	}
	words := slices.Clone(c.Argv)
	for _, i := range c.Vague {
		words[i] = homeInBraces.Replace(stripQuotes(words[i]))
	}
	return words
}

// command judges a simple command, and says what that settles about the files
// that it touches.
func (j *scriptJudge) command(f *finding, c *shell.Command, at cwd) settled {
	s := &f.subject
	if failed := j.tryConditions(s); failed != nil {
		f.step, f.rule, f.broken = byDenyRule, failed.rule, failed.err
		return byPermitted
	}
	if f.rule = j.deny.first(s, func(r *rule) bool { return r.catches(s) }); f.rule != nil {
		f.step = byDenyRule
		return byPermitted
	}
	if h := j.excused(s, j.inArgv(wordsOf(c), at, 0)); h.binding() || h.what != "" && j.outer == nil {
		f.hazard = h
		f.step = byBuiltin
		return byPermitted
	}
	by := j.settle(f, c)
	if f.verdict == core.Deny {
		return by
	}
	if c.Effect == shell.Unknown || !c.Exact() {
		j.tighten(f)
		return by
	}
	if s.maybe != nil || j.mode != ModeBypass { // its files are judged one by one
		j.askRules(f)
	}
	return by
}

// settle gives a command its verdict before anything tightens it.
func (j *scriptJudge) settle(f *finding, c *shell.Command) settled {
	s := &f.subject
	leaves := j.whole.Unconfined && j.Sandboxed()
	f.verdict, f.step = core.Allow, byMode
	if j.outer != nil {
		f.rule, f.step = j.outerRule, byAllowRule
		return byPermitted
	}
	if f.rule = j.allow.first(s, func(r *rule) bool { return r.allows(s) }); f.rule != nil {
		if f.step = byAllowRule; c.Exact() {
			j.outer, j.outerRule = c, f.rule
		}
		return byPermitted
	}
	switch {
	case j.by == bySandbox:
		return bySandbox
	case j.mode == ModeBypass:
		return byPermitted
	case c.Effect != shell.Unknown && !leaves && j.environment != nil:
		if why := j.repositories(); why != "" {
			f.why = why
			break
		}
		j.relied = true
		return byItself
	default:
		f.why = c.Why
	}
	f.verdict = j.byDefault(s, byItself)
	return byPermitted // whatever it touches, it was judged as a whole
}

// access judges a file or host that a part of a script touches.
func (j *scriptJudge) access(a *shell.Access, via string, by settled) {
	if a.Kind == shell.Network {
		f := finding{via: via, subject: j.part(core.Access{Scope: core.ScopeNetwork, Resource: a.Path})}
		j.judgeWhole(&f, by)
		j.news(f, by)
		return
	}
	once := touch{a.Path, a.Kind, by}
	if !a.Recursive && !a.Glob && j.touched[once] {
		return
	}
	if j.touched == nil {
		j.touched = map[touch]bool{}
	}
	j.touched[once] = !a.Recursive && !a.Glob
	r := &reach{policy: j.Policy, ctx: j.ctx, access: a, links: j.writes}
	for _, to := range r.paths() {
		f := finding{via: via}
		f.subject = j.part(core.Access{Scope: scopeOfKind(a.Kind), Resource: to.Path, Inside: to.Inside, Recursive: a.Recursive && a.Kind != shell.List})
		j.file(&f, a, by, r)
		if by == byItself && a.Kind == shell.Write && f.verdict == core.Allow && !isHarmlessDevice(to.Path) && j.sharesFile(to.Path) {
			f.verdict, f.step, f.rule = core.Ask, byUnclear, nil
			f.why = "would change the file under its other names, too (it has hard links)"
		}
		j.news(f, by)
	}
	if r.why != "" && by == byItself {
		f := finding{via: via, why: r.why, verdict: core.Ask, step: byUnclear}
		f.subject = j.part(core.Access{Scope: scopeOfKind(a.Kind), Resource: a.Path, Recursive: a.Recursive})
		j.add(f)
	}
}

// sharesFile reports whether a file has names besides this one, wherever they
// are: what a command writes into it shows under all of them. Tools put a new
// file in the place of the old one and need not ask.
func (j *scriptJudge) sharesFile(name string) bool {
	if j.environment == nil {
		return false // such a write asks anyway
	}
	info, err := j.environment.Files().Stat(j.ctx, name)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if known, ok := info.(interface{ Links() uint64 }); ok {
		return known.Links() > 1
	}
	return systemLinks(info) > 1
}

// file judges one file that a part of a script touches.
func (j *scriptJudge) file(f *finding, a *shell.Access, by settled, r *reach) {
	s := &f.subject
	if isHarmlessDevice(s.path) {
		f.verdict, f.step = core.Allow, byMode
		f.rule = j.deny.first(s, func(r *rule) bool { return r.catches(s) })
		if f.rule != nil {
			f.verdict, f.step = core.Deny, byDenyRule
		}
		return
	}
	whole := s.Recursive
	s.Recursive = false // what lies below is looked at by itself
	j.judgeWhole(f, by)
	if a.Kind == shell.List && f.step == bySensitive { // its name is no secret
		f.verdict, f.step = j.byDefault(s, by), byMode
		j.askRules(f)
	}
	s.Recursive = whole
	if f.verdict == core.Deny || !whole {
		return
	}
	if s.Scope == core.ScopeDelete && j.irremovable(s.path, s.dir) {
		f.verdict, f.step, f.hazard = core.Deny, byBuiltin, hazard{what: "removes " + show(s.path), instead: insteadRemove}
		return
	}
	for to := range r.below(core.Resolved{Path: s.path, Inside: s.Inside}) {
		below := finding{via: f.via, subject: j.part(core.Access{Scope: s.Scope, Resource: to.Path, Inside: to.Inside})}
		if below.subject.Inside == s.Inside {
			j.judgeWhole(&below, byPermitted)
		} else {
			j.judgeWhole(&below, by)
		}
		if below.worse(f) {
			*f = below
		}
	}
}

// askRules asks where a rule does.
func (j *scriptJudge) askRules(f *finding) {
	s := &f.subject
	if f.verdict == core.Deny {
		return
	}
	if s.maybe != nil && (s.maybe.list == ListDeny || j.mode != ModeBypass) {
		f.verdict, f.step, f.rule = core.Ask, byAskRule, s.maybe
		return
	}
	if r := j.ask.first(s, func(r *rule) bool { return r.catches(s) }); r != nil && j.mode != ModeBypass {
		f.verdict, f.step, f.rule = core.Ask, byAskRule, r
	}
}

// repositories says what is wrong with the repositories that git would work in;
// empty if nothing is.
func (j *scriptJudge) repositories() string {
	for _, dir := range j.script.Repositories {
		err := shell.CheckRepository(dir, func(name string) ([]byte, error) {
			return core.ReadFile(j.ctx, j.environment.Files(), name, maxGitFile)
		})
		if err != nil {
			return fmt.Sprintf("in the repository %s: %v", show(dir), err)
		}
	}
	return ""
}

// maxGitFile bounds the files of a repository that are read, in bytes: its
// settings, and its index, which has 100 bytes or so for each file.
const maxGitFile = 64 << 20

func scopeOfKind(k shell.Kind) core.Scope {
	switch k {
	case shell.Write:
		return core.ScopeWrite
	case shell.Delete:
		return core.ScopeDelete
	}
	return core.ScopeRead
}

// isHarmlessDevice reports whether a path is a device that keeps nothing.
func isHarmlessDevice(path string) bool {
	switch path {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	return strings.HasPrefix(path, "/dev/fd/")
}

// commandsOf returns the simple commands of a line as subjects, or why they are
// not known.
func (p *Policy) commandsOf(line string) (commands []subject, unclear string) {
	script := shell.Analyze(line, shell.Options{Dir: p.firstRoot(), Home: p.home})
	if len(script.Unclear) > 0 {
		return nil, unclearReason(script.Unclear[0])
	}
	for i := range script.Commands {
		c := &script.Commands[i]
		if !c.Exact() {
			return nil, show(c.Text) + " has words that only a run shows"
		}
		commands = append(commands, p.subject(&core.PermissionRequest{}, core.Access{Scope: core.ScopeShell, Resource: c.Text, Argv: c.Argv}))
	}
	return commands, ""
}
