//go:build unix

package docker_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env/docker"
	"github.com/seed-009c0928/agent/core/env/envtest"
	"github.com/seed-009c0928/agent/core/env/posix"
)

// realImages are what .ci/run imports: a userland of busybox, and one of bash and
// coreutils. Without them, the tests with a real engine are skipped.
var realImages = []string{"agent-test:busybox", "agent-test:gnu"}

// forEachEngine runs a test with each engine and image of this machine.
func forEachEngine(t *testing.T, test func(t *testing.T, engine, image string)) {
	for _, engine := range []string{"docker", "podman"} {
		t.Run(engine, func(t *testing.T) {
			if out, err := exec.Command(engine, "info").CombinedOutput(); err != nil {
				lines := strings.Split(strings.TrimSpace(string(out)), "\n")
				t.Skipf("%s info fails: %v: %s", engine, err, lines[len(lines)-1])
			}
			for i, image := range realImages {
				if testing.Short() && (engine == "docker") != (i == 0) {
					continue // each engine and each image once
				}
				t.Run(strings.TrimPrefix(image, "agent-test:"), func(t *testing.T) {
					if err := exec.Command(engine, "image", "inspect", image).Run(); err != nil {
						t.Skipf("%s has no image %s: .ci/run shows how to import it", engine, image)
					}
					test(t, engine, image)
				})
			}
		})
	}
}

// inContainer returns a factory of new containers without a network.
func inContainer(engine, image string) func(t *testing.T) core.Environment {
	return func(t *testing.T) core.Environment {
		t.Helper()
		env, err := docker.New(t.Context(), docker.Options{
			Command: engine, Image: image, Workspace: envtest.Dir(t), User: "65534:65534", Network: "none",
		})
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
}

func TestRealEngine(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine, image string) {
		factory := inContainer(engine, image)
		coretest.TestEnvironment(t, factory, coretest.EnvironmentOptions{HasShell: true, HasSymlinks: true, HasSetsid: true})
		if testing.Short() && engine == "podman" {
			return // it differs from docker only in how it runs programs
		}
		t.Run("Terminal", func(t *testing.T) { envtest.TestTerminal(t, factory) })
		envtest.TestHardCases(t, factory)
		envtest.TestSearch(t, factory)
	})
}

// TestRealFailures: what a user or the model is told when something is wrong.
func TestRealFailures(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine, image string) {
		env, err := docker.New(t.Context(), docker.Options{
			Command: engine, Image: image, Network: "none", Dir: "/tmp", RunArgs: []string{"--tmpfs=/tmp:size=100k"},
		})
		if err != nil {
			t.Fatal(err)
		}
		files, ctx := env.Files(), t.Context()
		if err := files.Write(ctx, "file", strings.NewReader("old"), 0); err != nil {
			t.Fatal(err)
		}
		err = files.Write(ctx, "file", strings.NewReader(strings.Repeat("x", 200<<10)), 0)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Write to a full disk: %v", err)
		}
		if data, err := core.ReadFile(ctx, files, "file", 10); err != nil || string(data) != "old" {
			t.Errorf("after that the file holds %q, %v", data, err)
		}
		if entries, err := files.ReadDir(ctx, "."); err != nil || len(entries) != 1 {
			t.Errorf("and the directory %v, %v", entries, err)
		}
		p, err := env.Start(ctx, core.Command{Script: "sleep 300"})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(engine, "kill", env.Container()).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if exit, err := p.Wait(); !errors.Is(err, posix.ErrLost) || exit.Code != -1 {
			t.Errorf("a command in a container that was killed: %+v, %v", exit, err)
		}
		_, err = files.Stat(ctx, ".")
		if err == nil || !strings.Contains(err.Error(), "list the running containers") && !strings.Contains(err.Error(), "the container has stopped") {
			t.Errorf("Stat in a container that was killed: %v", err)
		}
		_ = env.Close() // it says that there is no container
		for want, opts := range map[string]docker.Options{
			"list the running containers": {Command: engine, Container: "no-such-container"},
			"check the image's name":      {Command: engine, Image: "no-such-image:1", RunArgs: []string{"--pull=never"}},
			"No such file":                {Command: engine, Image: image, Dir: "/no/such/dir", RunArgs: []string{"--workdir=/"}},
		} {
			e, err := docker.New(ctx, opts)
			if err == nil {
				e.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("New(%+v) = %v, want an error with %q", opts, err, want)
			}
		}
	})
}

