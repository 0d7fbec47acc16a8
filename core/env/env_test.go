package env_test

import (
	"os/exec"
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
