package permissions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions/shell"
)

// judgeScript decides on a command line by its parts: the simple commands, the
// files that they and the shell access, and what cannot be analyzed. The
// strictest verdict wins.
func (p *Policy) judgeScript(ctx context.Context, f *finding) {
	s := &f.subject
	j := &scriptJudge{Policy: p, ctx: ctx, whole: s, by: p.settledBy(s)}
	j.request.Tool, j.request.Source, j.request.Session.Dir = s.tool, s.source, s.dir
	j.script = shell.Analyze(s.Resource, shell.Options{Dialect: p.dialect, Dir: s.dir, Home: p.home})
	j.writes = j.script.Effect() == shell.Writes
	switch {
	case len(j.script.Unclear) == 0:
		j.commands()
	case len(s.Argv) > 0: // the words are known, only their effect is not
		why, lost := unclearReason(j.script.Unclear[0]), lossesOf(&j.script)
		j.script = shell.Analysis{Commands: []shell.Command{{Argv: s.Argv, Text: s.Resource, Why: why, Accesses: lost}}}
		j.commands()
		if len(lost) == 0 {
			j.countNamed(s.Resource)
			j.addLosses(nil)
			j.historyNamed(s.Resource)
		}
	default:
		j.unclear(j.script.Unclear[0])
	}
	if j.by == bySandbox && !j.permitted && j.confines != nil && j.environment != nil {
		j.foresee()
	}
	if slices.ContainsFunc(j.parts, func(p finding) bool { return p.verdict == core.Ask && !p.confined }) {
		j.parts = append(j.parts, j.hidden...) // approved, it runs where nothing is hidden
	}
	f.parts, f.opened, f.kept = j.parts, j.opened, j.kept
	for i := range f.parts {
		if f.parts[i].worse(&f.parts[f.worst]) {
			f.worst = i
		}
	}
	worst := &f.parts[f.worst]
	f.verdict, f.step, f.rule, f.broken, f.hazard = worst.verdict, worst.step, worst.rule, worst.broken, worst.hazard
	f.word, f.why, f.reads = worst.word, worst.why, j.relied
	f.free = j.permitted
	f.confined = !slices.ContainsFunc(f.parts, func(p finding) bool { return p.verdict == core.Ask && !p.confined })
	if j.relied && f.verdict == core.Allow {
		f.environ = j.script.Env
	}
}

// scriptJudge judges the parts of a script.
type scriptJudge struct {
	*Policy
	ctx     context.Context
	whole   *subject
	request core.PermissionRequest // of each part
	script  shell.Analysis
	by      settled
	parts   []finding
	// hidden are reads of sensitive files that a pattern or a directory includes,
	// and that the sandbox hides.
	hidden []finding
	masks  func(path string) bool // what the sandbox hides; nil if not yet asked for

	touched map[touch]bool // already judged
	opened  []core.Grant   // what the commands will need
	lost    losses
	kept    int // lost files that a snapshot holds

	writes    bool // a known command changes files
	relied    bool // a command is allowed because of what it does
	permitted bool // every command is allowed by a rule
	asks      bool // the command that is judged needs approval

	// outer is a command that outerRule allows, with everything it runs in turn.
	outer     *shell.Command
	outerRule *rule
}

// touch identifies an access to a file.
type touch struct {
	path string
	kind shell.Kind
	by   settled
	loss shell.Loss
	from string
}

// add appends a part.
func (j *scriptJudge) add(f finding) { j.parts = append(j.parts, f) }

// addUnlessPermitted appends an access of a command, unless it is merely allowed along with
// the command.
func (j *scriptJudge) addUnlessPermitted(f finding, by settled) {
	if by != byPermitted || f.verdict != core.Allow {
		j.add(f)
	}
}

// part returns the subject for a part.
func (j *scriptJudge) part(a core.Access) subject {
	s := j.subject(&j.request, a)
	s.agent = j.whole.agent
	return s
}

