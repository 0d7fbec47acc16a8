package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// Runner starts and waits for the process of a probe.
type Runner interface {
	Start(cmd *exec.Cmd) error
	Wait(cmd *exec.Cmd)
}

// Kit confines processes for a proc.Supervisor, which owns it. It tries each
// level once and remembers what came of it. It is safe for concurrent use.
type Kit struct {
	runner Runner
	logger *slog.Logger

	mu     sync.Mutex
	probed map[Level]Status
	warned bool
	stands map[string]int // what stands for missing paths, and for how many processes
}

// NewKit returns a kit. The logger is told when a process runs without a
// sandbox because none works.
func NewKit(runner Runner, logger *slog.Logger) *Kit {
	return &Kit{runner: runner, logger: logger, probed: map[Level]Status{}, stands: map[string]int{}}
}

// Levels says which levels work here, the best one first. Those that belong to
// another system are left out.
func (k *Kit) Levels(ctx context.Context) []Status {
	var all []Status
	for _, level := range levelsHere {
		all = append(all, k.Status(ctx, level))
	}
	return all
}

// LevelsHere returns the levels that belong to this system, the best one first.
func LevelsHere() []Level { return slices.Clone(levelsHere) }

// Choose returns the level that a mode comes to here. None without an error
// means that the mode does without.
func (k *Kit) Choose(ctx context.Context, mode Mode) (Level, error) {
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
		s := k.Status(ctx, level)
		if s.Works {
			return level, nil
		}
		errs = append(errs, fmt.Errorf("%s: %s", level, s.Reason))
	}
	if err := ctx.Err(); err != nil {
		return None, err
	}
	if mode == "" || mode == ModeAuto {
		k.warn(errs)
		return None, nil
	}
	if len(errs) == 0 {
		errs = []error{errors.New(noLevels)}
	}
	return None, fmt.Errorf("%w (mode %s): %w", ErrUnavailable, mode, errors.Join(errs...))
}

// warn says once that processes run without a sandbox.
func (k *Kit) warn(reasons []error) {
	k.mu.Lock()
	first := !k.warned
	k.warned = true
	k.mu.Unlock()
	if first {
		k.logger.Warn("no sandbox works here: commands run without", "reasons", errors.Join(reasons...))
	}
}

// Status says whether a level works here. It is tried the first time that it is
// asked about, which takes some milliseconds.
func (k *Kit) Status(ctx context.Context, level Level) Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, ok := k.probed[level]; ok {
		return s
	}
	s := Status{Level: level}
	if !slices.Contains(levelsHere, level) {
		s.Reason = "it belongs to another operating system"
		return s
	}
	if err := ctx.Err(); err != nil {
		s.Reason = err.Error() // nothing is known
		return s
	}
	s.Works, s.Reason = k.probe(level)
	k.probed[level] = s
	return s
}

// Prepare rewrites a command, so that it is confined when it is started. The
// cell is nil if the profile comes to no sandbox. After the start, [Cell.Enter]
// is called; whatever happens, [Cell.Close] is called at the end.
func (k *Kit) Prepare(ctx context.Context, p *Profile, cmd *exec.Cmd) (*Cell, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	level, err := k.Choose(ctx, p.Mode)
	if err != nil || level == None {
		return nil, err
	}
	return k.confine(level, p, cmd)
}

// confine rewrites a command for a level that works.
func (k *Kit) confine(level Level, p *Profile, cmd *exec.Cmd) (*Cell, error) {
	c := &Cell{Level: level, kit: k}
	if err := c.build(p, cmd); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// stand puts an empty directory where a pinned one is missing, until the last
// process that it is for has ended.
func (k *Kit) stand(p pin) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stands[p.path] == 0 {
		if err := os.Mkdir(p.path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("sandbox: hold the place of %s: %w", p.path, err)
		}
	}
	k.stands[p.path]++
	return nil
}

// unstand takes away what stand put there. Somebody may have filled it from
// outside: then it stays.
func (k *Kit) unstand(p pin) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stands[p.path]--; k.stands[p.path] > 0 {
		return
	}
	delete(k.stands, p.path)
	_ = os.Remove(p.path) // what is not empty stays
}

// aside gives what was made at a path that was to stay missing another name,
// under which nobody looks for it. Removing it could hit what somebody made
// there from outside.
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
		return "", false // all is well
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

// Cell is the sandbox of one process.
type Cell struct {
	Level Level

	kit    *Kit
	helper bool // the process is the helper as long as the command runs
	token  string
	conn   *net.UnixConn // to the helper, while there is one
	theirs []*os.File    // what the process gets, closed once it has it
	stands []pin
	absent []pin    // what must not be there at the end
	aside  []string // what was, by its new name
	tmp    string   // a directory to be removed
	proxy  *proxy
	net    Network

	work    func() (*plan, error) // works out what the helper does
	plan    *plan                 // that, once it is known
	program string
	drop    []string // variables that are the helper's only
}

// Ended is how a command ended.
type Ended struct {
	Code   int    // -1 when a signal ended it
	Signal string // such as "SIGKILL"
	Others bool   // processes that it started still run; Close ends them
}

// cacheEnv are the variables that lead caches, where they cannot be layered, to
// a directory of the process's own.
func cacheEnv(p *Profile, tmp string) []string {
	if len(p.Scratch) == 0 {
		return nil
	}
	return []string{
		"XDG_CACHE_HOME=" + tmp + "/cache", "GOCACHE=" + tmp + "/cache/go-build", "npm_config_cache=" + tmp + "/cache/npm", "PIP_CACHE_DIR=" + tmp + "/cache/pip",
	}
}

// newToken returns what tells the helper that it is meant.
func newToken() string { return rand.Text() }

// Helper reports whether the process that was started is the cell's helper,
// the parent of the command; its end is then told by [Cell.Wait].
func (c *Cell) Helper() bool { return c != nil && c.helper }

// Close ends what is left in the cell and removes what was made for it. It can
// be called again, and of a nil cell.
func (c *Cell) Close() error {
	if c == nil {
		return nil
	}
	c.started()
	if c.conn != nil {
		c.conn.Close()
	}
	var err error
	if c.proxy != nil {
		err = c.proxy.Close()
		c.proxy = nil
	}
	return err
}

// Remove removes what was made on disk for the cell, once its processes are
// gone. It can be called again, and of a nil cell.
func (c *Cell) Remove() {
	if c == nil {
		return
	}
	for _, p := range c.stands {
		c.kit.unstand(p)
	}
	for _, p := range c.absent {
		if name, done := aside(p); done {
			c.aside = append(c.aside, name)
		}
	}
	c.stands, c.absent = nil, nil
	if c.tmp != "" {
		_ = os.RemoveAll(c.tmp) // what a command locked up stays in the temporary directory
		c.tmp = ""
	}
}

// Aside returns what was found, after [Cell.Remove], at paths that were to
// stay missing, by the names that it has now.
func (c *Cell) Aside() []string {
	if c == nil {
		return nil
	}
	return c.aside
}

// started closes what the process has now.
func (c *Cell) started() {
	for _, f := range c.theirs {
		f.Close()
	}
	c.theirs = nil
}
