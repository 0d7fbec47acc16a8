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

// Options configure a [Host]. Supervisor is required; the caller closes it after
// the host.
type Options struct {
	Supervisor *proc.Supervisor
	// Home is the agent's directory: plugins are in Home/plugins, their cached
	// descriptions in Home/cache/plugins, their logs in Home/logs/plugins. Empty
	// means no installed plugins, cache and logs.
	Home string
	// Project is the folder of a project's plugins, ./.agent/plugins. Set it only
	// for a trusted project.
	Project string
	// Bundled are the plugins built into the agent. BundledCommand, followed by
	// the plugin's name, serves one of them.
	Bundled        []sdk.Plugin
	BundledCommand []string
	// BundledLimits are those of bundled plugins by name, where Limits are not.
	BundledLimits map[string]Limits
	// Disabled are the names of disabled plugins.
	Disabled []string

	Workspace string // the workspace, $WORKSPACE in manifests
	// Worktrees is the directory of copies of the workspace, in which sessions may work;
	// a plugin that reads the workspace reads it, too. It need not exist.
	Worktrees string
	UserHome  string // the user's home directory, $HOME in manifests
	// Sandbox is how processes are confined to their manifests.
	Sandbox sandbox.Mode
	// Masked are absolute paths that are hidden even in a directory that a manifest
	// grants. The last element may be a pattern of filepath.Match.
	Masked []string
	// Protect adds to the profile of a plugin what must not be read or written in the
	// directories that its manifest grants, such as the settings of git; nil adds nothing.
	Protect func(plugin string, p *sandbox.Profile, read, write []string)
	// Limits bound each plugin whose manifest sets none; those that are 0 are 1 GiB,
	// 512 processes and an hour.
	Limits  Limits
	Environ []string // environment from which plugins get theirs; nil = os.Environ()

	StartTimeout time.Duration // 0 = 10 s
	CallTimeout  time.Duration // of tools that do not set one; 0 = 2 min
	Idle         time.Duration // after which an unused process is stopped; 0 = 5 min, negative = never
	Watch        time.Duration // between checks for changed files; 0 = 1 s, negative = only on calls

	// Secret looks up a secret setting of a plugin, "" if it is not set; nil has none.
	Secret func(plugin, key string) string
	// Sample asks the model of a session for a plugin; nil refuses.
	Sample Sampler

	// Bundles are the installed bundles that are used, and BrokenBundles the errors of
	// others, see [Bundles].
	Bundles       []Installed
	BrokenBundles []error

	Version string // of the agent
	Clock   func() time.Time
	Logger  *slog.Logger
	// Started is called when a plugin's process was started, or could not be; may be nil.
	Started func(plugin string, took time.Duration, err error)
}

// Host runs plugins. It is safe for concurrent use.
type Host struct {
	supervisor   *proc.Supervisor
	cache        cache
	logs         string
	agentHome    string
	workspace    string
	worktrees    string
	home         string
	sandbox      sandbox.Mode
	masked       []string
	limits       Limits
	protect      func(plugin string, p *sandbox.Profile, read, write []string)
	environ      []string
	startTimeout time.Duration
	callTimeout  time.Duration
	idle         time.Duration
	watchEvery   time.Duration
	version      string
	clock        func() time.Time
	settings     settings
	sample       Sampler
	logger       *slog.Logger
	started      func(plugin string, took time.Duration, err error) // may be nil

	ctx    context.Context // done when the host is closed
	cancel context.CancelFunc
	wg     sync.WaitGroup

	files []core.ContextSource // of bundles

	mu      sync.Mutex
	plugins []*Plugin
	broken  []*Error
	lost    []Hook // of plugins that cannot be used
	watched bool
	closed  bool
}

