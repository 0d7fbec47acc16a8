// Package docker is an environment in a container, by way of the docker
// command line tool or one that takes the same arguments, such as podman.
//
// The container is either one that runs already, which [Env.Close] leaves as it
// is but for the commands it started, or a new one of an image, which lives as
// long as the environment. A new one hangs on the tool that started it: should
// this process be killed, its standard input ends, and it is removed.
//
// What the image must have stands with core/env/posix.
package docker

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env/posix"
	"github.com/seed-009c0928/agent/core/proc"
)

// Options configure an [Env]: Image or Container must be set.
type Options struct {
	Image     string // start a container of this image
	Container string // or work in this one, a name or an id
	// Workspace is a directory of this machine that a new container gets at
	// Dir, with all rights. Empty mounts nothing.
	Workspace string
	// Dir is the working directory in the container. Empty means the absolute
	// path of Workspace ("/workspace" if this is Windows), or else the
	// container's own.
	Dir     string
	AddDirs []string // further directories of the workspace, in the container
	Home    string   // what ~ stands for; empty = HOME there
	User    string   // who runs everything, as docker's --user takes it; empty = the image's
	Network string   // of a new container, as docker's --network takes it: "none"
	RunArgs []string // further arguments of docker run for a new container

	Command string // the tool; empty = "docker"
	// Environ is the environment of the tool, nil = that of this process;
	// secrets are left out. The container gets nothing of it.
	Environ []string
	// Inherit says how much of the container's own environment commands get,
	// PassEnv names variables that are passed on in any case.
	Inherit proc.Inherit
	PassEnv []string
	// Supervisor starts the tool. Nil means one of its own; a given one stays
	// its owner's.
	Supervisor *proc.Supervisor
	// Logger is told when a protection could not be set up; nil discards.
	Logger *slog.Logger
}

// Env is an environment in a container. It is safe for concurrent use.
type Env struct {
	*posix.Env
	cli       *posix.CLI
	container string

	// Of a container of our own:
	lifeline io.Closer
	process  *proc.Process
	stop     context.CancelFunc // ends the process
	close    sync.Once
	closeErr error
}

var (
	_ core.Environment = (*Env)(nil)
	_ core.ExactFiler  = (*Env)(nil)
)

// closeTime is how long the removal of a container may take.
const closeTime = 20 * time.Second

// New starts the container, if it is to be a new one, and returns the
// environment in it. ctx is for the start alone, which pulls the image if need
// be.
func New(ctx context.Context, opts Options) (*Env, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	e := &Env{container: opts.Container}
	e.cli = posix.NewCLI(posix.CLIOptions{
		Command: opts.Command, Environ: opts.Environ, Supervisor: opts.Supervisor, Logger: opts.Logger,
	})
	if opts.Image != "" {
		if err := e.run(ctx, opts); err != nil {
			return nil, errors.Join(fmt.Errorf("start a container of %s: %w", opts.Image, err), e.remove())
		}
	}
	args := []string{"exec", "-i"}
	if opts.User != "" {
		args = append(args, "--user="+opts.User)
	}
	inside, err := posix.New(ctx, e.cli.Runner(append(args, e.container)...), posix.Options{
		Dir: opts.Dir, AddDirs: opts.AddDirs, Home: opts.Home, Inherit: opts.Inherit, PassEnv: opts.PassEnv,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("container %s: %w", e.container, err), e.remove())
	}
	e.Env = inside
	return e, nil
}

// complete checks the options and fills in what is left open.
func (o *Options) complete() error {
	if (o.Image == "") == (o.Container == "") {
		return errors.New("docker: give either an image to start or a container that runs")
	}
	for _, name := range []string{o.Image, o.Container} {
		if strings.HasPrefix(name, "-") {
			return fmt.Errorf("docker: %q is no name of an image or a container", name)
		}
	}
	if o.Container != "" && o.Workspace != "" {
		return errors.New("docker: a container that runs cannot get a workspace mounted: give its Dir")
	}
	if o.Command == "" {
		o.Command = "docker"
	}
	if o.Workspace == "" {
		return nil
	}
	workspace, err := filepath.Abs(o.Workspace)
	if err == nil {
		workspace, err = filepath.EvalSymlinks(workspace)
	}
	if err != nil {
		return fmt.Errorf("docker: workspace: %w", err)
	}
	o.Workspace = workspace
	if o.Dir == "" {
		o.Dir = workspace
		if runtime.GOOS == "windows" {
			o.Dir = "/workspace"
		}
	}
	return nil
}

