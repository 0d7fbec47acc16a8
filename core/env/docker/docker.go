// Package docker is an environment in a container, using the docker command
// line tool or a compatible one such as podman.
//
// The container is either a running one, in which [Env.Close] only ends the
// commands, or a new one, started from an image and removed by Close. A new
// container depends on the tool that started it: if this process is killed, the
// container's standard input ends, and it is removed.
//
// The requirements for the image are those of core/env/posix.
package docker

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/env/posix"
	"github.com/seed-009c0928/agent/core/proc"
)

// Options configure an [Env]: Image or Container must be set.
type Options struct {
	Image     string // start a container of this image
	Container string // use this running container, by name or ID
	// Workspace is a local directory to mount at Dir in a new container,
	// read-write. Empty mounts nothing.
	Workspace string
	// Dir is the working directory in the container. Empty means the absolute
	// path of Workspace ("/workspace" on Windows), or else the container's
	// default.
	Dir     string
	AddDirs []string // further directories of the workspace, in the container
	Home    string   // meaning of ~; empty = HOME in the container
	User    string   // user to run as, as for docker --user; empty = the image's default
	Network string   // of a new container, as for docker --network, such as "none"
	RunArgs []string // further arguments of docker run for a new container

	Command string // the tool; empty = "docker", or "podman" if only that is installed
	// Environ is the environment of the tool, nil = that of this process;
	// secrets are left out. The container does not get it.
	Environ []string
	// Inherit selects how much of the container's environment commands get;
	// PassEnv names variables that are always passed on.
	Inherit proc.Inherit
	PassEnv []string
	// Supervisor starts the tool; its owner closes it. With nil, the
	// environment creates one.
	Supervisor *proc.Supervisor
	// Logger logs protections that could not be set up; nil discards.
	Logger *slog.Logger
}

// Env is an environment in a container. It is safe for concurrent use.
type Env struct {
	*posix.Env
	cli       *posix.CLI
	container string
	mounts    []mount    // read on this machine
	local     *env.Local // for them; nil if there are none

	// Of a new container:
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

// closeTime is the timeout for removing a container.
const closeTime = 20 * time.Second

// detachKeys is what must be typed on a terminal to leave it: nothing that a
// program uses. The default includes ctrl-p, which is kept back for it.
const detachKeys = "ctrl-^,ctrl-_,ctrl-^,ctrl-_"

// New starts a new container, unless Container is set, and returns the
// environment in it. ctx is only for the start, which pulls the image if
// necessary.
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
	inside, err := posix.New(ctx, e.cli.Runner(append(slices.Clip(args), e.container), "--tty", "--detach-keys="+detachKeys), posix.Options{
		Dir: opts.Dir, AddDirs: opts.AddDirs, Home: opts.Home, Inherit: opts.Inherit, PassEnv: opts.PassEnv,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("container %s: %w", e.container, err), e.remove())
	}
	e.Env = inside
	if err := e.findMounts(ctx, args); err != nil && opts.Logger != nil { // it is only slower
		opts.Logger.DebugContext(ctx, "cannot read the container's mounts on this machine", "error", err)
	}
	return e, nil
}

// complete validates the options and fills in defaults.
func (o *Options) complete() error {
	if (o.Image == "") == (o.Container == "") {
		return errors.New("docker: give either an image to start or a running container")
	}
	for _, name := range []string{o.Image, o.Container} {
		if strings.HasPrefix(name, "-") {
			return fmt.Errorf("docker: invalid image or container name %q", name)
		}
	}
	if o.Container != "" && o.Workspace != "" {
		return errors.New("docker: cannot mount a workspace in a running container: set Dir")
	}
	if o.Command == "" {
		o.Command = "docker"
		if _, err := exec.LookPath(o.Command); err != nil {
			if _, err := exec.LookPath("podman"); err == nil {
				o.Command = "podman"
			}
		}
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

// run starts a container that echoes its input, and waits for the first echo,
// which shows that it is running. The container ends when its input ends.
func (e *Env) run(ctx context.Context, opts Options) error {
	e.container = "agent-" + strings.ToLower(rand.Text())
	in, lifeline := io.Pipe()
	out, echo := io.Pipe()
	e.lifeline = closers{lifeline, out}
	stderr := &message{}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = stop
	p, err := e.cli.Start(run, runArgs(e.container, opts), in, echo, stderr)
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
		return fmt.Errorf("%s run: %s%s", opts.Command, stderr.text(), posix.Advice(stderr.text()))
	}
	return nil
}

// runArgs returns the command line that starts a container.
func runArgs(name string, opts Options) []string {
	args := []string{"run", "-i", "--rm", "--init", "--name=" + name, "--entrypoint=cat"}
	if opts.Workspace != "" {
		args = append(args, "--mount="+bindMount(opts.Workspace, opts.Dir))
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

// bindMount returns a bind mount for docker --mount, in CSV because paths may
// contain colons and commas.
func bindMount(from, to string) string {
	field := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	return "type=bind," + field("source="+from) + "," + field("target="+to)
}

// Container returns the name or ID of the container.
func (e *Env) Container() string { return e.container }

// Close implements [core.Environment]. It removes a container that New started.
func (e *Env) Close() error {
	e.close.Do(func() {
		e.closeErr = errors.Join(e.Env.Close(), e.remove())
		if e.local != nil {
			e.closeErr = errors.Join(e.closeErr, e.local.Close())
		}
	})
	return e.closeErr
}

// remove removes the container, if New started it, and closes the tool.
func (e *Env) remove() error {
	if e.lifeline == nil {
		return e.cli.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	e.lifeline.Close()
	// The container ends when its input ends, unless it hangs.
	_, err := e.cli.Output(ctx, "rm", "--force", e.container)
	if e.process != nil {
		detach := context.AfterFunc(ctx, e.stop)
		_, _ = e.process.Wait() // killed or ended, which does not matter
		detach()
	}
	e.stop()
	return errors.Join(ignoreGone(err), e.cli.Close())
}

// ignoreGone drops the error for a container that is already being removed.
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

// closers closes several closers.
type closers []io.Closer

// Close implements io.Closer. Closing a pipe cannot fail.
func (c closers) Close() error {
	for _, one := range c {
		_ = one.Close()
	}
	return nil
}

// message keeps the end of the tool's output.
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