// Open returns a host. It reads the plugin.json of each plugin, and starts none.
func Open(ctx context.Context, o Options) *Host {
	h := &Host{
		supervisor: o.Supervisor, agentHome: o.Home, workspace: o.Workspace, worktrees: o.Worktrees, home: o.UserHome, sandbox: o.Sandbox, masked: o.Masked, environ: o.Environ,
		limits:       o.Limits.or(Limits{MemoryMiB: 1024, Processes: 512, CPUSeconds: 3600}),
		startTimeout: cmp.Or(o.StartTimeout, 10*time.Second), callTimeout: cmp.Or(o.CallTimeout, 2*time.Minute),
		idle: cmp.Or(o.Idle, 5*time.Minute), watchEvery: cmp.Or(o.Watch, time.Second),
		version: o.Version, clock: o.Clock, logger: o.Logger, started: o.Started,
	}
	h.sample = o.Sample
	h.settings = settings{home: o.Home, secret: o.Secret}
	if h.environ == nil {
		h.environ = os.Environ()
	}
	if h.protect = o.Protect; h.protect == nil {
		h.protect = func(string, *sandbox.Profile, []string, []string) {}
	}
	if h.clock == nil {
		h.clock = time.Now
	}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	if o.Home != "" {
		h.cache.dir, h.logs = cacheDir(o.Home), LogDir(o.Home)
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	for _, err := range o.BrokenBundles {
		if e := (*Error)(nil); errors.As(err, &e) && !slices.Contains(o.Disabled, e.Plugin) {
			h.broken = append(h.broken, e)
			if b := (*brokenBundle)(nil); errors.As(err, &b) {
				h.lose(found{name: e.Plugin, hooks: b.hooked}, e)
			}
		}
	}
	for _, b := range o.Bundles {
		if source := b.ContextSource(); source != nil {
			h.files = append(h.files, source)
		}
	}
	for _, f := range find(ctx, o) {
		if slices.Contains(o.Disabled, f.name) {
			continue
		}
		err := f.err
		if err == nil {
			if err = h.add(ctx, f); err != nil {
				h.lose(f, err)
			}
		}
		if err != nil && !slices.ContainsFunc(h.broken, func(e *Error) bool { return e.Plugin == f.name }) {
			h.broken = append(h.broken, &Error{f.name, err})
		}
	}
	return h
}

// cacheDir returns the directory of the cached descriptions.
func cacheDir(home string) string { return filepath.Join(home, "cache", "plugins") }

// LogDir returns the directory of the plugins' logs.
func LogDir(home string) string { return filepath.Join(home, "logs", "plugins") }

// storeDir returns the directory of the installed plugins.
func storeDir(home string) string { return filepath.Join(home, "plugins") }

// store returns the store of the installed plugins: that of a bundle, which has read the
// lock file, if there is one.
func (o *Options) store() *bundle.Store {
	for _, b := range o.Bundles {
		if b.store != nil && b.home == o.Home {
			return b.store
		}
	}
	return bundle.Open(storeDir(o.Home), bundle.Options{})
}

// found is a plugin that find returned.
type found struct {
	name   string
	scope  Scope
	dir    string
	origin origin
	hooks  []string // points that the user approved hooks at
	err    error    // why it cannot be used
}

// find lists the plugins, in the order of the scopes.
func find(ctx context.Context, o Options) []found {
	var list []found
	for _, b := range o.Bundled {
		list = append(list, foundBundled(b, o))
	}
	if o.Home != "" {
		store := o.store()
		entries, err := store.List(ctx)
		if err != nil {
			list = append(list, found{name: filepath.Base(store.LockFile()), scope: User, err: err})
		}
		for _, e := range entries {
			t := termsOf(e)
			if t.NoProgram {
				continue
			}
			list = append(list, found{name: e.Name, scope: User, dir: store.Path(e.Name), origin: &installed{store, e.Name}, hooks: t.Manifest.Hooks})
		}
		links, err := readLinks(o.Home)
		if err != nil {
			list = append(list, found{name: linksFile, scope: Linked, err: err})
		}
		for _, l := range links {
			if !l.program() {
				continue
			}
			f := found{name: l.Name, scope: Linked, dir: l.Dir, origin: &linked{name: l.Name, dir: l.Dir, approved: l.Manifest}}
			if l.Manifest != nil {
				f.hooks = slices.Clone(l.Manifest.Hooks)
			}
			if l.Terms != nil {
				f.hooks = append(f.hooks, l.Terms.Hooked...)
			}
			list = append(list, f)
		}
	}
	if o.Project != "" {
		list = append(list, findProject(o.Project)...)
	}
	for i := range list {
		j := slices.IndexFunc(list[:i], func(f found) bool { return f.name == list[i].name })
		if j >= 0 && list[i].err == nil {
			list[i].err = fmt.Errorf("duplicate name: the %s plugin is used, the %s plugin is ignored", list[j].scope, list[i].scope)
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
		s, _ := ReadSpec(at) // add reports the error
		list = append(list, found{name: e.Name(), scope: Project, dir: at, origin: &project{at}, hooks: s.Manifest.Hooks})
	}
	return list
}

// foundBundled describes a bundled plugin within this process, as its code is
// part of the agent. Its tools run in a separate process, like any other's.
func foundBundled(p sdk.Plugin, o Options) found {
	f := found{name: p.Name, scope: Bundled}
	server, err := sdk.NewServer(p)
	if err != nil {
		f.err = err
		return f
	}
	defer server.Close()
	desc, err := server.Describe(context.Background(), describeRequest(o.Version))
	if err != nil || len(o.BundledCommand) == 0 {
		f.err = errors.Join(err, errors.New("no command to serve it"))
		return f
	}
	m := p.Manifest
	spec := Spec{
		Name: p.Name, Version: p.Version, Protocol: toolproto.Version, Summary: p.Summary,
		Manifest: Manifest{Read: m.Read, Write: m.Write, Network: m.Network, Exec: m.Exec, Env: m.Env, Secrets: m.Secrets, Limits: o.BundledLimits[p.Name]}, Dynamic: p.Dynamic != nil,
	}
	if len(desc.Contexts) > 0 {
		spec.Context = &ContextBudget{MaxTokens: bundledContextTokens}
	}
	argv := append(slices.Clone(o.BundledCommand), p.Name)
	f.dir = filepath.Dir(argv[0])
	f.origin = &builtIn{loaded{spec: spec, dir: f.dir, argv: argv, hash: "bundled-" + p.Name, desc: desc}}
	f.err = checkDescription(&spec, desc)
	return f
}

// bundledContextTokens is the budget of a bundled plugin.
const bundledContextTokens = 2000

// add adds a found plugin, if it can be used.
func (h *Host) add(ctx context.Context, f found) error {
	p := h.newPlugin(f)
	p.mu.Lock()
	err := p.refresh(ctx)
	if err == nil {
		p.log.secrets = append(h.secrets(p.now.spec.Manifest), p.secretSettings()...)
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

// Secrets returns the values of all secrets that plugins get, to be redacted
// wherever their text is shown or stored.
func (h *Host) Secrets() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, p := range h.plugins {
		list = append(list, p.log.secrets...)
	}
	return list
}

// secrets returns the values of a manifest's secrets.
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

// Plugins returns the usable plugins, and starts watching their files.
func (h *Host) Plugins() []*Plugin {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.watched && !h.closed && h.watchEvery > 0 && len(h.plugins) > 0 {
		h.watched = true
		h.wg.Go(h.watch)
	}
	return slices.Clone(h.plugins)
}

// Running reports which of the usable plugins have a process.
func (h *Host) Running() map[string]bool {
	h.mu.Lock()
	list := slices.Clone(h.plugins)
	h.mu.Unlock()
	all := map[string]bool{}
	for _, p := range list {
		p.mu.Lock()
		all[p.name] = p.inst != nil
		p.mu.Unlock()
	}
	return all
}

// Store returns the store of the plugins in the host's home.
func (h *Host) Store() *Store { return openStore(h.agentHome, h.supervisor) }

// Broken returns the errors of the plugins that cannot be used.
func (h *Host) Broken() []*Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.broken)
}

// watch checks for changed files until the host is closed.
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
			_ = p.refresh(h.ctx) // the next call or list reports it
			p.mu.Unlock()
		}
	}
}

