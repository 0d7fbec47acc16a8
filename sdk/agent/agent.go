package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/changes"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/profile"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/core/tools"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/registry"
	"github.com/seed-009c0928/agent/skills"
)

// Options configure an agent. The zero value has the built-in tools, works in the
// current directory, stores nothing, and may only read inside the directory without
// approval.
type Options struct {
	// Env is where the tools work; nil is this machine, with the directories
	// below. The agent closes it.
	Env     core.Environment
	Dir     string   // working directory; empty = the current one
	AddDirs []string // more directories of the workspace
	// Home is the directory for sessions, ~/.agent for the command. Empty keeps
	// them only in memory.
	Home    string
	Version string // of the host program, for the session log

	Tools    []core.Tool    // of the host; they replace built-in ones of the same name
	Toolsets []core.Toolset // the agent closes them
	// UnguardedWrites lets a session change files that it has not read.
	UnguardedWrites bool
	NoBuiltins      bool
	Allowed         []string // patterns of tool names; empty = all
	Disallowed      []string // patterns of tool names
	ToolSearch      ToolSearch
	// PDFCommand is a program that calls pdftext.Serve with further arguments, with
	// which read_file reads PDF documents; empty refuses them.
	PDFCommand []string

	// WebSearch offers the tool web_search, with which the model's provider searches
	// the web.
	WebSearch bool

	// Agents are the agent types for subagents. NoSubagents disables subagents;
	// MaxSubagentDepth limits their nesting, 0 = 1.
	Agents           []subagent.Definition
	NoSubagents      bool
	MaxSubagentDepth int

	// Plugins configures the plugins; nil means no plugins. Open sets Supervisor, Version and
	// Logger, and the Sandbox and Workspace if they are empty.
	Plugins *plugins.Options
	// Bundles are plugins of files, whose skills, agent types, MCP servers, hooks and
	// context files sessions get. One that cannot be read is an error of Open.
	Bundles []Bundle
	// Hooks run at points of all sessions; see [hooks.Parse].
	Hooks  []hooks.Definition
	MCP    MCPOptions
	Skills SkillOptions

	// Permissions are the permission rules. Policy replaces them.
	Permissions permissions.Options
	Policy      core.Policy

	// Sandbox configures the sandbox of child processes. Nil is the zero value,
	// but no sandbox with a Policy, which must know of the sandbox.
	Sandbox *SandboxOptions

	// Environ is the environment that commands inherit from, as NAME=VALUE; nil is that
	// of this process. What looks like a secret is left out, except for PassEnv.
	Environ []string
	PassEnv []string // variables that commands get although they look like secrets
	Secrets []string // strings to hide in tool output and in the session log

	// Hidden learns what sessions do not record of sensitive files, to be kept out of
	// other records, too, such as a recording of the model; nil is a new one.
	Hidden *store.Hidden

	Store StoreOptions
	// NoSnapshots records no changes of files, which then cannot be undone. They
	// are recorded only on this machine, and with a Home.
	NoSnapshots bool
	// Symbols returns the functions and types that differ in two contents of a file,
	// for the event files_changed; nil reports none.
	Symbols func(path string, before, after []byte) []event.SymbolChange

	// Subreaper makes this process adopt the orphans of its commands, so that
	// none survives. Set it only in a program that starts no other children.
	Subreaper bool

	Logger *slog.Logger
	// Telemetry learns what all sessions do; nil turns it off. The agent closes it.
	Telemetry Telemetry
}

// StoreOptions say what is stored below Home.
type StoreOptions struct {
	// Optional lets sessions continue in memory when their log cannot be written;
	// otherwise they stop before the next tool or model call.
	Optional bool
	MaxBytes int64         // of one session's full outputs and images; 0 = 1 GiB
	MaxAge   time.Duration // of the outputs of an unused session; 0 = as long as its log
}

// Agent is what sessions share: environment, tools, policy and store. One agent can
// run many sessions at once; it is safe for concurrent use. Its life cycle:
//
//  1. [Open] combines the options. It is fast: plugins and MCP servers start with
//     their first call.
//  2. [Agent.NewSession] opens sessions.
//  3. Close the sessions, then [Agent.Close] ends all processes.
type Agent struct {
	opts     Options
	commands *proc.Supervisor
	env      core.Environment
	tools    *registry.Registry
	policy   core.Policy
	recorded atomic.Bool // a session has a log
	hidden   *store.Hidden
	confined profiles // of plugins and MCP servers
	refusals refusals // of MCP servers

	builtins  *tools.Set        // nil without
	subagents *subagent.Toolset // nil without
	plugins   *plugins.Host     // nil without
	bundled   []core.ContextSource
	mcp       *mcp.Host        // nil without
	servers   *languageServers // nil without
	skills    *skills.Tools    // nil without
	usage     *skills.Usage
	hooks     *hooks.Engine // nil without
	// pluginErrs are about plugins whose tools are not in the table.
	pluginErrs []error
	sweeping   sync.WaitGroup
	mu         sync.Mutex
	scratch    *sandbox.TempDir // changes of caches by MCP servers; may be nil
	nodes      map[string]*node // by the session's id
	reports    reports
}

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

