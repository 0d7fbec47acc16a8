package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/core/subagent"
)

// subagentTools are the tools that an agent at the greatest depth does not get.
var subagentTools = []string{"spawn_agent", "send_input", "wait", "close_agent"}

// family is what a session hands on to its subagents, as it is now.
type family struct {
	mu      sync.Mutex
	cfg     core.Config // that the session was opened with, with the changes since
	path    []string
	spent   model.Usage // with its subagents
	own     int         // tokens, without them
	cost    float64     // of its subagents, not counted by itself yet
	onChild func(*core.Session)
	parent  *family
	session *core.Session // nil until it is open
	// children are the open subagents.
	children  []*family
	ephemeral bool
}

// live takes in the session when it is open.
func (f *family) live(s *core.Session) {
	f.mu.Lock()
	f.session = s
	f.mu.Unlock()
	if p := f.parent; p != nil {
		p.mu.Lock()
		p.children = append(p.children, f)
		p.mu.Unlock()
	}
}

// leave takes a subagent that is closed out of its family.
func (f *family) leave() {
	if p := f.parent; p != nil {
		p.mu.Lock()
		p.children = slices.DeleteFunc(p.children, func(c *family) bool { return c == f })
		p.mu.Unlock()
	}
}

// change takes over a change of the session.
func (f *family) change(set func(*core.Config)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set(&f.cfg)
}

// price wraps the host's prices so that a session's budget covers its
// subagents: what they cost is added to its own next call.
func (f *family) price(host func(string, model.Usage) (float64, bool)) func(string, model.Usage) (float64, bool) {
	return func(name string, u model.Usage) (float64, bool) {
		usd, known := 0.0, false
		if host != nil {
			usd, known = host(name, u)
		}
		for at := f; at != nil; at = at.parent {
			at.mu.Lock()
			at.spent = at.spent.Add(u)
			if at != f {
				at.cost += usd
			} else {
				at.own += u.Total()
			}
			at.mu.Unlock()
		}
		f.shareTokens()
		f.mu.Lock()
		defer f.mu.Unlock()
		usd += f.cost
		f.cost = 0
		return usd, known
	}
}

// shareTokens sets the limits of all sessions of the family to what is left of
// the root's tokens, so that none can spend what another has spent already.
func (f *family) shareTokens() {
	root := f
	for root.parent != nil {
		root = root.parent
	}
	root.mu.Lock()
	most := root.cfg.Limits.MaxSessionTokens
	left := most - root.spent.Total()
	root.mu.Unlock()
	if most > 0 {
		root.allow(left)
	}
}

// allow lets the session and its subagents use that many more tokens.
func (f *family) allow(left int) {
	f.mu.Lock()
	limits, session, children := f.cfg.Limits, f.session, slices.Clone(f.children)
	limits.MaxSessionTokens = max(1, f.own+left)
	f.mu.Unlock()
	if session != nil {
		session.SetLimits(limits)
	}
	for _, c := range children {
		c.allow(left)
	}
}

// limits are those of a subagent: its own turns, and of tokens and money what
// is left.
func (f *family) limits(maxTurns int) (core.Limits, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.cfg.Limits
	l.MaxTurns, l.MaxInputTokens = maxTurns, 0
	if l.MaxSessionTokens > 0 {
		if l.MaxSessionTokens -= f.spent.Total(); l.MaxSessionTokens <= 0 {
			return l, errors.New("no tokens are left for it")
		}
	}
	return l, nil
}