// OpenToolset returns the plugin in a single program, such as a toolset of a
// skill, whose SHA-256 in hex must be sum. Its process may only compute and read
// its own folder. It starts with the first call, or with Tools if its
// description is not known yet. The caller closes it.
func (h *Host) OpenToolset(path, sum string) (core.Toolset, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if !sha256Hex().MatchString(strings.ToLower(sum)) {
		return nil, fmt.Errorf("%s: invalid checksum %q: expected a SHA-256 of 64 hex digits", path, sum)
	}
	o := &binary{sandbox.Resolve(path), strings.ToLower(sum)}
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
	p := h.newPlugin(found{name: l.spec.Name, scope: SkillToolset, dir: l.dir, origin: o})
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		p.cancel()
		return nil, ErrClosed
	}
	h.plugins = append(h.plugins, p)
	return &singleProgram{p, h}, nil
}

// singleProgram is a plugin that is removed from the host when it is closed.
type singleProgram struct {
	*Plugin
	host *Host
}

// Close implements [core.Toolset].
func (c *singleProgram) Close() error {
	c.host.mu.Lock()
	c.host.plugins = slices.DeleteFunc(c.host.plugins, func(p *Plugin) bool { return p == c.Plugin })
	c.host.mu.Unlock()
	return c.Plugin.Close()
}

// Close stops all plugins in parallel and waits for them.
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
