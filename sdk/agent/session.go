package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/profile"
	"github.com/seed-009c0928/agent/core/store"
)

// SessionOptions configure a session. Only Provider is required.
type SessionOptions struct {
	Provider model.Provider
	Model    string            // empty = the provider's
	Retry    model.RetryPolicy // of failed model calls; zero = none
	Profile  core.Profile      // zero = profile.Default
	Request  core.RequestOptions
	Limits   core.Limits
	Asker    core.Asker // answers permission requests; nil denies them
	// SaveRules is [core.Config].SaveRules: it saves what the Asker always allows.
	SaveRules func(ctx context.Context, rules []string) error
	Hooks     core.Hooks
	Context   []core.ContextSource // adds text to inputs
	// ToolEnv returns the view of the environment that tools get, such as one with the
	// files as an editor has them; nil = the environment. Subagents have it, too.
	ToolEnv func(core.Environment) core.Environment
	// OnSubagent is called with every subagent of the session before it starts; see also
	// [Session.Subagents].
	OnSubagent func(*core.Session)
	// Cost returns the price of a model call in USD; false if unknown.
	Cost func(provider, model string, u model.Usage) (float64, bool)
	// Resume is the ID of a session to resume; empty starts a new one.
	Resume string
	// Begun is how a new session begins, for SessionStart hooks: "clear" if it replaces
	// another one; empty = "startup".
	Begun string
	// Ephemeral keeps the session only in memory.
	Ephemeral bool

	// Journal is the session's log, instead of a file below Home. If it holds records,
	// that session is resumed. The caller closes it after the session.
	Journal core.Journal
	Store   core.ContextStore // of a session with a Journal; nil keeps no full outputs
	// OpenSubagent opens the journal and the store of a subagent in a session with a
	// Journal, before it starts. If the journal holds records, as when the process died
	// while the subagent worked, it is resumed. Nil keeps subagents only in memory.
	// Journals that are io.Closers are closed with the subagent.
	OpenSubagent func(ctx context.Context, id string) (core.Journal, core.ContextStore, error)
	// ID is that of a new session, or of the one in the Journal; empty = NewID().
	ID    string
	Clock func() time.Time // nil = time.Now
	NewID func() string    // of sessions and calls; nil = random IDs that sort by time
	// OnOpenCall is [core.Config].OnOpenCall: what becomes of calls that were open when
	// the process of a resumed session died.
	OnOpenCall func(core.OpenCall) core.OpenCallAction

	place *env.Local // of a bead in a worktree; nil is the agent's environment
}

// Session is a [core.Session] with its log, and with the subagents that share its
// provider, policy and limits. Submit runs one input at a time until the model has
// answered it:
//
//	out, err := s.Submit(ctx, core.TextInput("Fix the failing test."))
//	fmt.Println(out.Text, out.Stop, err) // the answer, why it ended, an error of the model
//
// Other methods can be called meanwhile, for example Cancel, or Events to follow the
// work.
type Session struct {
	*core.Session
	journal *store.Journal   // nil if only in memory
	changes *changes.Tracker // nil if changes of files are not recorded
	// takenBack says that the record may have an undo that the model does not
	// know of.
	takenBack atomic.Bool
	tools     *view
	search    *searching
	waiting   waiting
	agent     *Agent
	node      *node
	place     *env.Local // nil is the agent's environment
}

// SetModel changes the provider and the model, also of subagents without a model of
// their own. See [core.Session.SetModel].
func (s *Session) SetModel(p model.Provider, name string) {
	s.node.changeAll(func(n *node) bool { return n.ownModel }, func(c *core.Config, child *core.Session, h *hooks.Bound) {
		if p != nil {
			c.Provider = p
		}
		c.Model = name
		if child != nil {
			child.SetModel(h.Provider(p), name)
		}
	})
	s.node.change(s.search.adapt)
	s.Session.SetModel(s.node.hooks.Provider(p), name)
}

