package permissions

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions/internal/needs"
	"github.com/seed-009c0928/agent/permissions/shell"
)

// Sandbox tells what the sandbox of commands can do, so that a command that will
// need more is asked about before it fails. It is safe for concurrent use, and its
// answers are quick.
type Sandbox interface {
	// LimitsHosts reports whether the network can be limited to hosts; otherwise it
	// is on or off.
	LimitsHosts() bool
	// Layers reports whether commands write to copies of caches.
	Layers() bool
	// Reaches reports whether every command may connect to a host.
	Reaches(host string) bool
	// Listens reports whether a server on this machine listens on a TCP port.
	Listens(port int) bool
	// Hides returns whether commands cannot read a file with secrets in the workspace.
	Hides() func(path string) bool
	// Getenv returns a variable of the environment of commands.
	Getenv(name string) string
}

// foresight is what a command in the sandbox will need of what lies outside.
type foresight struct {
	parts  []finding
	grants []core.Grant
	done   map[needs.Need]bool
}

// foresee adds what the commands of a script in the sandbox will need.
func (j *scriptJudge) foresee() {
	m := &needs.Machine{
		Home: j.home, Getenv: j.confines.Getenv,
		ReadFile: func(name string) ([]byte, error) {
			return core.ReadFile(j.ctx, j.environment.Files(), name, maxSettings)
		},
		Exists: j.exists,
		ReadDir: func(dir string) (names []string) {
			entries, err := j.environment.Files().ReadDir(j.ctx, dir)
			if err != nil {
				return nil
			}
			for _, e := range entries {
				names = append(names, e.Name())
			}
			return names
		},
	}
	ahead := &foresight{done: map[needs.Need]bool{}}
	at := cwd{j.whole.dir, j.whole.dir}
	for i := range j.script.Commands {
		c := &j.script.Commands[i]
		m.Dir = at.now
		for _, n := range needs.Of(c.Argv, m) {
			j.need(ahead, c, n)
		}
		switch name := c.Argv[0]; {
		case name == "cd" || name == "pushd":
			at.now = cmp.Or(j.changeDir(c.Argv[1:], at.now), at.now)
		case (name == "." || name == "source") && len(c.Argv) > 1 && strings.HasSuffix(c.Argv[1], "/activate"):
			m.Venv = true
		}
	}
	if slices.ContainsFunc(ahead.parts, func(f finding) bool { return !f.confined }) {
		// Outside the sandbox it has all else that it needs.
		ahead.parts = slices.DeleteFunc(ahead.parts, func(f finding) bool { return f.confined && f.verdict == core.Ask && f.step == byMode })
	}
	j.remedy(ahead)
	j.parts = append(j.parts, ahead.parts...)
	j.opened = ahead.grants
}

// maxSettings bounds the files that are read to find registries and remotes.
const maxSettings = 4 << 20

func (j *scriptJudge) exists(name string) bool {
	_, err := j.environment.Files().Stat(j.ctx, name)
	return err == nil
}

// need adds one need of a command.
func (j *scriptJudge) need(ahead *foresight, c *shell.Command, n needs.Need) {
	switch n.Kind {
	case needs.Host:
		if n.Resource == "*" {
			n.Kind, n.Resource = needs.Network, ""
		}
		if j.confines.Reaches(n.Resource) || j.absent(n.Resource) {
			return
		}
	case needs.Socket:
		if !j.confines.LimitsHosts() {
			n = needs.Need{Kind: needs.Escape, Why: n.Why + " at " + n.Resource + ", which this sandbox level cannot allow"}
		}
	case needs.Cache:
		if n.Kind = needs.Dir; j.confines.Layers() || !j.exists(n.Resource) {
			return
		}
	}
	n.Why = "it " + n.Why
	key := n
	key.Why = ""
	if ahead.done[key] {
		return
	}
	ahead.done[key] = true
	j.propose(ahead, c, n)
}

