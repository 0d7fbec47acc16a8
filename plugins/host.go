package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Options say where a host finds plugins and how it runs them. Supervisor is
// required; whoever made it closes it, after the host.
type Options struct {
	Supervisor *proc.Supervisor
	// Home is the agent's own directory: plugins are in Home/plugins, what is
	// known of them in Home/cache/plugins, their logs in Home/logs/plugins.
	// Empty means that nothing is installed and nothing kept.
	Home string
	// Project is the folder of a project's own plugins, ./.agent/plugins; only
	// for a project that the person trusts.
	Project string
	// Bundled are the plugins in the agent's own program, which BundledCommand
	// serves when the plugin's name is put behind it.
	Bundled        []sdk.Plugin
	BundledCommand []string
	// Disabled are names of plugins that are left out.
	Disabled []string

	Workspace string // directory of the agent's work, which manifests call $WORKSPACE
	UserHome  string // which they call $HOME
	// Sandbox says how the processes are confined to their manifests.
	Sandbox sandbox.Mode
	Environ []string // what a plugin's environment is taken from; nil = os.Environ()

	StartTimeout time.Duration // 0 = 10 s
	CallTimeout  time.Duration // of tools that say nothing; 0 = 2 min
	Idle         time.Duration // after which an unused process is ended; 0 = 5 min, negative = never
	Watch        time.Duration // between looks for changed files; 0 = 1 s, negative = only with a call

	Version string // of the agent
	Clock   func() time.Time
	Logger  *slog.Logger
}

// Host runs plugins. It is safe for concurrent use. Close ends all of them.
type Host struct {
	supervisor   *proc.Supervisor
	cache        cache
	logs         string
	agentHome    string
	workspace    string
	home         string
	sandbox      sandbox.Mode
	environ      []string
	startTimeout time.Duration
	callTimeout  time.Duration
	idle         time.Duration
	watchEvery   time.Duration
	version      string
	clock        func() time.Time
	logger       *slog.Logger

	ctx    context.Context // done when the host is closed
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	plugins []*Plugin
	broken  []*Error
	watched bool
	closed  bool
}

// Open returns a host that knows its plugins: it has read each one's
// plugin.json, nothing else, and started nothing.
func Open(ctx context.Context, o Options) *Host {
	h := &Host{
		supervisor: o.Supervisor, agentHome: o.Home, workspace: o.Workspace, home: o.UserHome, sandbox: o.Sandbox, environ: o.Environ,
		startTimeout: cmp.Or(o.StartTimeout, 10*time.Second), callTimeout: cmp.Or(o.CallTimeout, 2*time.Minute),
		idle: cmp.Or(o.Idle, 5*time.Minute), watchEvery: cmp.Or(o.Watch, time.Second),
		version: o.Version, clock: o.Clock, logger: o.Logger,
	}
	if h.environ == nil {
		h.environ = os.Environ()
	}
	if h.clock == nil {
		h.clock = time.Now
	}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	if o.Home != "" {
		h.cache.dir, h.logs = CacheDir(o.Home), LogDir(o.Home)
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	for _, f := range find(ctx, o) {
		if slices.Contains(o.Disabled, f.name) {
			continue
		}
		err := f.err
		if err == nil {
			err = h.add(ctx, f)
		}
		if err != nil {
			h.broken = append(h.broken, &Error{f.name, err})
		}
	}
	return h
}

// CacheDir is the directory of an agent's home in which the host keeps what
// plugins say of themselves.
func CacheDir(home string) string { return filepath.Join(home, "cache", "plugins") }

// LogDir is the directory of the plugins' logs.
func LogDir(home string) string { return filepath.Join(home, "logs", "plugins") }

// StoreDir is the directory of the installed plugins.
func StoreDir(home string) string { return filepath.Join(home, "plugins") }

// found is a plugin at some place.
type found struct {
	name   string
	scope  Scope
	dir    string
	origin origin
	err    error // why it cannot be used
}

// find looks for plugins, in the order of the scopes.
func find(ctx context.Context, o Options) []found {
	var list []found
	for _, b := range o.Bundled {
		list = append(list, foundBundled(b, o.BundledCommand))
	}
	if o.Home != "" {
		store := bundle.Open(StoreDir(o.Home), bundle.Options{})
		entries, err := store.List(ctx)
		if err != nil {
			list = append(list, found{name: filepath.Base(store.LockFile()), scope: User, err: err})
		}
		for _, e := range entries {
			list = append(list, found{name: e.Name, scope: User, dir: store.Path(e.Name), origin: &installed{store, e.Name}})
		}
		links, err := readLinks(o.Home)
		if err != nil {
			list = append(list, found{name: linksFile, scope: Linked, err: err})
		}
		for _, l := range links {
			list = append(list, found{name: l.Name, scope: Linked, dir: l.Dir, origin: &linked{name: l.Name, dir: l.Dir}})
		}
	}
	if o.Project != "" {
		list = append(list, findProject(o.Project)...)
	}
	for i := range list {
		j := slices.IndexFunc(list[:i], func(f found) bool { return f.name == list[i].name })
		if j >= 0 && list[i].err == nil {
			list[i].err = fmt.Errorf("there is another of this name (%s), which is used; this one (%s) is left out", list[j].scope, list[i].scope)
		}
	}
	return list
}

func findProject(dir string) (list []found) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []found{{name: dir, scope: Project, err: err}}
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		at := filepath.Join(dir, e.Name())
		list = append(list, found{name: e.Name(), scope: Project, dir: at, origin: &project{at}})
	}
	return list
}

