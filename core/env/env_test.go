package env_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLocal(t testing.TB, opts env.LocalOptions) *env.Local {
	t.Helper()
	local, err := env.NewLocal(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Close(); err != nil {
			t.Error(err)
		}
	})
	return local
}

func TestLocalConforms(t *testing.T) {
	posix := runtime.GOOS != "windows"
	_, err := exec.LookPath("setsid")
	coretest.TestEnvironment(t, func(t *testing.T) core.Environment {
		local, err := env.NewLocal(env.LocalOptions{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return local
	}, coretest.EnvironmentOptions{HasShell: posix, HasSymlinks: posix, HasSetsid: err == nil})
}

func TestMemoryConforms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its paths have slashes, those of the suite do not")
	}
	coretest.TestEnvironment(t, func(*testing.T) core.Environment {
		return env.NewMemory("/work/project", nil)
	}, coretest.EnvironmentOptions{})
}

// TestWithin: a part of a workspace is an environment like any other.
func TestWithin(t *testing.T) {
	posix := runtime.GOOS != "windows"
	_, err := exec.LookPath("setsid")
	coretest.TestEnvironment(t, func(t *testing.T) core.Environment {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "part"), 0o755); err != nil {
			t.Fatal(err)
		}
		local, err := env.NewLocal(env.LocalOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = local.Close() })
		part, err := env.Within(t.Context(), local, "part")
		if err != nil {
			t.Fatal(err)
		}
		return part
	}, coretest.EnvironmentOptions{HasShell: posix, HasSymlinks: posix, HasSetsid: err == nil})
}

func TestWithinRefuses(t *testing.T) {
	memory := env.NewMemory("/work", map[string]string{"part/a.txt": "x", "other/b.txt": "y"})
	for _, dir := range []string{"part/a.txt", "missing", "/", ".."} {
		if _, err := env.Within(t.Context(), memory, dir); err == nil {
			t.Errorf("%s is a part of the workspace", dir)
		}
	}
	part, err := env.Within(t.Context(), memory, "part")
	if err != nil {
		t.Fatal(err)
	}
	for path, inside := range map[string]bool{"": true, "a.txt": true, "/work/part": true, "../part/new": true, "../other/b.txt": false, "/work/part2": false, "..": false} {
		if to, err := part.Resolve(t.Context(), path); err != nil || to.Inside != inside {
			t.Errorf("%q: %+v, %v, want inside %t", path, to, err, inside)
		}
	}
}