// propose adds the finding on a need, and what opens the sandbox for it.
func (j *scriptJudge) propose(ahead *foresight, c *shell.Command, n needs.Need) {
	a, opens := core.Access{}, true
	switch n.Kind {
	case needs.Host, needs.Network:
		a = core.Access{Scope: core.ScopeNetwork, Resource: n.Resource}
	case needs.Socket:
		a = core.Access{Scope: core.ScopeWrite, Resource: n.Resource}
	case needs.Dir:
		a = core.Access{Scope: core.ScopeWrite, Resource: n.Resource, Recursive: true}
	default:
		a, opens = core.Access{Scope: j.whole.Scope, Resource: c.Text, Argv: c.Argv, Unconfined: true}, false
	}
	everything := n.Kind == needs.Network || n.Kind == needs.Host && !j.confines.LimitsHosts()
	if everything {
		n.Why += j.unlimited(&n)
		a.Resource = "*"
	}
	f := finding{subject: j.part(a), why: n.Why, via: c.Text, need: true, confined: opens}
	if !opens {
		f.via = ""
		if !c.Exact() {
			f.subject.sure = c.Vague[0]
		}
	}
	if j.denied(&f) {
		ahead.parts = append(ahead.parts, f)
		return
	}
	f.verdict, f.step = core.Ask, byMode
	fits := func(r *rule) bool { return r.allows(&f.subject) && (!everything || r.all) }
	if f.rule = j.allow.first(&f.subject, fits); f.rule == nil {
		f.rule = j.approved.first(&f.subject, fits)
	}
	if f.rule != nil && opens {
		f.verdict, f.step = core.Allow, byAllowRule
	}
	j.askRules(&f)
	if opens {
		ahead.grants = append(ahead.grants, core.Grant{Access: a})
	}
	ahead.parts = append(ahead.parts, f)
}

// unlimited says why a need opens the whole network.
func (j *scriptJudge) unlimited(n *needs.Need) string {
	at := cmp.Or(n.Resource, "a host only known at run time")
	if n.Kind == needs.Network {
		return ": " + at + ", without the proxy by which hosts are limited, so it gets the whole network"
	}
	return ": " + at + "; this sandbox level cannot limit the network to hosts, so it gets the whole network"
}

// absent reports whether a host is this machine and nothing listens there, so
// that only a server of the script itself can be meant.
func (j *scriptJudge) absent(host string) bool {
	name, port := splitHost(host)
	n, err := strconv.Atoi(port)
	return needs.IsLoopback(name) && err == nil && j.confines.LimitsHosts() && !j.confines.Listens(n)
}

// remedy says in each finding what would allow all of them.
func (j *scriptJudge) remedy(ahead *foresight) {
	var flags []string
	for i := range ahead.parts {
		if f := &ahead.parts[i]; f.verdict == core.Ask && f.step == byMode {
			rules := j.exactOffer(j.ctx, &f.subject).Rules
			if f.subject.Resource == "*" {
				rules = []string{"network(*)"}
			}
			for _, rule := range rules {
				if flag := "--allow '" + rule + "'"; !slices.Contains(flags, flag) {
					flags = append(flags, flag)
				}
			}
		}
	}
	for i := range ahead.parts {
		ahead.parts[i].remedy = strings.Join(flags, " ")
	}
}

// foreseen ends the reason for asking about a need.
func (f *finding) foreseen() string {
	text := "; without that it would fail in the sandbox"
	if !f.confined {
		text = ": it would run outside the sandbox, where it works"
	}
	if f.remedy != "" {
		text += "; to allow it beforehand, use " + f.remedy + " or such rules in the settings"
	}
	return text
}

// widens reports whether a command that may reach a host gets the whole network.
func (p *Policy) widens() bool {
	return p != nil && p.mode == ModeWorkspace && p.confines != nil && !p.confines.LimitsHosts() && p.Sandboxed()
}

// widen asks about the hosts of a command that would get the whole network.
func (p *Policy) widen(findings []finding) {
	if !p.widens() || !slices.ContainsFunc(findings, func(f finding) bool { return startsProgram(f.subject.Scope) && !f.free }) {
		return
	}
	for i := range findings {
		f := &findings[i]
		if f.subject.Scope != core.ScopeNetwork {
			continue
		}
		if f.verdict == core.Allow && f.step == byAllowRule && !f.rule.all {
			f.verdict, f.step, f.rule = core.Ask, byMode, nil
		}
		if f.step == byMode && f.verdict == core.Ask {
			f.why = "this sandbox level cannot limit the network to hosts, so the command gets the whole network"
		}
	}
}
