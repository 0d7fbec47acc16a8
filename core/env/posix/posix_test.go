//go:build unix

package posix_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
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

// here is a runner on this machine. It ends like a lost connection: the stdin of
// its programs ends, and they keep running.
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

// environ is the environment of the userland, with secrets.
func environ() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, proc.MarkerEnv+"=") {
			env = append(env, entry)
		}
	}
	return append(env, "POD_DB_PASSWORD=hunter2")
}

// nobody is an unprivileged user, which a test run as root switches to.
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

// TestConforms runs the suite with each shell, without setsid, and with only the
// programs of busybox.
func TestConforms(t *testing.T) {
	for _, c := range []struct {
		name, shell, without string
		only                 bool // only busybox's programs
	}{
		{name: "sh", shell: "sh"},
		{name: "bash", shell: "bash"},
		{name: "no setsid", shell: "sh", without: "setsid"},
		{name: "busybox", shell: "busybox", only: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			shell, err := exec.LookPath(c.shell)
			if err != nil {
				t.Skipf("%s is not installed", c.shell)
			}
			bin := t.TempDir()
			if c.only {
				if out, err := exec.Command(shell, "--install", "-s", bin).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			} else {
				linkPrograms(t, bin, shell, c.without)
			}
			t.Setenv("PATH", bin)
			coretest.TestEnvironment(t, func(t *testing.T) core.Environment {
				return newEnv(t, posix.Options{Dir: t.TempDir()})
			}, coretest.EnvironmentOptions{HasShell: true, HasSymlinks: true, HasSetsid: c.without == ""})
		})
	}
}

// linkPrograms links the programs in PATH into bin, except for one, and the shell
// as sh.
func linkPrograms(t *testing.T, bin, shell, without string) {
	t.Helper()
	if err := os.Symlink(shell, filepath.Join(bin, "sh")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/usr/bin", "/bin"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if entry.Name() == without {
				continue
			}
			err := os.Symlink(filepath.Join(dir, entry.Name()), filepath.Join(bin, entry.Name()))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, opts := range map[string]posix.Options{
		"No such file or directory": {Dir: "/no/such/directory"},
		"Not a directory":           {Dir: file},
		"the directory /gone":       {Dir: "/", AddDirs: []string{"gone"}},
	} {
		if _, err := posix.New(t.Context(), here{env: environ()}, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, want an error with %q", opts, err, want)
		}
	}
	if _, err := posix.New(t.Context(), silent{}, posix.Options{}); err == nil || !strings.Contains(err.Error(), "lost the connection") {
		t.Errorf("New with a runner that runs nothing = %v", err)
	}
}

// silent is a runner that runs nothing and outputs nothing.
type silent struct{}

// Run implements [posix.Runner].
func (silent) Run(context.Context, []string, io.Reader, io.Writer, io.Writer) error { return nil }

func TestInside(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := newEnv(t, posix.Options{Dir: dir + "/a", AddDirs: []string{"../b"}, Home: dir})
	defer env.Close()
	for name, want := range map[string]bool{"x": true, "../b/x": true, "../x": false, "~/a": true, "~": false} {
		if to, err := env.Resolve(t.Context(), name); err != nil || to.Inside != want {
			t.Errorf("Resolve(%q) = %+v, %v, want inside %t", name, to, err, want)
		}
	}
	for _, name := range []string{".", "../b"} {
		if err := env.Files().Remove(t.Context(), name); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Remove(%q) = %v, want a refusal", name, err)
		}
	}
}

func TestWithheld(t *testing.T) {
	const note = "[environment: commands do not get POD_DB_PASSWORD, which may contain a secret. If the command needs it, ask the user to add the name to the setting tools.passEnv.]\n"
	for _, c := range []struct {
		opts         posix.Options
		script, want string
	}{
		{posix.Options{}, `printf %s "$POD_DB_PASSWORD"`, note},
		{posix.Options{}, `env | grep -c POD_DB_PASSWORD; echo FATAL: POD_DB_PASSWORD is required >&2; exit 1`, "0\nFATAL: POD_DB_PASSWORD is required\n" + note},
		{posix.Options{}, `echo fine`, "fine\n"},
		{posix.Options{PassEnv: []string{"POD_DB_PASSWORD"}}, `printf %s "$POD_DB_PASSWORD"`, "hunter2"},
	} {
		c.opts.Dir = t.TempDir()
		env := newEnv(t, c.opts)
		out, _, err := core.Exec(t.Context(), env, core.Command{Script: c.script})
		if err != nil || string(out) != c.want {
			t.Errorf("with %+v a command sees %q, %v", c.opts, out, err)
		}
		if err := env.Close(); err != nil {
			t.Error(err)
		}
	}
}