// run starts a container that echoes its input, and waits for the first echo:
// then it is there. It ends with its input.
func (e *Env) run(ctx context.Context, opts Options) error {
	e.container = "agent-" + strings.ToLower(rand.Text())
	in, lifeline := io.Pipe()
	out, echo := io.Pipe()
	e.lifeline = closers{lifeline, out}
	said := &message{}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = stop
	p, err := e.cli.Start(run, runArgs(e.container, opts), in, echo, said)
	if err != nil {
		return err
	}
	e.process = p
	detach := context.AfterFunc(ctx, func() {
		e.lifeline.Close()
		stop()
	})
	defer detach()
	ended := make(chan struct{})
	go func() { // remove ends the process
		defer close(ended)
		_, _ = p.Wait()
		echo.Close()
		in.Close()
	}()
	if _, err = io.WriteString(lifeline, "up\n"); err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		<-ended
		return fmt.Errorf("%s run: %s", opts.Command, said.text())
	}
	return nil
}

// runArgs is the command line that starts a container.
func runArgs(name string, opts Options) []string {
	args := []string{"run", "-i", "--rm", "--init", "--name=" + name, "--entrypoint=cat"}
	if opts.Workspace != "" {
		args = append(args, "--mount="+mount(opts.Workspace, opts.Dir))
	}
	if opts.Dir != "" {
		args = append(args, "--workdir="+opts.Dir)
	}
	if opts.User != "" {
		args = append(args, "--user="+opts.User)
	}
	if opts.Network != "" {
		args = append(args, "--network="+opts.Network)
	}
	return slices.Concat(args, opts.RunArgs, []string{opts.Image})
}

// mount is a bind mount as docker's --mount takes it, a record of CSV: paths
// may have colons and commas.
func mount(from, to string) string {
	field := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	return "type=bind," + field("source="+from) + "," + field("target="+to)
}

// Container returns the name or id of the container.
func (e *Env) Container() string { return e.container }

// Close implements [core.Environment]. A container that New started is removed.
func (e *Env) Close() error {
	e.close.Do(func() { e.closeErr = errors.Join(e.Env.Close(), e.remove()) })
	return e.closeErr
}

// remove removes the container, if it is ours, and closes the tool.
func (e *Env) remove() error {
	if e.lifeline == nil {
		return e.cli.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	e.lifeline.Close()
	// Without its input the container is going by itself, unless it hangs.
	_, err := e.cli.Output(ctx, "rm", "--force", e.container)
	if e.process != nil {
		detach := context.AfterFunc(ctx, e.stop)
		_, _ = e.process.Wait() // it was killed or ended: that is all there is to know
		detach()
	}
	e.stop()
	return errors.Join(ignoreGone(err), e.cli.Close())
}

// ignoreGone takes the error away that says that somebody else is at it.
func ignoreGone(err error) error {
	if err == nil {
		return nil
	}
	for _, gone := range []string{"No such container", "already in progress", "no such container"} {
		if strings.Contains(err.Error(), gone) {
			return nil
		}
	}
	return fmt.Errorf("remove the container: %w", err)
}

// closers closes several.
type closers []io.Closer

// Close implements io.Closer. Closing a pipe never fails.
func (c closers) Close() error {
	for _, one := range c {
		_ = one.Close()
	}
	return nil
}

// message keeps the last part of what the tool says.
type message struct {
	mu   sync.Mutex
	data []byte
}

const messageSize = 2000

// Write implements io.Writer.
func (m *message) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = append(m.data, p...)
	m.data = m.data[max(0, len(m.data)-messageSize):]
	return len(p), nil
}

func (m *message) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.TrimSpace(string(m.data))
}