// unclear judges a script by its text, as not all of its commands are known.
func (j *scriptJudge) unclear(found shell.Finding) {
	f := finding{subject: *j.whole, why: unclearReason(found)}
	f.subject.Argv, f.subject.sure = nil, 0
	f.subject.readPrograms()
	j.judgeWhole(&f, j.by)
	if j.mode == ModeBypass && f.rule == nil {
		f.raise(floorText(j.whole.Resource))
	}
	j.add(f)
	j.asks = true
	for a := range j.script.Accesses() {
		j.access(a, "", byPermitted) // the text was judged
	}
	j.countNamed(j.whole.Resource)
	j.addLosses(nil)
	j.historyNamed(j.whole.Resource)
}

func unclearReason(f shell.Finding) string { return show(f.Text) + " " + f.Why }

// commands judges a script that could be analyzed.
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
		j.asks = f.verdict == core.Ask
		for k := range c.Accesses {
			j.access(&c.Accesses[k], c.Text, by)
		}
		j.history(c, at.now, by)
		j.asks = false
		j.addLosses(c)
		if name := c.Argv[0]; name == "cd" || name == "pushd" {
			at.now = j.changeDir(c.Argv[1:], at.now)
		}
	}
	for i := range j.script.Redirects {
		j.access(&j.script.Redirects[i], "", j.by)
	}
	j.addLosses(nil)
	if len(j.parts) == 0 { // only assignments, or empty
		j.relied = true
		j.add(finding{subject: *j.whole, verdict: core.Allow, step: byMode})
	}
}

// within reports whether the outer command runs this one, so that the rule for
// the outer one allows it. A command in an assignment before the outer one does
// not count.
func (j *scriptJudge) within(c *shell.Command) bool {
	o := j.outer
	return o != nil && c.Offset >= o.Offset && c.Offset < o.Offset+len(o.Text) && strings.HasPrefix(o.Text, o.Argv[0])
}

// wordsOf returns the words of a command for the search for hazards: unknown
// ones as in the script, without quotes.
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

// command judges a simple command, and returns how its file accesses are to be
// judged.
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
	if j.mode == ModeBypass && f.rule == nil {
		f.raise(floor(c, j.whole.Resource))
	}
	if c.Effect == shell.Unknown || !c.Exact() {
		j.tighten(f)
		return by
	}
	if s.maybe != nil || j.mode != ModeBypass { // its files are judged separately
		j.askRules(f)
	}
	return by
}

// settle sets the verdict on a command before ask rules and special places.
func (j *scriptJudge) settle(f *finding, c *shell.Command) settled {
	s := &f.subject
	leaves := j.whole.Unconfined && j.Sandboxed()
	f.verdict, f.step = core.Allow, byMode
	if j.outer != nil {
		f.rule, f.step = j.outerRule, byAllowRule
		return byPermitted
	}
	if f.rule = j.allowedBy(s); f.rule != nil {
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
		f.why = cmp.Or(j.notExtended(s), c.Why)
	}
	f.verdict = j.byDefault(s, byItself)
	return byPermitted // judged as a whole, with all its accesses
}