// foundBundled asks a bundled plugin what it is, inside of this process: its
// code is the agent's own. Its tools run in a process like any other's.
func foundBundled(p sdk.Plugin, command []string) found {
	f := found{name: p.Name, scope: Bundled}
	server, err := sdk.NewServer(p)
	if err != nil {
		f.err = err
		return f
	}
	defer server.Close()
	said, err := server.Describe(context.Background(), &toolproto.DescribeRequest{})
	if err != nil || len(command) == 0 {
		f.err = errors.Join(err, errors.New("there is no command that serves it"))
		return f
	}
	spec := Spec{
		Name: p.Name, Version: p.Version, Protocol: toolproto.Version, Summary: p.Summary,
		Manifest: Manifest(p.Manifest), Dynamic: p.Dynamic != nil,
	}
	if len(said.Contexts) > 0 {
		spec.Context = &ContextBudget{MaxTokens: bundledContextTokens}
	}
	argv := append(slices.Clone(command), p.Name)
	f.dir = filepath.Dir(argv[0])
	f.origin = &builtIn{loaded{spec: spec, dir: f.dir, argv: argv, hash: "bundled-" + p.Name, said: said}}
	f.err = checkDescription(&spec, said)
	return f
}

// bundledContextTokens is the budget of a bundled plugin.
const bundledContextTokens = 2000

// add makes a plugin of what was found, if it can be used.
func (h *Host) add(ctx context.Context, f found) error {
	p := h.newPlugin(f)
	p.mu.Lock()
	err := p.refresh(ctx)
	if err == nil {
		p.log.secrets = h.secrets(p.now.spec.Manifest)
	}
	p.mu.Unlock()
	if err != nil {
		p.cancel()
		return err
	}
	h.plugins = append(h.plugins, p)
	return nil
}

func (h *Host) newPlugin(f found) *Plugin {
	p := &Plugin{
		host: h, name: f.name, scope: f.scope, origin: f.origin, changed: make(chan struct{}, 1),
		log: &logFile{now: h.clock},
	}
	if h.logs != "" {
		p.log.path = logPath(h.logs, f.name)
	}
	p.ctx, p.cancel = context.WithCancel(h.ctx)
	return p
}

// Secrets are the values of all secrets that plugins get, to be hidden wherever
// text of theirs is shown or kept.
func (h *Host) Secrets() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, p := range h.plugins {
		list = append(list, p.log.secrets...)
	}
	return list
}

// secrets are the values that a plugin must not show.
func (h *Host) secrets(m Manifest) []string {
	var list []string
	for _, name := range m.Secrets {
		for _, entry := range h.environ {
			if v, ok := strings.CutPrefix(entry, name+"="); ok && v != "" {
				list = append(list, v)
			}
		}
	}
	return list
}

// Plugins returns the plugins that can be used. It begins to look for changes
// of their files.
func (h *Host) Plugins() []*Plugin {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.watched && !h.closed && h.watchEvery > 0 && len(h.plugins) > 0 {
		h.watched = true
		h.wg.Go(h.watch)
	}
	return slices.Clone(h.plugins)
}

// Store returns the store of the plugins in the host's home.
func (h *Host) Store() *Store { return OpenStore(h.agentHome, h.supervisor) }

// Broken says which plugins were left out, and why.
func (h *Host) Broken() []*Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.broken)
}

// watch looks for changed files until the host is closed.
func (h *Host) watch() {
	tick := time.NewTicker(h.watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-h.ctx.Done():
			return
		}
		h.mu.Lock()
		list := slices.Clone(h.plugins)
		h.mu.Unlock()
		for _, p := range list {
			p.mu.Lock()
			_ = p.refresh(h.ctx) // the next call or list says it
			p.mu.Unlock()
		}
	}
}

// OpenToolset returns the plugin in a single program, such as one that a skill
// carries, whose SHA-256 (hex) must be sum. Its process may do nothing but
// compute and read its own folder. It starts with the first call, or with Tools
// where nothing is known of it yet. Whoever asked for it closes it.
func (h *Host) OpenToolset(path, sum string) (core.Toolset, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if !sha256Hex().MatchString(strings.ToLower(sum)) {
		return nil, fmt.Errorf("%s: its checksum %q is no SHA-256 of 64 hex digits", path, sum)
	}
	o := &binary{resolved(path), strings.ToLower(sum)}
	l, err := o.load(h.ctx)
	if err == nil {
		err = checkProgram(o.path)
	}
	if err == nil {
		err = o.verify(h.ctx, &l)
	}
	if err != nil {
		return nil, err
	}
	p := h.newPlugin(found{name: l.spec.Name, scope: Carried, dir: l.dir, origin: o})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		p.cancel()
		return nil, ErrClosed
	}
	h.plugins = append(h.plugins, p)
	return &carried{p, h}, nil
}

// carried is a plugin that the host forgets when it is closed.
type carried struct {
	*Plugin
	host *Host
}

// Close implements [core.Toolset].
func (c *carried) Close() error {
	c.host.mu.Lock()
	c.host.plugins = slices.DeleteFunc(c.host.plugins, func(p *Plugin) bool { return p == c.Plugin })
	c.host.mu.Unlock()
	return c.Plugin.Close()
}

// Close ends all plugins, side by side, and waits for them.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	list := h.plugins
	h.mu.Unlock()
	h.cancel()
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() { errs[i] = p.Close() })
	}
	wg.Wait()
	h.wg.Wait()
	return errors.Join(errs...)
}
