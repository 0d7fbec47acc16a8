package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Runner starts processes of the sandbox and waits for them.
type Runner interface {
	// Start calls start, which starts cmd, on a thread that does not end before this
	// process: the child may ask to be killed with it.
	Start(cmd *exec.Cmd, start func() error) error
	Wait(cmd *exec.Cmd)
}

// Manager confines processes for a proc.Supervisor, which owns it. It probes each
// level once and remembers the result. It is safe for concurrent use.
type Manager struct {
	runner Runner
	logger *slog.Logger
	server forkServer

	mu     sync.Mutex
	probed map[Level]Status
	warned bool
}

// NewManager returns a Manager. The logger warns if processes run without a sandbox
// because no level works.
func NewManager(runner Runner, logger *slog.Logger) *Manager {
	return &Manager{runner: runner, logger: logger, server: forkServer{runner: runner}, probed: map[Level]Status{}}
}

// Close ends what confined commands were started with, after the last one.
func (m *Manager) Close() { m.server.close() }

// SystemLevels returns the levels of this system, the best one first.
func SystemLevels() []Level { return slices.Clone(levelsHere) }

// Choose returns the level for a mode on this machine. None without an error
// means that the mode allows running without a sandbox.
func (m *Manager) Choose(ctx context.Context, mode Mode) (Level, error) {
	var wanted []Level
	switch mode {
	case ModeOff:
		return None, nil
	case ModeNamespace:
		wanted = []Level{Namespace}
	case ModeLandlock:
		wanted = []Level{Landlock}
	case "", ModeAuto, ModeRequire:
		wanted = levelsHere
	default:
		return None, fmt.Errorf("unknown sandbox mode %q: use auto, require, namespace, landlock or off", mode)
	}
	var errs []error
	for _, level := range wanted {
		s := m.Status(ctx, level)
		if s.Works {
			return level, nil
		}
		errs = append(errs, fmt.Errorf("%s: %s", level, s.Reason))
	}
	if err := ctx.Err(); err != nil {
		return None, err
	}
	if mode == "" || mode == ModeAuto {
		m.warn(errs)
		return None, nil
	}
	if len(errs) == 0 {
		errs = []error{errors.New(noLevels)}
	}
	return None, fmt.Errorf("%w (mode %s): %w", ErrUnavailable, mode, errors.Join(errs...))
}

// warn warns once that processes run without a sandbox.
func (m *Manager) warn(reasons []error) {
	m.mu.Lock()
	first := !m.warned
	m.warned = true
	m.mu.Unlock()
	if first {
		m.logger.Warn("no sandbox level works on this machine: commands run without a sandbox", "reasons", errors.Join(reasons...))
	}
}

// Status returns whether a level works on this machine. The first call probes it,
// which takes some milliseconds.
func (m *Manager) Status(ctx context.Context, level Level) Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.probed[level]; ok {
		return s
	}
	s := Status{Level: level}
	if !slices.Contains(levelsHere, level) {
		s.Reason = "it is for another operating system"
		return s
	}
	if err := ctx.Err(); err != nil {
		s.Reason = err.Error() // unknown whether it works
		return s
	}
	s.Works, s.Reason = m.probe(level)
	m.probed[level] = s
	return s
}

// Prepare prepares the start of a confined command. The Confinement is nil if the
// profile allows running without a sandbox. The caller must call [Confinement.Start]
// instead of the command's, then [Confinement.Enter], and [Confinement.Close] at the
// end in any case.
func (m *Manager) Prepare(ctx context.Context, p *Profile, cmd *exec.Cmd) (*Confinement, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	level, err := m.Choose(ctx, p.Mode)
	if err != nil || level == None {
		return nil, err
	}
	return m.confine(level, p, cmd)
}

// confine rewrites a command for a working level.
func (m *Manager) confine(level Level, p *Profile, cmd *exec.Cmd) (*Confinement, error) {
	c := &Confinement{Level: level, manager: m, cmd: cmd}
	if err := c.build(p, cmd); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// aside renames what was created at a path that should have stayed missing, so
// that it has no effect. It is not removed, because it could have been created
// outside the sandbox.
func aside(p pin) (name string, done bool) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return "", false
	}
	defer root.Close()
	rel, err := filepath.Rel(p.root, p.path)
	if err != nil {
		return "", false
	}
	if _, err := root.Lstat(rel); err != nil {
		return "", false // still missing
	}
	for i := range 100 {
		to := rel + AsideSuffix
		if i > 0 {
			to = fmt.Sprintf("%s%s-%d", rel, AsideSuffix, i)
		}
		if _, err := root.Lstat(to); err == nil {
			continue
		}
		if root.Rename(rel, to) == nil {
			return filepath.Join(p.root, to), true
		}
	}
	return "", false
}