// access judges a file or host that a part of a script accesses.
func (j *scriptJudge) access(a *shell.Access, via string, by settled) {
	if a.Kind == shell.Network {
		f := finding{via: via, subject: j.part(core.Access{Scope: core.ScopeNetwork, Resource: a.Path})}
		j.judgeWhole(&f, by)
		j.addUnlessPermitted(f, by)
		return
	}
	once := touch{a.Path, a.Kind, by, a.Loss, a.From}
	if !a.Recursive && !a.Glob && j.touched[once] {
		return
	}
	if j.touched == nil {
		j.touched = map[touch]bool{}
	}
	j.touched[once] = !a.Recursive && !a.Glob
	r := &reach{policy: j.Policy, ctx: j.ctx, access: a, links: j.writes}
	var hidden []finding
	paths := r.paths()
	for _, to := range paths {
		f := finding{via: via}
		f.subject = j.part(core.Access{Scope: scopeOfKind(a.Kind), Resource: to.Path, Inside: to.Inside, Recursive: a.Recursive && a.Kind != shell.List})
		if j.file(&f, a, by, r); a.Glob && j.hides(&f, a, by) {
			hidden = append(hidden, f)
			continue
		}
		settled := by == bySandbox && f.verdict == core.Allow && f.step == byMode
		if a.Loss != shell.LosesNone && to.Inside && j.environment != nil && (settled || j.asks || f.verdict == core.Ask) {
			j.count(a, to.Path)
			j.lost.asked = j.lost.asked || !settled
		}
		if by == byItself && a.Kind == shell.Write && f.verdict == core.Allow && !isHarmlessDevice(to.Path) && j.sharesFile(to.Path) {
			f.verdict, f.step, f.rule = core.Ask, byUnclear, nil
			f.why = "would also change the file under its other names (it has hard links)"
		}
		j.addUnlessPermitted(f, by)
	}
	if len(hidden) < len(paths) {
		j.hidden = append(j.hidden, hidden...)
	} else { // the pattern is for these files
		j.parts = append(j.parts, hidden...)
	}
	if r.why != "" && by == byItself {
		f := finding{via: via, why: r.why, verdict: core.Ask, step: byUnclear}
		f.subject = j.part(core.Access{Scope: scopeOfKind(a.Kind), Resource: a.Path, Recursive: a.Recursive})
		j.add(f)
	}
}

// sharesFile reports whether a file has other hard links, possibly outside the
// workspace, which a command that writes to it would change, too. Tools replace
// the file instead and are not affected.
func (j *scriptJudge) sharesFile(name string) bool {
	if j.environment == nil {
		return false // such a write needs approval anyway
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

// file judges one file that a part of a script accesses.
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
	s.Recursive = false // what lies below is judged separately
	j.judgeWhole(f, by)
	if a.Kind == shell.List && f.step == bySensitive { // its name is not secret
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
		if j.hides(&below, a, by) {
			j.hidden = append(j.hidden, below)
		} else if below.worse(f) {
			*f = below
		}
	}
}

// hides reports whether the sandbox hides a sensitive file that is read.
func (j *scriptJudge) hides(f *finding, a *shell.Access, by settled) bool {
	if by != bySandbox || a.Kind != shell.Read || f.verdict != core.Ask || f.step != bySensitive || !f.subject.Inside {
		return false
	}
	if j.masks == nil && j.confines != nil {
		j.masks = j.confines.Hides()
	}
	return j.masks == nil || j.masks(f.subject.path)
}

// askRules turns the verdict into Ask if an ask rule matches.
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

// repositories says what could make git run programs in the repositories of the
// script; empty if nothing.
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

// maxGitFile bounds the size in bytes of the repository files that are read: its
// settings, and its index with about 100 bytes per file.
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

// isHarmlessDevice reports whether a path is a device that stores nothing.
func isHarmlessDevice(path string) bool {
	switch path {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	return strings.HasPrefix(path, "/dev/fd/")
}

// commandsOf returns the simple commands of a line as subjects, or why it cannot
// be analyzed.
func (p *Policy) commandsOf(line string) (commands []subject, unclear string) {
	script := shell.Analyze(line, shell.Options{Dir: p.firstRoot(), Home: p.home})
	if len(script.Unclear) > 0 {
		return nil, unclearReason(script.Unclear[0])
	}
	for i := range script.Commands {
		c := &script.Commands[i]
		if !c.Exact() {
			return nil, show(c.Text) + " has words only known at run time"
		}
		commands = append(commands, p.subject(&core.PermissionRequest{}, core.Access{Scope: core.ScopeShell, Resource: c.Text, Argv: c.Argv}))
	}
	return commands, ""
}
