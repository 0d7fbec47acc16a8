//go:build unix

package posix_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env/envtest"
	"github.com/seed-009c0928/agent/core/env/posix"
	"github.com/seed-009c0928/agent/core/proc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// here is a runner on this machine. It gives up like a broken connection does:
// what it ran finds its stdin at the end and is left to itself.
type here struct {
	env []string
	as  uint32 // the user; 0 = that of this process
}

// Run implements [posix.Runner].
func (h here) Run(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = h.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if h.as != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: h.as, Gid: h.as}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	messages, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		for _, c := range []io.Closer{in, out, messages} {
			c.Close()
		}
	})
	defer stop()
	go func() {
		if stdin != nil {
			_, _ = io.Copy(in, stdin)
		}
		in.Close()
	}()
	var copies sync.WaitGroup
	for _, c := range []struct {
		to   io.Writer
		from io.Reader
	}{{stdout, out}, {stderr, messages}} {
		if c.to == nil {
			c.to = io.Discard
		}
		copies.Go(func() { _, _ = io.Copy(c.to, c.from) })
	}
	copies.Wait()
	if ctx.Err() != nil {
		go cmd.Wait()
		return ctx.Err()
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// environ is that of the userland, with secrets of its own.
func environ() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, proc.MarkerEnv+"=") {
			env = append(env, entry)
		}
	}
	return append(env, "POD_DB_PASSWORD=hunter2")
}

// nobody is a user without privileges, whom a test that runs as root plays.
const nobody = 65534

func TestHardCases(t *testing.T) {
	envtest.TestHardCases(t, func(t *testing.T) core.Environment {
		dir, runner := envtest.Dir(t), here{env: environ()}
		if os.Getuid() == 0 {
			runner.as = nobody
		}
		env, err := posix.New(t.Context(), runner, posix.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return env
	})
}

func newEnv(t *testing.T, opts posix.Options) *posix.Env {
	t.Helper()
	env, err := posix.New(t.Context(), here{env: environ()}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestConforms(t *testing.T) {
	for _, shell := range []string{"sh", "bash", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("there is no %s here", shell)
			}
			bin := t.TempDir()
			if err := os.Symlink(path, filepath.Join(bin, "sh")); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			coretest.TestEnvironment(t, func(t *testing.T) core.Environment {
				return newEnv(t, posix.Options{Dir: t.TempDir()})
			}, coretest.EnvironmentOptions{HasShell: true, HasSymlinks: true, HasSetsid: true})
		})
	}
}