// Confinement is the sandbox of one process.
type Confinement struct {
	Level Level

	manager *Manager
	helper  bool          // the process is the helper, which runs as long as the command
	conn    *net.UnixConn // to the helper, if there is one
	rules   *os.File      // of level Landlock, or nil
	stands  []*placeholder
	absent  []pin    // must be missing at the end
	aside   []string // new names of those that were not
	tmp     *TempDir // may be nil
	proxy   *proxy
	broker  *broker // may be nil
	net     Network

	work    func() (*plan, error) // computes the helper's plan
	plan    *plan                 // the result
	from    *forker               // forks the helper; nil without helpers
	held    bool                  // from is a holder, to be released
	vacant  atomic.Bool           // no process is left in the holder's namespaces
	flags   uintptr               // of the helper's namespaces
	locks   []byte                // the limit of file locks, or nil
	program string

	cmd   *exec.Cmd
	group string // the control group, or ""
}

// Ended is how a command ended.
type Ended struct {
	Code   int    // -1 when a signal ended it
	Signal string // such as "SIGKILL"
	Others bool   // processes that it started are still running; Close ends them
}

// cacheVariables move caches: the directory in the home directory, and the variables
// with their values below another one.
var cacheVariables = []struct {
	dir       string
	variables []string
}{
	{".cache", []string{"XDG_CACHE_HOME=", "GOCACHE=/go-build", "PIP_CACHE_DIR=/pip", "UV_CACHE_DIR=/uv"}},
	{"go/pkg", []string{"GOMODCACHE=/go-mod"}},
	{".npm", []string{"npm_config_cache=/npm"}},
}

// cacheEnv returns the variables that move caches that cannot be layered to the
// process's own directory: all of them, or those that are missing. What is in set
// is kept.
func cacheEnv(p *Profile, tmp string, all bool, set []string) (env []string) {
	for _, c := range cacheVariables {
		moved := slices.ContainsFunc(p.Scratch, func(path string) bool {
			if !strings.HasSuffix(filepath.ToSlash(path), "/"+c.dir) {
				return false
			}
			_, err := os.Stat(path)
			return all || err != nil || slices.ContainsFunc(p.Masked, func(m string) bool { return Below(m, path) })
		})
		if !moved {
			continue
		}
		if c.dir == "go/pkg" && all {
			env = append(env, goProxy(p, set)...)
		}
		for _, v := range c.variables {
			name, at, _ := strings.Cut(v, "=")
			if !slices.ContainsFunc(set, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
				env = append(env, name+"="+tmp+"/cache"+at)
			}
		}
	}
	return env
}

// goProxy makes Go find the modules of a cache that it cannot write.
func goProxy(p *Profile, set []string) []string {
	for _, path := range p.Scratch {
		home, ok := strings.CutSuffix(filepath.ToSlash(path), "/go/pkg")
		modules := filepath.Join(path, "mod", "cache", "download")
		if _, err := os.Stat(modules); !ok || err != nil {
			continue
		}
		settings, _ := os.ReadFile(filepath.Join(home, ".config", "go", "env")) // may be missing
		proxy := "https://proxy.golang.org,direct"
		for entry := range strings.Lines(string(settings) + "\n" + strings.Join(set, "\n")) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(entry), "GOPROXY="); ok && value != "" {
				proxy = value
			}
		}
		return []string{"GOPROXY=file://" + filepath.ToSlash(modules) + "," + proxy}
	}
	return nil
}

// newToken returns the token by which the fork server is recognized.
func newToken() string { return rand.Text() }

// Helper reports whether the started process is the helper, the parent of the
// command; [Confinement.Wait] then reports the end of the command.
func (c *Confinement) Helper() bool { return c != nil && c.helper }

// Close ends the remaining processes in the sandbox and removes what was created
// for it. It may be called again, and on a nil Confinement.
func (c *Confinement) Close() error {
	if c == nil {
		return nil
	}
	if c.rules != nil {
		c.rules.Close()
	}
	if c.conn != nil {
		c.conn.Close()
	}
	c.broker.close()
	var err error
	if c.proxy != nil {
		err = c.proxy.Close()
		c.proxy = nil
	}
	if c.held {
		c.manager.server.release(c.from, c.vacant.Load())
		c.held = false
	}
	return err
}

// Remove removes the files created for the sandbox, once its processes have
// ended. It may be called again, and on a nil Confinement.
func (c *Confinement) Remove() {
	if c == nil {
		return
	}
	for _, p := range c.stands {
		p.release()
	}
	for _, p := range c.absent {
		if name, done := aside(p); done {
			c.aside = append(c.aside, name)
		}
	}
	c.stands, c.absent = nil, nil
	_ = c.tmp.Remove() // the next agent tries again
	c.tmp = nil
	if c.group != "" {
		removeGroup(c.group)
		c.group = ""
	}
}

// Aside returns, after [Confinement.Remove], the new names of files that were created at
// paths that should have stayed missing.
func (c *Confinement) Aside() []string {
	if c == nil {
		return nil
	}
	return c.aside
}
