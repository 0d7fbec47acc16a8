package posix

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc"
)

// ErrClosed is returned by Start after Close, and by Wait for a command that
// Close ended.
var ErrClosed = errors.New("the environment is closed")

// Options configure an [Env]. The zero value works in the directory in which the
// runner starts programs.
type Options struct {
	Dir     string   // working directory in the userland; empty = the runner's
	AddDirs []string // further directories of the workspace, relative to Dir
	Home    string   // meaning of ~; empty = HOME in the userland
	// Inherit selects how much of the userland's environment commands get;
	// PassEnv names variables that are always passed on.
	Inherit proc.Inherit
	PassEnv []string
}

// Env is an environment in a POSIX userland.
type Env struct {
	runner Runner
	info   core.EnvInfo
	shell  []string // start of the command line of a script
	unset  []string // variables that commands do not get
	token  string   // prefix of the marker of every command

	started atomic.Int64 // numbers the commands
	mu      sync.Mutex
	closed  bool
	open    map[closer]struct{} // ended by Close
	running sync.WaitGroup
}

// closer is something that Close must end: a command or an open file.
type closer interface{ end() }

var (
	_ core.Environment = (*Env)(nil)
	_ core.ExactFiler  = (*Env)(nil)
)

// New probes the userland of the runner and returns its environment. The
// directories of the workspace must exist there. The runner must work until
// Close has returned; its owner closes it.
func New(ctx context.Context, runner Runner, opts Options) (*Env, error) {
	e := &Env{runner: runner, token: rand.Text(), open: map[closer]struct{}{}}
	out, err := e.script(ctx, probeScript, nil, append([]string{opts.Dir}, opts.AddDirs...)...)
	if err != nil {
		return nil, fmt.Errorf("look at the environment's userland: %w", err)
	}
	if err := e.describe(out, opts); err != nil {
		return nil, fmt.Errorf("look at the environment's userland: %w", err)
	}
	return e, nil
}

// describe parses the output of the probe.
func (e *Env) describe(out []byte, opts Options) error {
	lines := bytes.SplitN(out, []byte("\n"), 4)
	if len(lines) < 4 {
		return errors.New("truncated output")
	}
	e.info.OS, e.info.OSVersion, e.info.Shell = strings.ToLower(string(lines[0])), string(lines[1]), string(lines[2])
	if e.info.OS != "linux" {
		return fmt.Errorf("its system is %s: Linux is required for files", e.info.OS)
	}
	e.shell = []string{"/bin/" + e.info.Shell, "-c"}
	fields, rest, ok := bytes.Cut(lines[3], []byte("\x00\x00"))
	home, dirs, ok2 := strings.Cut(string(fields), "\x00")
	ends := bytes.LastIndexByte(rest, 0)
	if !ok || !ok2 || dirs == "" || ends < 0 {
		return errors.New("the output has no directory")
	}
	e.info.Ignore = string(rest[:ends])
	environ := rest[ends+1:]
	e.info.Home = home
	if opts.Home != "" {
		e.info.Home = opts.Home
	}
	for dir := range strings.SplitSeq(dirs, "\x00") {
		if !slices.Contains(e.info.Roots, dir) {
			e.info.Roots = append(e.info.Roots, dir)
		}
	}
	e.info.Dir = e.info.Roots[0]
	e.unset = withheld(string(environ), opts)
	return nil
}

// withheld returns the names of the variables that commands do not get. A line of
// a value may be mistaken for a variable, which is harmless.
func withheld(environ string, opts Options) []string {
	var names []string
	for line := range strings.SplitSeq(environ, "\n") {
		name, _, ok := strings.Cut(line, "=")
		if ok && isName(name) && len(proc.FilterEnv([]string{line}, opts.Inherit, opts.PassEnv...)) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// isName reports whether a name is valid for a shell variable.
func isName(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// Info implements [core.Environment].
func (e *Env) Info() core.EnvInfo {
	info := e.info
	info.Roots = slices.Clone(info.Roots)
	return info
}

// Resolve implements [core.Environment]. "~" and "~/" mean the home directory;
// the empty path is the working directory.
func (e *Env) Resolve(ctx context.Context, name string) (core.Resolved, error) {
	abs, err := e.abs(name)
	if err != nil {
		return core.Resolved{}, err
	}
	out, err := e.script(ctx, resolveScript, nil, abs)
	if err != nil {
		return core.Resolved{}, pathError("resolve", name, err)
	}
	to := strings.TrimSuffix(string(out), "\x00")
	return core.Resolved{Path: to, Inside: e.inside(to)}, nil
}

// inside reports whether a resolved path is in the workspace.
func (e *Env) inside(to string) bool {
	return slices.ContainsFunc(e.info.Roots, func(root string) bool {
		return to == root || strings.HasPrefix(to, strings.TrimSuffix(root, "/")+"/")
	})
}

// abs makes a path absolute, but does not clean it.
func (e *Env) abs(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", &fs.PathError{Op: "resolve", Path: name, Err: fmt.Errorf("a path cannot contain a NUL byte: %w", fs.ErrInvalid)}
	}
	rest, home := strings.CutPrefix(name, "~")
	switch {
	case home && (rest == "" || rest[0] == '/'):
		if e.info.Home == "" {
			return "", &fs.PathError{Op: "resolve", Path: name, Err: errors.New("no home directory: give an absolute path")}
		}
		return e.info.Home + rest, nil
	case path.IsAbs(name):
		return name, nil
	default:
		return e.info.Dir + "/" + name, nil
	}
}

// Close implements [core.Environment]: it ends all commands and the processes
// they left running, closes the open files and waits for all of them. It may be
// called again.
func (e *Env) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		e.running.Wait()
		return nil
	}
	e.closed = true
	var last []closer
	for c := range e.open {
		last = append(last, c)
	}
	e.mu.Unlock()
	for _, c := range last {
		c.end()
	}
	e.running.Wait()
	if e.started.Load() == 0 {
		return nil
	}
	// Processes that detached themselves from a command still have the token.
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if _, err := e.endProcesses(ctx, target{token: e.token, group: "-", witness: "-"}); err != nil {
		return fmt.Errorf("end processes that commands left running: %w", err)
	}
	return nil
}

// begin registers something that Close must end and wait for.
func (e *Env) begin(c closer) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.open[c] = struct{}{}
	e.running.Add(1)
	return nil
}

// retire removes it again.
func (e *Env) retire(c closer) {
	e.mu.Lock()
	delete(e.open, c)
	e.mu.Unlock()
	e.running.Done()
}
