package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/core/subagent"
)

// subagentTools are the tools that an agent at the maximum depth does not get.
var subagentTools = []string{"spawn_agent", "send_input", "wait", "apply_result", "close_agent"}

// node is a node in the tree of a session and its subagents: the configuration
// that subagents inherit, and what they have spent.
type node struct {
	mu      sync.Mutex
	cfg     core.Config // current
	path    []string
	spent   model.Usage // with its subagents
	own     int         // tokens, without them
	beside  model.Usage // of calls beside its loop, not yet in an outcome
	cost    float64     // of its subagents, not yet added to its own
	seen    *followers  // shared by the tree
	parent  *node
	session *core.Session // nil until it is open
	// children are the open subagents.
	children  []*node
	began     time.Time // of a subagent
	ephemeral bool
	adjusted  bool // a skill set model or effort for the current input
	// openRecord is SessionOptions.OpenSubagent; may be nil.
	openRecord func(ctx context.Context, id string) (core.Journal, core.ContextStore, error)
	kind       string                                  // the agent type of a subagent
	ownModel   bool                                    // another one than the parent's
	toolEnv    func(core.Environment) core.Environment // SessionOptions.ToolEnv
	hooks      *hooks.Bound                            // nil without
	front      frontHooks
	ceiling    int // tokens that a subagent may use; 0 = none
}

// open sets the session when it is open.
func (f *node) open(s *core.Session) {
	f.mu.Lock()
	f.session = s
	f.mu.Unlock()
	if p := f.parent; p != nil {
		p.mu.Lock()
		p.children = append(p.children, f)
		p.mu.Unlock()
	}
}

// leave removes a closed subagent from its parent.
func (f *node) leave() {
	if p := f.parent; p != nil {
		p.mu.Lock()
		p.children = slices.DeleteFunc(p.children, func(c *node) bool { return c == f })
		p.mu.Unlock()
	}
}

// change changes the configuration.
func (f *node) change(set func(*core.Config)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set(&f.cfg)
}

// changeAll changes the configuration of a session, and that of its open subagents
// unless they or a parent are left out. Set gets the session of a subagent.
func (f *node) changeAll(except func(*node) bool, set func(c *core.Config, child *core.Session, h *hooks.Bound)) {
	f.mu.Lock()
	session, children := f.session, slices.Clone(f.children)
	if f.parent == nil {
		session = nil
	}
	set(&f.cfg, session, f.hooks)
	f.mu.Unlock()
	for _, c := range children {
		if except == nil || !except(c) {
			c.changeAll(except, set)
		}
	}
}

