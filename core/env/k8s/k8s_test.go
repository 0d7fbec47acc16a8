//go:build unix

package k8s_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env/envtest"
	"github.com/seed-009c0928/agent/core/env/k8s"
)

func TestMain(m *testing.M) {
	envtest.Tool()
	goleak.VerifyTestMain(m)
}

// nobody is an unprivileged user, which a test run as root switches to.
const nobody = 65534

// newCluster is a fake cluster with one pod, which shares this machine.
func newCluster(t *testing.T) *envtest.Engine {
	cluster := &envtest.Engine{Plan: plan}
	cluster.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "AGENT_PROC_ID=") })
	if os.Getuid() == 0 {
		cluster.User = nobody
	}
	cluster.Start(t, "kubectl")
	return cluster
}

func plan(args []string) envtest.Call {
	terminal := len(args) > 1 && args[1] == "--tty"
	if terminal {
		args = slices.Delete(slices.Clone(args), 1, 2)
	}
	want := []string{
		"exec", "--stdin", "--quiet", "--kubeconfig=/config", "--context=test", "--namespace=work", "--container=main", "pod-1", "--",
	}
	if len(args) < len(want) || !slices.Equal(args[:len(want)], want) {
		return envtest.Call{Stderr: "Error from server (NotFound): pods not found\n", Code: 1}
	}
	// kubectl reports on stderr that a program failed.
	return envtest.Call{Argv: args[len(want):], Terminal: terminal, Stderr: "command terminated with exit code 1\n"}
}

func TestTerminal(t *testing.T) {
	cluster := newCluster(t)
	envtest.TestTerminal(t, func(t *testing.T) core.Environment { return newEnv(t, cluster) })
}

func newEnv(t *testing.T, cluster *envtest.Engine) core.Environment {
	t.Helper()
	env, err := k8s.New(t.Context(), k8s.Options{
		Pod: "pod-1", Container: "main", Namespace: "work", Context: "test", Kubeconfig: "/config",
		Dir: envtest.Dir(t), Command: cluster.Path(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func TestConforms(t *testing.T) {
	cluster := newCluster(t)
	coretest.TestEnvironment(t, func(t *testing.T) core.Environment { return newEnv(t, cluster) },
		coretest.EnvironmentOptions{HasShell: true, HasSymlinks: true, HasSetsid: true})
}

func TestSearch(t *testing.T) {
	cluster := newCluster(t)
	envtest.TestSearch(t, func(t *testing.T) core.Environment { return newEnv(t, cluster) })
}

func TestHardCases(t *testing.T) {
	cluster := newCluster(t)
	envtest.TestHardCases(t, func(t *testing.T) core.Environment { return newEnv(t, cluster) })
}

func TestNewRefuses(t *testing.T) {
	cluster := newCluster(t)
	for want, opts := range map[string]k8s.Options{
		`invalid pod name ""`:        {},
		`invalid pod name "--all"`:   {Pod: "--all"},
		"pods not found":             {Pod: "other"},
		"executable file not found ": {Pod: "pod-1", Command: "no-such-tool"},
	} {
		if opts.Command == "" {
			opts.Command = cluster.Path()
		}
		env, err := k8s.New(t.Context(), opts)
		if err == nil {
			env.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v, want an error with %q", opts, err, want)
		}
	}
}