// TestRealAdvice: what the clients say when there is no engine, or no access to it.
func TestRealAdvice(t *testing.T) {
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, "closed.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := errors.Join(os.Chmod(listener.Addr().String(), 0), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ engine, variable, socket, want string }{
		"no docker":     {"docker", "DOCKER_HOST", "none.sock", "start docker, or set DOCKER_HOST"},
		"closed docker": {"docker", "DOCKER_HOST", "closed.sock", "your user may not use docker: join the group docker"},
		"no podman":     {"podman", "CONTAINER_HOST", "none.sock", "start podman's service, or unset CONTAINER_HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := exec.LookPath(c.engine)
			if err != nil {
				t.Skipf("%s is not installed", c.engine)
			}
			start := "exec " + client
			if os.Getuid() == 0 && c.engine == "docker" { // whom no mode keeps out
				start = "exec setpriv --reuid=65534 --regid=65534 --clear-groups " + client
			}
			if c.engine == "podman" {
				start += " --remote"
			}
			tool := filepath.Join(t.TempDir(), c.engine)
			if err := os.WriteFile(tool, []byte("#!/bin/sh\n"+start+" \"$@\"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			environ := append(os.Environ(), c.variable+"=unix://"+filepath.Join(dir, c.socket), "HOME="+dir)
			for _, opts := range []docker.Options{{Container: "any"}, {Image: "any"}} {
				opts.Command, opts.Environ = tool, environ
				e, err := docker.New(t.Context(), opts)
				if err == nil {
					e.Close()
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("New = %v, want an error with %q", err, c.want)
				}
			}
		})
	}
}

// TestRealMounts: the workspace is read on this machine, but links mean what they
// mean in the container.
func TestRealMounts(t *testing.T) {
	forEachEngine(t, func(t *testing.T, engine, image string) {
		env, err := docker.New(t.Context(), docker.Options{
			Command: engine, Image: image, Workspace: envtest.Dir(t), Network: "none", User: strconv.Itoa(os.Getuid()),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer env.Close()
		ctx := t.Context()
		if err := env.Files().Write(ctx, "file", strings.NewReader("text"), 0); err != nil {
			t.Fatal(err)
		}
		if _, exit, err := core.Exec(ctx, env, core.Command{Script: "ln -s /etc/passwd link; ln -s file near; ln -s /etc dir; mkdir sub; echo x >sub/f"}); err != nil || exit.Code != 0 {
			t.Fatalf("%+v, %v", exit, err)
		}
		here, err := os.ReadFile("/etc/passwd")
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"file": "text", "near": "text", "sub/f": "x\n", "sub/../file": "text"} {
			to, err := env.Resolve(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			if data, err := core.ReadFile(ctx, env.ExactFiles(), to.Path, 1000); err != nil || string(data) != want || !to.Inside {
				t.Errorf("%s: %+v, %q, %v", name, to, data, err)
			}
		}
		for _, name := range []string{"link", "dir/passwd"} {
			to, err := env.Resolve(ctx, name)
			if err != nil || to.Path != "/etc/passwd" || to.Inside {
				t.Errorf("Resolve(%s) = %+v, %v", name, to, err)
			}
			data, err := core.ReadFile(ctx, env.ExactFiles(), to.Path, 1<<20)
			if err != nil || string(data) == string(here) || !strings.Contains(string(data), "nobody") {
				t.Errorf("%s: %q, %v, want the container's", name, data, err)
			}
			if data, err := core.ReadFile(ctx, env.ExactFiles(), env.Info().Dir+"/"+name, 1<<20); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s, not resolved: %q, %v", name, data, err)
			}
		}
		batch, err := env.ExactFiles().(core.Batcher).Batch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer batch.Close()
		dir := env.Info().Dir
		results, err := batch.ReadDirs([]string{dir + "/dir", "/bin"})
		if err != nil || !errors.Is(results[0].Err, fs.ErrPermission) || len(results[1].Entries) < 10 {
			t.Errorf("ReadDirs of a link and of a directory of the container: %v, %v", results, err)
		}
		if out, err := exec.Command(engine, "pause", env.Container()).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		defer func() {
			if out, err := exec.Command(engine, "unpause", env.Container()).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}()
		// Nothing runs in the container now.
		results, err = batch.ReadDirs([]string{dir, dir + "/sub"})
		if err != nil || len(results[0].Entries) != 5 || len(results[1].Entries) != 1 {
			t.Errorf("ReadDirs in a paused container: %v, %v", results, err)
		}
		err = batch.ReadFiles([]string{dir + "/file", dir + "/sub/f"}, 3, func(i int, data []byte, err error) {
			if want := []string{"tex", "x\n"}[i]; err != nil || string(data) != want {
				t.Errorf("file %d in a paused container: %q, %v, want %q", i, data, err, want)
			}
		})
		if err != nil {
			t.Error(err)
		}
		to, err := env.Resolve(ctx, "sub/f")
		if err != nil {
			t.Fatal(err)
		}
		if data, err := core.ReadFile(ctx, env.ExactFiles(), to.Path, 10); err != nil || string(data) != "x\n" {
			t.Errorf("in a paused container: %q, %v", data, err)
		}
	})
}