// price wraps the host's cost function so that a session's limit covers its
// subagents: their cost is added to its own next call.
func (f *node) price(host func(provider, name string, u model.Usage) (float64, bool)) func(provider, name string, u model.Usage) (float64, bool) {
	return func(provider, name string, u model.Usage) (float64, bool) {
		usd, known := 0.0, false
		if host != nil {
			usd, known = host(provider, name, u)
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

// shareTokens sets the limits of all sessions in the tree to the remaining tokens of
// the root, so that they cannot spend the same tokens twice.
func (f *node) shareTokens() {
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

// allow limits the session and its subagents to that many more tokens.
func (f *node) allow(left int) {
	f.mu.Lock()
	limits, session, children := f.cfg.Limits, f.session, slices.Clone(f.children)
	limits.MaxSessionTokens = max(1, f.own+left)
	if f.ceiling > 0 {
		limits.MaxSessionTokens = min(limits.MaxSessionTokens, f.ceiling)
	}
	f.mu.Unlock()
	if session != nil {
		session.SetLimits(limits)
	}
	for _, c := range children {
		c.allow(left)
	}
}

// limits returns the limits of a subagent: its own, and the remaining tokens and
// cost.
func (f *node) limits(req subagent.Request) (core.Limits, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.cfg.Limits
	l.MaxTurns, l.MaxInputTokens = req.MaxTurns, 0
	if l.MaxSessionTokens > 0 {
		if l.MaxSessionTokens -= f.spent.Total(); l.MaxSessionTokens <= 0 {
			return l, errors.New("no tokens left for the subagent")
		}
	}
	if req.MaxTokens > 0 && (l.MaxSessionTokens == 0 || req.MaxTokens < l.MaxSessionTokens) {
		l.MaxSessionTokens = req.MaxTokens
	}
	if req.MaxCost > 0 && (l.MaxCost == 0 || req.MaxCost < l.MaxCost) {
		l.MaxCost = req.MaxCost
	}
	return l, nil
}

// nodeOf returns the node of a session, nil if it has ended.
func (a *Agent) nodeOf(session string) *node {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[session]
}

// Spawn implements [subagent.Host].
func (a *Agent) Spawn(ctx context.Context, req subagent.Request) (_ subagent.Session, err error) {
	parent := a.nodeOf(req.Parent.ID)
	if parent == nil {
		return nil, errors.New("the session has ended")
	}
	limits, err := parent.limits(req)
	if err != nil {
		return nil, err
	}
	parent.mu.Lock()
	cfg, host := parent.cfg, parent.cfg.Cost
	child := &node{path: append(slices.Clone(parent.path), req.Name), parent: parent, seen: parent.seen, toolEnv: parent.toolEnv, ephemeral: parent.ephemeral, openRecord: parent.openRecord, ceiling: req.MaxTokens}
	parent.mu.Unlock()

	if cfg.ID = req.Session; cfg.ID == "" {
		cfg.ID = cfg.NewID()
	} else if err := a.ownedBy(cfg.ID, req.Parent.ID, child.openRecord == nil && !child.ephemeral); err != nil {
		return nil, err
	}
	cfg.Parent, cfg.AgentPath = req.Parent.ID, child.path
	cfg.Journal, cfg.Store, cfg.Context = nil, nil, nil
	cfg.Limits = limits
	in, err := a.place(ctx, &cfg, req)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.close())
		}
	}()
	if err := child.addTypeHooks(req.Definition); err != nil {
		return nil, err
	}
	own := firstOf(req.Model, definedModel(req.Definition))
	child.ownModel, cfg.Model = own != "", firstOf(own, cfg.Model)
	cfg.Request.Effort = cmp.Or(req.Effort, cfg.Request.Effort)
	cfg.ToolEnv = wrapped(child.toolEnv, cfg.Env)
	cfg.Profile.Prompt = withDefinition(cfg.Profile.Prompt, req.Definition)
	search := a.searching(a.viewOf(child, req.Definition, cfg.Profile.Name), &cfg)
	cfg.Tools = search
	child.cfg = cfg
	child.cfg.Cost = host
	cfg.Cost = child.price(host)
	s, journal, err := a.openChild(ctx, &cfg, child, search, req)
	if err != nil {
		return nil, err
	}
	a.begin(child, s)
	if req.Began != nil {
		req.Began(s.ID())
	}
	session := &childSession{Session: s, agent: a, node: child, journal: journal, name: req.Name}
	if req.Definition != nil {
		session.kind = req.Definition.Name
	}
	if in != nil {
		return &isolatedSession{session, in}, nil
	}
	return session, nil
}

// begin makes a subagent known to those that follow it.
func (a *Agent) begin(child *node, s *core.Session) {
	child.hooks.Attach(s)
	child.began = time.Now()
	child.seen.begin(child, s)
	a.report(s)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes[s.ID()] = child
}

// openChild opens the session of a subagent, and what closes its journal.
func (a *Agent) openChild(ctx context.Context, cfg *core.Config, child *node, search *searching, req subagent.Request) (_ *core.Session, journal io.Closer, err error) {
	resume := req.Session != ""
	if child.openRecord != nil {
		var opened core.Journal
		if opened, cfg.Store, err = child.openRecord(ctx, cfg.ID); err == nil && opened != nil {
			journal, _ = opened.(io.Closer)
			cfg.Journal = store.Redacted(opened, a.redaction())
		}
	} else if file, openErr := a.openRecord(cfg, resume, child.ephemeral); file != nil {
		journal = file
	} else {
		err = openErr
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the log of the subagent: %w", err)
	}
	child.kind = "default"
	if d := req.Definition; d != nil {
		child.kind = d.Name
	}
	if resume {
		child.front.past = a.pastSkills(cfg.Journal)
	}
	child.hooks = a.hooks.Bind(cfg, hooks.BindOptions{Type: child.kind, Parent: child.parent.hooks, More: child.moreHooks})
	cfg.Hooks = search.hooks(cfg.Hooks)
	a.checkEdits(cfg)
	s, err := a.newSession(ctx, *cfg, func(event.Event) {})
	if err == nil && resume && s.Opened() == 1 {
		s, err = nil, errors.Join(errors.New("its session log holds no records"), s.Close())
	}
	if err != nil && journal != nil {
		err = errors.Join(err, journal.Close())
	}
	return s, journal, err
}

// place moves a session to the directory of a subagent, and to its worktree.
func (a *Agent) place(ctx context.Context, cfg *core.Config, req subagent.Request) (in *isolation, err error) {
	if req.Isolated {
		if in, err = a.isolate(ctx, cfg); err != nil {
			return nil, err
		}
	}
	if err := narrow(ctx, cfg, req.WorkingDir); err != nil {
		return nil, errors.Join(err, in.close())
	}
	return in, nil
}

// viewOf returns the tools of a subagent.
func (a *Agent) viewOf(child *node, d *subagent.Definition, profile string) *view {
	v := &view{base: &a.tables, profile: profile}
	if d != nil {
		v.only, v.without = d.Tools, d.Disallowed
	}
	if len(child.path) >= a.maxDepth() {
		v.without = slices.Concat(v.without, subagentTools)
	}
	return v
}

// notify adds a message to a session, unless it has ended.
func (a *Agent) notify(id, text string) {
	f := a.nodeOf(id)
	if f == nil {
		return
	}
	f.mu.Lock()
	s := f.session
	f.mu.Unlock()
	s.Notify(text)
}

// narrow makes a directory the whole workspace of a session.
func narrow(ctx context.Context, cfg *core.Config, dir string) (err error) {
	if dir == "" {
		return nil
	}
	if cfg.Env, err = env.Within(ctx, cfg.Env, dir); err != nil {
		return fmt.Errorf("working_dir: %w", err)
	}
	move(cfg)
	return nil
}

// childSession is a subagent's session. It has its own log; its start and end are
// also events of its parent.
type childSession struct {
	*core.Session
	agent      *Agent
	node       *node
	journal    io.Closer // nil if there is nothing to close
	name, kind string
}

// Start implements [subagent.Session].
func (c *childSession) Start(ctx context.Context, in core.Input) (work func() (core.Outcome, error), err error) {
	parent := c.node.parent
	parent.mu.Lock()
	noted := parent.session
	parent.mu.Unlock()
	c.node.mu.Lock()
	name := c.node.cfg.Model
	c.node.mu.Unlock()
	noted.Note(ctx, event.SubagentStart{Name: c.name, Path: c.node.path, Child: c.ID(), Kind: c.kind, Model: name, Input: in.Content.Text(), InputID: in.ID})
	run, err := c.Session.Start(ctx, in)
	return func() (out core.Outcome, _ error) {
		c.agent.subagents.Revive(ctx, c.ID())
		err := err
		if err == nil {
			out, err = run()
		}
		out = c.node.settled(out)
		if errors.Is(err, core.ErrDetached) {
			return out, err // it has not ended
		}
		c.node.hooks.Ended(ctx, err)
		c.node.adjust("", "")
		noted.Note(ctx, c.end(out, err))
		return out, err
	}, nil
}

// end says how an input ended.
func (c *childSession) end(out core.Outcome, err error) event.SubagentEnd {
	end := event.SubagentEnd{Name: c.name, Child: c.ID(), Outcome: string(out.Stop), Text: out.Text, Usage: out.Usage, DurationMS: out.Duration.Milliseconds()}
	if err != nil {
		end.Error = err.Error()
	}
	if out.Priced && out.Cost > 0 {
		end.CostUSD = &out.Cost
	}
	return end
}

// Detach implements [subagent.Session].
func (c *childSession) Detach(ctx context.Context) error {
	return errors.Join(c.Session.Detach(ctx), c.agent.subagents.Detach(ctx, c.ID()))
}

// Close implements [subagent.Session].
func (c *childSession) Close() error {
	c.agent.forget(c.ID())
	c.node.leave()
	c.node.hooks.Close()
	err := c.Session.Close()
	if c.journal != nil {
		err = errors.Join(err, c.journal.Close())
	}
	return err
}

// forget ends the subagents and background processes of a session and drops its
// state.
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
	delete(a.nodes, id)
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

// withDefinition appends what every subagent must know and the text of a definition
// to a prompt.
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
		parts = append(parts, "Another agent gave you this task and reads your last message, nothing else. Report what it needs to know: what you found or did, with paths and lines, and what is left to do.")
		if d != nil {
			parts = append(parts, d.Prompt)
		}
		return strings.Join(parts, "\n\n") + "\n", nil
	}
}
