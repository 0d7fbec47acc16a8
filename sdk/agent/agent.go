package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
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
	tables   tables // of tools, by profile
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
func (a *Agent) ToolsOf(profile string) core.ToolTable {
	return &view{base: &a.tables, profile: profile}
}

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

// SessionsDir returns the directory of the session logs below home, a Home of
// [Options].
func SessionsDir(home string) string { return filepath.Join(home, "sessions") }

// ContextsDir is the directory with the stored outputs and images of all sessions.
func ContextsDir(home string) string { return filepath.Join(home, "context") }

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