// Open creates an agent. It reads no file of the workspace, and starts no process
// except to test the sandbox. The caller must close the agent.
func Open(ctx context.Context, opts Options) (_ *Agent, err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Agent{opts: opts, nodes: map[string]*node{}, hidden: cmp.Or(opts.Hidden, &store.Hidden{})}
	defer func() {
		if err != nil {
			_ = a.Close()
		}
	}()
	a.reports.open(a)
	a.commands = proc.NewSupervisor(proc.Options{Logger: opts.Logger})
	if opts.Subreaper {
		if err := a.commands.Subreaper(); err != nil {
			opts.Logger.DebugContext(ctx, "orphans of commands are not adopted", "cause", err)
		}
	}
	if a.env = opts.Env; a.env == nil {
		local, err := a.localEnv(opts.Dir, opts.AddDirs)
		if err != nil {
			return nil, err
		}
		a.env = local
	}
	if err := a.addBundles(ctx); err != nil {
		return nil, err
	}
	if a.policy, err = a.newPolicy(ctx); err != nil {
		return nil, err
	}
	if err := a.addTools(ctx); err != nil {
		return nil, err
	}
	if err := a.openPlugins(ctx); err != nil {
		return nil, err
	}
	a.openMCP(ctx)
	a.hooks = a.newHooks()
	a.observe()
	a.sweeping.Go(a.sweep)
	return a, nil
}

// Env returns the environment that the tools work in.
func (a *Agent) Env() core.Environment { return a.env }

// Tools returns the table of all tools.
func (a *Agent) Tools() core.ToolTable { return a.tools }

// ToolsOf returns the table of the tools that a session with the profile of
// that name has, see [core.ToolDefinition].
func (a *Agent) ToolsOf(profile string) core.ToolTable { return &view{base: a.tools, profile: profile} }

// Policy returns the policy for tool calls.
func (a *Agent) Policy() core.Policy { return a.policy }

// Close closes the toolsets and the environment and ends all processes. Close the
// sessions first.
func (a *Agent) Close() error {
	a.sweeping.Wait()
	var errs []error
	if a.plugins != nil { // all at once, before the table closes them one by one
		errs = append(errs, a.plugins.Close())
	}
	if a.tools != nil {
		errs = append(errs, a.tools.Close())
	}
	if a.mcp != nil {
		errs = append(errs, a.mcp.Close())
	}
	if a.env != nil {
		errs = append(errs, a.env.Close())
	}
	if a.commands != nil {
		errs = append(errs, a.commands.Close())
	}
	errs = append(errs, a.scratch.Remove(), a.reports.close(a.opts.Telemetry))
	if a.recorded.Load() {
		a.clean(time.Now())
	}
	return errors.Join(errs...)
}

// clean removes the outputs of deleted and long unused sessions. It runs once a
// day: the time of a file is when it last ran.
func (a *Agent) clean(now time.Time) {
	dir := ContextsDir(a.opts.Home)
	marker := filepath.Join(dir, ".cleaned")
	if info, err := os.Stat(marker); err == nil && now.Sub(info.ModTime()) < 24*time.Hour {
		return
	}
	if _, err := os.Stat(dir); err != nil {
		return // nothing was ever stored
	}
	removed, err := store.Clean(dir, SessionsDir(a.opts.Home), a.opts.Store.MaxAge, now)
	if err == nil {
		err = os.WriteFile(marker, nil, 0o600)
	}
	a.opts.Logger.Debug("outputs of old sessions removed", "sessions", len(removed), "error", err)
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
	s := &Session{tools: &view{base: a.tools, profile: cfg.Profile.Name}, agent: a, node: &node{seen: newFollowers(opts.OnSubagent), toolEnv: opts.ToolEnv, ephemeral: opts.Ephemeral || opts.Journal != nil, openRecord: opts.OpenSubagent}}
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

// SessionsDir returns the directory of the session logs below home, a Home of
// [Options].
func SessionsDir(home string) string { return filepath.Join(home, "sessions") }

// ContextsDir is the directory with the stored outputs and images of all sessions.
func ContextsDir(home string) string { return filepath.Join(home, "context") }

// newID returns an ID that sorts by time.
func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}

// secrets drops strings that are too short to search for everywhere.
func secrets(all []string) []string {
	var out []string
	for _, s := range all {
		if len(s) >= 8 {
			out = append(out, s)
		}
	}
	return out
}