// Spawn implements [subagent.Host].
func (a *Agent) Spawn(ctx context.Context, req subagent.Request) (subagent.Session, error) {
	a.mu.Lock()
	parent := a.families[req.Parent.ID]
	a.mu.Unlock()
	if parent == nil {
		return nil, errors.New("the session is over")
	}
	limits, err := parent.limits(req.MaxTurns)
	if err != nil {
		return nil, err
	}
	parent.mu.Lock()
	cfg, host := parent.cfg, parent.cfg.Cost
	child := &family{path: append(slices.Clone(parent.path), req.Name), parent: parent, onChild: parent.onChild, ephemeral: parent.ephemeral}
	parent.mu.Unlock()

	cfg.ID, cfg.Parent, cfg.AgentPath = newID(), req.Parent.ID, child.path
	cfg.Journal, cfg.Store, cfg.Context = nil, nil, nil
	cfg.Limits = limits
	cfg.Model = firstOf(req.Model, definedModel(req.Definition), cfg.Model)
	cfg.Profile.Prompt = withDefinition(cfg.Profile.Prompt, req.Definition)
	v := &view{base: a.tools, profile: cfg.Profile.Name}
	if req.Definition != nil {
		v.only = req.Definition.Tools
	}
	if len(child.path) >= a.maxDepth() {
		v.without = subagentTools
	}
	search := a.searching(v, &cfg)
	cfg.Tools = search
	child.cfg = cfg
	cfg.Hooks = search.hooks(cfg.Hooks)
	child.cfg.Cost = host
	cfg.Cost = child.price(host)
	journal, err := a.openRecord(&cfg, false, child.ephemeral)
	if err != nil {
		return nil, err
	}
	s, err := core.New(ctx, cfg)
	if err != nil {
		if journal != nil {
			err = errors.Join(err, journal.Close())
		}
		return nil, err
	}
	child.live(s)
	a.mu.Lock()
	a.families[cfg.ID] = child
	a.mu.Unlock()
	if child.onChild != nil {
		child.onChild(s)
	}
	kind := ""
	if req.Definition != nil {
		kind = req.Definition.Name
	}
	return &childSession{Session: s, agent: a, family: child, journal: journal, name: req.Name, kind: kind}, nil
}

// childSession is a subagent's session. What it does is noted in its parent's
// record, and it has a record of its own.
type childSession struct {
	*core.Session
	agent      *Agent
	family     *family
	journal    *store.Journal // nil if it is kept in memory only
	name, kind string
}

// Submit implements [subagent.Session].
func (c *childSession) Submit(ctx context.Context, in core.Input) (core.Outcome, error) {
	parent := c.family.parent
	parent.mu.Lock()
	noted := parent.session
	parent.mu.Unlock()
	c.family.mu.Lock()
	name := c.family.cfg.Model
	c.family.mu.Unlock()
	noted.Note(ctx, event.SubagentStart{Name: c.name, Path: c.family.path, Child: c.ID(), Kind: c.kind, Model: name, Input: in.Content.Text()})
	out, err := c.Session.Submit(ctx, in)
	end := event.SubagentEnd{Name: c.name, Child: c.ID(), Outcome: string(out.Stop), Text: out.Text, Usage: out.Usage, DurationMS: out.Duration.Milliseconds()}
	if err != nil {
		end.Error = err.Error()
	}
	if out.Priced && out.Cost > 0 {
		end.CostUSD = &out.Cost
	}
	noted.Note(ctx, end)
	return out, err
}

// Close implements [subagent.Session].
func (c *childSession) Close() error {
	c.agent.forget(c.ID())
	c.family.leave()
	err := c.Session.Close()
	if c.journal != nil {
		err = errors.Join(err, c.journal.Close())
	}
	return err
}

// forget ends the subagents of a session, what it runs in the background, and
// what is known of it.
func (a *Agent) forget(id string) {
	if a.builtins != nil {
		a.builtins.End(id)
	}
	if a.subagents != nil {
		a.subagents.End(id)
	}
	if a.mcp != nil {
		a.mcp.EndSession(id)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.families, id)
}

func (a *Agent) maxDepth() int {
	if a.opts.MaxSubagentDepth == 0 {
		return 1
	}
	return a.opts.MaxSubagentDepth
}

func definedModel(d *subagent.Definition) string {
	if d == nil {
		return ""
	}
	return d.Model
}

func firstOf(names ...string) string {
	i := slices.IndexFunc(names, func(n string) bool { return n != "" })
	if i < 0 {
		return ""
	}
	return names[i]
}

// withDefinition puts a definition's text behind a prompt, with what every
// subagent must know.
func withDefinition(prompt func(context.Context, core.PromptRequest) (string, error), d *subagent.Definition) func(context.Context, core.PromptRequest) (string, error) {
	return func(ctx context.Context, req core.PromptRequest) (string, error) {
		var parts []string
		if prompt != nil {
			text, err := prompt(ctx, req)
			if err != nil {
				return "", err
			}
			parts = append(parts, strings.TrimSpace(text))
		}
		parts = append(parts, "Another agent gave you this task and reads your last message, nothing else. Report there what it needs: what you found or did, with paths and lines, and what is open.")
		if d != nil {
			parts = append(parts, d.Prompt)
		}
		return strings.Join(parts, "\n\n") + "\n", nil
	}
}