// SetRequest changes the request's options, also of subagents.
func (s *Session) SetRequest(o core.RequestOptions) {
	s.node.changeAll(nil, func(c *core.Config, child *core.Session, _ *hooks.Bound) {
		if c.Request = o; child != nil {
			child.SetRequest(o)
		}
	})
	s.Session.SetRequest(o)
}

// SetPolicy changes the policy, also of subagents.
func (s *Session) SetPolicy(p core.Policy) {
	if s.place != nil {
		cfg := core.Config{Env: s.place, Policy: p}
		move(&cfg)
		p = cfg.Policy
	}
	s.node.changeAll(nil, func(c *core.Config, child *core.Session, h *hooks.Bound) {
		if c.Policy = p; child != nil {
			move(c)
			child.SetPolicy(h.Policy(c.Policy))
		}
	})
	s.Session.SetPolicy(s.node.hooks.Policy(p))
}

// Cancel cancels the running input, including subagents; running tools finish. See
// [core.Session.Cancel].
func (s *Session) Cancel(reason string) {
	if s.agent.subagents != nil {
		s.agent.subagents.Cancel(s.ID(), reason)
	}
	s.Session.Cancel(reason)
}

// Interrupt is Cancel that ends running tools, too. See [core.Session.Interrupt].
func (s *Session) Interrupt(reason string) {
	if s.agent.subagents != nil {
		s.agent.subagents.Cancel(s.ID(), reason)
	}
	s.Session.Interrupt(reason)
}

// Submit runs an input; see [core.Session.Submit]. If it is aborted, the subagents
// are cancelled, too.
func (s *Session) Submit(ctx context.Context, in core.Input) (core.Outcome, error) {
	work, err := s.Start(ctx, in)
	if err != nil {
		return core.Outcome{}, err
	}
	return work()
}

// Start is Submit in two steps; see [core.Session.Start].
func (s *Session) Start(ctx context.Context, in core.Input) (work func() (core.Outcome, error), err error) {
	if t := s.agent.opts.Telemetry; t != nil {
		ctx = t.Context(ctx)
	}
	run, err := s.Session.Start(ctx, in)
	if err != nil {
		return nil, err
	}
	return func() (core.Outcome, error) {
		if s.agent.subagents != nil {
			s.agent.subagents.Revive(ctx, s.ID())
		}
		out, err := run()
		out, err = s.refused(ctx, s.node.settled(out), err)
		s.node.adjust("", "")
		switch {
		case errors.Is(err, core.ErrDetached): // Detach forgets it when its subagents are detached
		case s.State() == core.StateClosed:
			s.agent.forget(s.ID())
		case out.Stop == core.StopAborted && s.agent.subagents != nil:
			s.agent.subagents.Cancel(s.ID(), "the input was aborted")
		}
		return out, err
	}, nil
}

// AwaitBackground waits for background subagents and for asynchronous hooks that may
// wake the model, and reports whether messages wait
// for the next input, such as that one is done. An empty input takes them up.
func (s *Session) AwaitBackground(ctx context.Context) bool {
	if s.agent.subagents != nil {
		s.agent.subagents.AwaitBackground(ctx, s.ID())
	}
	s.node.hooks.Await(ctx)
	return ctx.Err() == nil && s.Unread()
}

// SetProfile changes the profile, and with it the built-in tools, for the following
// model calls.
func (s *Session) SetProfile(p core.Profile) {
	s.tools.set(p.Name)
	p = s.agent.withBreadcrumb(p)
	s.node.change(func(c *core.Config) {
		c.Profile = p
		s.search.adapt(c)
	})
	s.Session.SetProfile(p)
}

// Log returns the path of the session log; empty if there is none.
func (s *Session) Log() string {
	if s.journal == nil {
		return ""
	}
	return s.journal.Path()
}

// Advertise tells processes that find the session in use where this one serves it; see
// [store.LockedError]. It does nothing without a log.
func (s *Session) Advertise(address string) error {
	if s.journal == nil {
		return nil
	}
	return s.journal.Advertise(address)
}

