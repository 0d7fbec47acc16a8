package env

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env/internal/notes"
	"github.com/seed-009c0928/agent/core/proc"
)

// LocalOptions configure a [Local]. The zero value works in the directory of
// this process and passes on its environment variables except secrets.
type LocalOptions struct {
	Dir     string   // working directory; empty = that of this process
	AddDirs []string // further directories of the workspace, relative to Dir
	Home    string   // meaning of ~; empty = the user's home directory
	// Environ is the environment that commands inherit from, nil = that of
	// this process; Inherit selects how much of it. PassEnv names variables
	// that are always passed on, even secrets.
	Environ []string
	Inherit proc.Inherit
	PassEnv []string
	// Supervisor starts the commands; its owner closes it. With nil, the Local
	// creates one and closes it.
	Supervisor *proc.Supervisor
	// Sandbox confines the commands of sessions; nil means no sandbox.
	Sandbox *Sandbox
	// Logger logs protections that could not be set up; nil discards.
	Logger *slog.Logger
}

// Local is the local machine. Files are opened as they were resolved: a symbolic
// link inserted meanwhile is refused, not followed. This applies within an
// operation; to keep it from resolving a path to a later operation, use
// ExactFiles.
type Local struct {
	info       core.EnvInfo
	shell      []string // start of the command line of a script
	environ    []string // for commands, filtered
	withheld   []string // names of filtered variables
	supervisor *proc.Supervisor
	owned      bool     // close the supervisor
	sandbox    *Sandbox // may be nil
	masked     func() *places
	listings   func() *listings
	tmp        tmpDir // for confined commands
	sweeping   sync.WaitGroup
}

var (
	_ core.Environment = (*Local)(nil)
	_ core.ExactFiler  = (*Local)(nil)
)

// NewLocal returns the local environment. The directories of the workspace must
// exist.
func NewLocal(opts LocalOptions) (*Local, error) {
	l := &Local{supervisor: opts.Supervisor, sandbox: opts.Sandbox}
	if err := opts.Sandbox.check(); err != nil {
		return nil, err
	}
	if err := l.findWorkspace(opts.Dir, opts.AddDirs); err != nil {
		return nil, err
	}
	environ := opts.Environ
	if environ == nil {
		environ = os.Environ()
	}
	l.environ = proc.FilterEnv(environ, opts.Inherit, opts.PassEnv...)
	l.withheld = withheld(environ, l.environ)
	l.info.OS, l.info.OSVersion = runtime.GOOS, osVersion()
	l.info.Home = opts.Home
	if l.info.Home == "" {
		l.info.Home, _ = os.UserHomeDir() // without one, ~ is an error of Resolve
	}
	l.info.Ignore = globalIgnore(l.info.Home, variable(environ, "XDG_CONFIG_HOME"), l.info.Dir)
	l.info.Shell, l.shell = shell()
	if l.supervisor == nil {
		l.supervisor = proc.NewSupervisor(proc.Options{Logger: opts.Logger})
		l.owned = true
	}
	if l.sandbox != nil {
		l.masked = sync.OnceValue(func() *places { return newPlaces(l.sandbox.Masked) })
		l.listings = sync.OnceValue(func() *listings { return newListings(newNames(l.sandbox.ReadOnly), l.sandbox.Sensitive) })
		l.sweeping.Go(l.sweep)
	}
	return l, nil
}

// variable returns the value of a variable; the last one counts.
func variable(environ []string, name string) (value string) {
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// findWorkspace resolves the directories of the workspace.
func (l *Local) findWorkspace(dir string, add []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	for _, name := range append([]string{dir}, add...) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		path, err := resolve(name)
		if err != nil {
			return fmt.Errorf("workspace directory: %w", err)
		}
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			err = pathError("open", path, syscall.ENOTDIR)
		}
		if err != nil {
			return fmt.Errorf("workspace directory: %w", err)
		}
		if !slices.Contains(l.info.Roots, path) {
			l.info.Roots = append(l.info.Roots, path)
		}
	}
	l.info.Dir = l.info.Roots[0]
	return nil
}

// Withheld returns the names of the variables that commands do not get, such as
// secrets, sorted.
func (l *Local) Withheld() []string { return slices.Clone(l.withheld) }

// withheld returns the names in environ that are missing from kept, which has
// the same order.
func withheld(environ, kept []string) []string {
	var names []string
	for _, entry := range environ {
		if len(kept) > 0 && kept[0] == entry {
			kept = kept[1:]
		} else if name, _, ok := strings.Cut(entry, "="); ok && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Files implements [core.Environment].
func (l *Local) Files() core.FS { return &localFS{local: l} }

// ExactFiles implements [core.ExactFiler].
func (l *Local) ExactFiles() core.FS { return &localFS{local: l, exact: true} }

// Info implements [core.Environment].
func (l *Local) Info() core.EnvInfo {
	info := l.info
	info.Roots = slices.Clone(info.Roots)
	return info
}

// Close implements [core.Environment]. If it created the supervisor, it ends all
// commands and the processes they left running.
func (l *Local) Close() error {
	l.sweeping.Wait()
	var err error
	if l.owned {
		err = l.supervisor.Close()
	}
	return errors.Join(err, l.tmp.remove())
}

// Start implements [core.Environment].
func (l *Local) Start(ctx context.Context, cmd core.Command) (core.Process, error) {
	return l.start(ctx, cmd, "")
}

// start starts a command, whose changes go to a layer in try if that is not empty.
func (l *Local) start(ctx context.Context, cmd core.Command, try string) (core.Process, error) {
	if err := checkCommand(cmd); err != nil {
		return nil, err
	}
	dir, err := l.Resolve(ctx, cmd.Dir)
	if err != nil {
		return nil, err
	}
	argv := cmd.Argv
	if cmd.Script != "" {
		argv = append(slices.Clone(l.shell), cmd.Script)
	}
	environ := l.environ
	if cmd.Minimal {
		environ = proc.FilterEnv(environ, proc.InheritCore)
	}
	note := notes.WatchWithheld(l.withheld, &cmd)
	spec := proc.Spec{
		Path:   argv[0],
		Args:   argv[1:],
		Dir:    dir.Path,
		Env:    slices.Concat(environ, []string{"PWD=" + dir.Path}, cmd.Env),
		Stdin:  cmd.Stdin,
		Stdout: cmd.Stdout,
		Stderr: cmd.Stderr,

		Terminal:  cmd.Terminal,
		Rows:      cmd.Rows,
		Cols:      cmd.Cols,
		Interrupt: cmd.Interrupt,
	}
	c, err := l.confine(ctx, &cmd, &spec, try)
	if err != nil {
		return nil, err
	}
	p, err := l.supervisor.Start(ctx, spec)
	if errors.Is(err, syscall.E2BIG) {
		return nil, fmt.Errorf("the command is too long for this system: write it to a file and run the file: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return localProcess{p, c, note}, nil
}

type localProcess struct {
	*proc.Process
	confined *confined
	withheld *notes.Withheld
}

// Wait implements [core.Process].
func (p localProcess) Wait() (core.Exit, error) {
	exit, err := p.Process.Wait()
	ended := core.Exit{Code: exit.Code, Signal: exit.Signal, Duration: exit.Duration, Left: exit.Left, Sandbox: p.Sandbox().String()}
	p.confined.explain(p.Sandbox(), ended, p.Aside())
	if err == nil {
		p.withheld.Explain(ended)
	}
	return ended, err
}
