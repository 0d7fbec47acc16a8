//go:build unix

package docker_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env/docker"
	"github.com/seed-009c0928/agent/core/env/envtest"
)

func TestMain(m *testing.M) {
	envtest.Tool()
	goleak.VerifyTestMain(m)
}

// nobody is an unprivileged user, which a test run as root switches to.
const nobody = 65534

// daemon is a fake Docker daemon: containers are mere names and share this
// machine.
type daemon struct {
	envtest.Engine
	mu         sync.Mutex
	containers []string
	ran        []string // the last "docker run"
	hangs      bool     // a new container does not start
}

func newDaemon(t *testing.T) *daemon {
	d := &daemon{containers: []string{"there"}}
	d.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "AGENT_PROC_ID=") })
	d.Env = append(d.Env, "IMAGE_SECRET=hunter2")
	d.Plan = d.plan
	if os.Getuid() == 0 {
		d.User = nobody
	}
	d.Start(t, "docker")
	return d
}

func (d *daemon) plan(args []string) envtest.Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch args[0] {
	case "run":
		d.ran = args
		if slices.Contains(args, "no-such-image") {
			return envtest.Call{Stderr: "Unable to find image 'no-such-image:latest' locally\n", Code: 125}
		}
		for _, arg := range args {
			if name, ok := strings.CutPrefix(arg, "--name="); ok {
				d.containers = append(d.containers, name)
			}
		}
		if d.hangs {
			return envtest.Call{Argv: []string{"sleep", "300"}}
		}
		return envtest.Call{Argv: []string{"cat"}}
	case "exec":
		i := slices.IndexFunc(args[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") }) + 1
		if !slices.Contains(d.containers, args[i]) {
			return envtest.Call{Stderr: "Error response from daemon: No such container: " + args[i] + "\n", Code: 1}
		}
		return envtest.Call{Argv: args[i+1:]}
	case "rm":
		name := args[len(args)-1]
		d.containers = slices.DeleteFunc(d.containers, func(c string) bool { return c == name })
		d.KillAll()
		return envtest.Call{Stdout: name + "\n"}
	}
	return envtest.Call{Stderr: "docker: unknown command: " + args[0] + "\n", Code: 1}
}

// newEnv starts a container with an empty workspace.
func (d *daemon) newEnv(t *testing.T) core.Environment {
	t.Helper()
	env, err := docker.New(t.Context(), docker.Options{Image: "debian:12", Workspace: envtest.Dir(t), Command: d.Path()})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestConforms(t *testing.T) {
	d := newDaemon(t)
	coretest.TestEnvironment(t, d.newEnv, coretest.EnvironmentOptions{HasShell: true, HasSymlinks: true, HasSetsid: true})
}

func TestSearch(t *testing.T) {
	d := newDaemon(t)
	envtest.TestSearch(t, d.newEnv)
}

func TestHardCases(t *testing.T) {
	d := newDaemon(t)
	envtest.TestHardCases(t, d.newEnv)
}

func TestImage(t *testing.T) {
	d := newDaemon(t)
	workspace := envtest.Dir(t)
	env, err := docker.New(t.Context(), docker.Options{
		Image: "debian:12", Workspace: workspace, Command: d.Path(), User: "1000:1000", Network: "none", RunArgs: []string{"--memory=1g"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"run", "-i", "--rm", "--init", "--name=" + env.Container(), "--entrypoint=cat",
		`--mount=type=bind,"source=` + workspace + `","target=` + workspace + `"`,
		"--workdir=" + workspace, "--user=1000:1000", "--network=none", "--memory=1g", "debian:12",
	}
	if !slices.Equal(d.ran, want) {
		t.Errorf("started by\n%q, want\n%q", d.ran, want)
	}
	out, _, err := core.Exec(t.Context(), env, core.Command{Script: `echo "secret: $IMAGE_SECRET"`})
	if err != nil || string(out) != "secret: \n" {
		t.Errorf("a command sees a secret of the image: %q, %v", out, err)
	}
	for range 2 {
		if err := env.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if !slices.Equal(d.containers, []string{"there"}) {
		t.Errorf("the containers %q are left", d.containers)
	}
}

func TestContainer(t *testing.T) {
	d := newDaemon(t)
	env, err := docker.New(t.Context(), docker.Options{Container: "there", Dir: envtest.Dir(t), Command: d.Path()})
	if err != nil {
		t.Fatal(err)
	}
	if out, _, err := core.Exec(t.Context(), env, core.Command{Script: "echo hello"}); err != nil || string(out) != "hello\n" {
		t.Errorf("%q, %v", out, err)
	}
	if err := env.Close(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(d.containers, []string{"there"}) {
		t.Errorf("the containers %q are left, want the existing one", d.containers)
	}
}

func TestNewRefuses(t *testing.T) {
	d := newDaemon(t)
	for want, opts := range map[string]docker.Options{
		"either an image":          {},
		"invalid image":            {Image: "--privileged"},
		"Unable to find image":     {Image: "no-such-image"},
		"No such container: gone":  {Container: "gone"},
		"cannot mount a workspace": {Container: "there", Workspace: "."},
		"no such file":             {Image: "debian:12", Workspace: "/no/such/directory"},
		"No such file":             {Container: "there", Dir: "/no/such/directory"},
		"executable file not foun": {Image: "debian:12", Command: "no-such-tool"},
	} {
		if opts.Command == "" {
			opts.Command = d.Path()
		}
		env, err := docker.New(t.Context(), opts)
		if err == nil {
			env.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, want an error with %q", opts, err, want)
		}
	}
}

func TestNewIsCancelled(t *testing.T) {
	d := newDaemon(t)
	d.hangs = true
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := docker.New(ctx, docker.Options{Image: "debian:12", Command: d.Path()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("New = %v", err)
	}
	if !slices.Equal(d.containers, []string{"there"}) {
		t.Errorf("the containers %q are left", d.containers)
	}
}

// TestContainerDies: commands in a container that disappears end with an error.
func TestContainerDies(t *testing.T) {
	d := newDaemon(t)
	env := d.newEnv(t)
	p, err := env.Start(t.Context(), core.Command{Script: "sleep 300"})
	if err != nil {
		t.Fatal(err)
	}
	d.plan([]string{"rm", env.(*docker.Env).Container()})
	if exit, err := p.Wait(); err == nil {
		t.Errorf("Wait = %+v without an error", exit)
	}
	if _, err := env.Files().Stat(t.Context(), "."); err == nil || !strings.Contains(err.Error(), "No such container") {
		t.Errorf("Stat = %v", err)
	}
	if err := env.Close(); err == nil || !strings.Contains(err.Error(), "No such container") {
		t.Errorf("Close = %v", err)
	}
}