// Detach lets go of the session and its subagents without ending them, and closes its
// log: see [core.Session.Detach]. Commands in the background end.
func (s *Session) Detach(ctx context.Context) error {
	err := s.Session.Detach(ctx)
	if s.agent.subagents != nil {
		err = errors.Join(err, s.agent.subagents.Detach(ctx, s.ID()))
	}
	s.agent.forget(s.ID())
	s.node.hooks.Detach()
	return errors.Join(err, s.release())
}

// Close ends the session and closes its log.
func (s *Session) Close() error {
	s.agent.forget(s.ID())
	s.node.hooks.Close()
	return errors.Join(s.Session.Close(), s.release())
}

// release closes what belongs to a session that is closed.
func (s *Session) release() (err error) {
	if s.changes != nil {
		err = s.changes.Close()
	}
	if s.journal != nil {
		err = errors.Join(err, s.journal.Close())
	}
	return err
}

// NewSession opens a new session, or resumes one if opts.Resume is set. The caller
// must close it before the agent.
func (a *Agent) NewSession(ctx context.Context, opts SessionOptions) (*Session, error) {
	cfg, err := a.config(&opts)
	if err != nil {
		return nil, err
	}
	s := &Session{tools: &view{base: &a.tables, profile: cfg.Profile.Name}, agent: a, node: &node{seen: newFollowers(opts.OnSubagent), toolEnv: opts.ToolEnv, ephemeral: opts.Ephemeral || opts.Journal != nil, openRecord: opts.OpenSubagent}}
	a.addSources(&cfg, s)
	s.search = a.searching(s.tools, &cfg)
	cfg.Tools = s.search
	cfg.Hooks.AfterTool = keyWarning(func(ctx context.Context, code, message string) { s.Warn(ctx, code, message) }, opts.Hooks.AfterTool)
	if opts.Journal != nil {
		cfg.Journal, cfg.Store = store.Redacted(opts.Journal, a.redaction()), opts.Store
	} else if s.journal, err = a.openRecord(&cfg, opts.Resume != "", opts.Ephemeral); err != nil {
		return nil, err
	}
	if s.place = opts.place; s.place == nil {
		a.watch(&cfg, s)
	}
	s.node.cfg = cfg
	if opts.Resume != "" || opts.Journal != nil {
		s.node.front.past = a.pastSkills(cfg.Journal)
	}
	begun := cmp.Or(opts.Begun, "startup")
	if opts.Resume != "" {
		begun = "resume"
	}
	s.node.hooks = a.hooks.Bind(&cfg, hooks.BindOptions{Source: begun, More: s.node.moreHooks})
	cfg.Hooks = s.search.hooks(cfg.Hooks)
	a.checkEdits(&cfg)
	cfg.Cost = s.node.price(opts.Cost)
	if s.Session, err = a.newSession(ctx, cfg, func(e event.Event) {
		s.waiting.see(cfg.ID, e)
		s.seeUndo(e)
	}); err != nil {
		if s.journal != nil {
			err = errors.Join(err, s.journal.Close())
		}
		return nil, err
	}
	s.node.hooks.Attach(s.Session)
	s.node.open(s.Session)
	a.report(s.Session)
	s.node.change(func(c *core.Config) { c.Asker = s.Session }) // permission requests of subagents queue up there
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes[s.ID()] = s.node
	a.reports.note(s.Session)
	return s, nil
}

