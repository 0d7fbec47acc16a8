//go:build unix

package k8s_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env/envtest"
	"github.com/seed-009c0928/agent/core/env/k8s"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tools"
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

// TestSearchCost: a search starts three programs in the cluster, however many files
// there are: one looks at its directory, one for the rules above, one searches.
func TestSearchCost(t *testing.T) {
	cluster := newCluster(t)
	var calls atomic.Int64
	cluster.Plan = func(args []string) envtest.Call {
		calls.Add(1)
		return plan(args)
	}
	e := newEnv(t, cluster)
	defer e.Close()
	if _, exit, err := core.Exec(t.Context(), e, core.Command{Script: "for i in $(seq 300); do mkdir d$i; echo needle >d$i/f; done"}); err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v", exit, err)
	}
	for tool, args := range map[core.Tool]string{tools.Grep(): `{"pattern": "needle"}`, tools.Glob(): `{"pattern": "**/f"}`} {
		calls.Store(0)
		result, err := tool.Run(t.Context(), &core.Call{Args: json.RawMessage(args), Env: e, Session: core.SessionInfo{Dir: e.Info().Dir}})
		if err != nil || result.Code != "" || !strings.Contains(model.Parts(result.Content).Text(), "d300/f") && tool.Definition().Name == "glob" {
			t.Errorf("%s: %+v, %v", tool.Definition().Name, result, err)
		}
		if n := calls.Load(); n > 3 {
			t.Errorf("%s of 300 directories started %d programs", tool.Definition().Name, n)
		}
	}
}

// TestGlobalExcludes: searches skip what the user of the host tells git to ignore.
func TestGlobalExcludes(t *testing.T) {
	cluster, home := newCluster(t), envtest.Dir(t)
	cluster.Env = append(cluster.Env, "HOME="+home, "XDG_CONFIG_HOME=")
	first := newEnv(t, cluster)
	defer first.Close()
	if _, exit, err := core.Exec(t.Context(), first, core.Command{
		Script: "mkdir -p ~/.config/git; echo '*.swp' >~/.config/git/ignore; echo needle >a.txt; echo needle >b.swp; git init -q",
	}); err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v", exit, err)
	}
	found := func() string {
		e, err := k8s.New(t.Context(), k8s.Options{
			Pod: "pod-1", Container: "main", Namespace: "work", Context: "test", Kubeconfig: "/config", Dir: first.Info().Dir, Command: cluster.Path(),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		call := &core.Call{Args: json.RawMessage(`{"pattern": "needle", "output_mode": "files_with_matches"}`), Env: e, Session: core.SessionInfo{Dir: e.Info().Dir}}
		result, err := tools.Grep().Run(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return model.Parts(result.Content).Text()
	}
	if got := found(); got != "a.txt" {
		t.Errorf("with git/ignore: %q", got)
	}
	if _, exit, err := core.Exec(t.Context(), first, core.Command{
		Script: `printf '[include]\npath = more\n' >~/.gitconfig; printf '[core]\nexcludesFile = ~/mine\n' >~/more; echo '*.txt' >~/mine`,
	}); err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v", exit, err)
	}
	if got := found(); got != "b.swp" {
		t.Errorf("with settings: %q", got)
	}
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