// config checks the options of a session, and returns what does not depend on the
// session's tools and record.
func (a *Agent) config(opts *SessionOptions) (core.Config, error) {
	switch {
	case opts.Provider == nil:
		return core.Config{}, errors.New("agent.NewSession: a Provider is required, for example langchain.Local")
	case opts.Journal != nil && (opts.Resume != "" || opts.Ephemeral):
		return core.Config{}, errors.New("agent.NewSession: a Journal has the session to resume: set its ID, and leave out Resume and Ephemeral")
	case opts.ID != "" && opts.Resume != "":
		return core.Config{}, errors.New("agent.NewSession: ID is for a new session: leave it out with Resume")
	}
	cfg := core.Config{
		ID: opts.Resume, Version: a.opts.Version,
		Provider: model.WithRetry(opts.Provider, opts.Retry), Model: opts.Model, Profile: opts.Profile, Request: opts.Request,
		Env: a.env, Policy: a.policy, Asker: opts.Asker, SaveRules: opts.SaveRules, Context: opts.Context, Hooks: opts.Hooks,
		Limits: opts.Limits, Secrets: secrets(a.opts.Secrets), Cost: opts.Cost, NewID: newID, Logger: a.opts.Logger,
		Hider: a.hidden, OnOpenCall: opts.OnOpenCall, Clock: opts.Clock,
	}
	if opts.NewID != nil {
		cfg.NewID = opts.NewID
	}
	if opts.place != nil {
		cfg.Env = opts.place
		move(&cfg)
	}
	cfg.Explain, cfg.ToolEnv = a.explain, wrapped(opts.ToolEnv, cfg.Env)
	if cfg.Profile.Name == "" && cfg.Profile.Prompt == nil {
		cfg.Profile = profile.Default(profile.Options{})
	}
	if cfg.ID = cmp.Or(cfg.ID, opts.ID); cfg.ID == "" {
		cfg.ID = cfg.NewID()
	}
	return cfg, nil
}

// wrapped returns the view of an environment that tools get.
func wrapped(view func(core.Environment) core.Environment, env core.Environment) core.Environment {
	if view == nil {
		return env
	}
	return view(env)
}

// addSources adds the context of plugins, MCP servers and skills.
func (a *Agent) addSources(cfg *core.Config, s *Session) {
	cfg.Context = slices.Clone(cfg.Context)
	a.withPlugins(cfg)
	a.withBundles(cfg)
	if a.mcp != nil {
		cfg.Context = append(cfg.Context, a.mcp)
		a.mcp.Warm()
	}
	if a.skills != nil {
		cfg.Context = append(cfg.Context, a.skillSource(s))
		cfg.Profile = a.withBreadcrumb(cfg.Profile)
	}
}

// openRecord opens the session's log and store and sets them in cfg. It returns nil
// for a session that is only in memory. A log that cannot be created is an error, or
// a warning if it is optional; resuming one, or one that is open elsewhere, is an
// error.
func (a *Agent) openRecord(cfg *core.Config, resume, ephemeral bool) (*store.Journal, error) {
	if a.opts.Home == "" || ephemeral {
		if resume {
			return nil, fmt.Errorf("cannot resume session %s: sessions are only in memory", cfg.ID)
		}
		return nil, nil
	}
	cfg.JournalOptional = a.opts.Store.Optional
	open, dir := store.Create, SessionsDir(a.opts.Home)
	if resume {
		open = store.Open
	}
	journal, err := open(dir, cfg.ID, a.redaction())
	switch {
	case err != nil && resume:
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("there is no session %q in %s", cfg.ID, dir)
		}
		return nil, err
	case err != nil && (errors.Is(err, store.ErrLocked) || errors.Is(err, os.ErrExist)):
		return nil, err
	case err != nil && !a.opts.Store.Optional:
		return nil, &core.JournalError{Err: err}
	case err != nil:
		cfg.Journal = noJournal{err}
		return nil, nil
	}
	keep, err := store.NewContext(ContextsDir(a.opts.Home), cfg.ID, store.ContextOptions{MaxBytes: a.opts.Store.MaxBytes, Secrets: a.opts.Secrets})
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	cfg.Journal, cfg.Store = journal, keep
	a.recorded.Store(true)
	return journal, nil
}

// redaction is what session logs must not have.
func (a *Agent) redaction() store.Options {
	return store.Options{Secrets: a.opts.Secrets, Hidden: a.hidden}
}

// noJournal replaces a log that could not be created: the session warns with its
// error and continues in memory.
type noJournal struct{ err error }

func (j noJournal) Append(context.Context, event.Event) error { return j.err }
func (noJournal) Sync(context.Context) error                  { return nil }
func (noJournal) Replay(context.Context, event.Seq) iter.Seq2[event.Event, error] {
	return func(func(event.Event, error) bool) {}
}

// newID returns an ID that sorts by time.
func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}
