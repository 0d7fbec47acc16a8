package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// agentEnv makes the test binary an agent that runs commands in this directory.
const agentEnv = "TEST_AGENT_DIR"

// newAgent returns the environment of an agent with protected names.
func newAgent(dir string) (*Local, error) {
	return NewLocal(LocalOptions{Dir: dir, Sandbox: &Sandbox{Shell: sandbox.ModeRequire, ReadOnly: []string{".git/", ".envrc"}}})
}

// TestAgentProcess is the agent of other tests, in its own process.
func TestAgentProcess(t *testing.T) {
	dir := os.Getenv(agentEnv)
	if dir == "" {
		t.Skip("only for other tests")
	}
	l, err := newAgent(dir)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("TEST_AGENT_HANGS") != "" {
		_, _, _ = core.Exec(t.Context(), l, workspaceCommand(dir, "touch started; sleep 100"))
		return
	}
	var wg sync.WaitGroup
	for worker := range 3 {
		wg.Go(func() {
			for i := range 15 {
				script := fmt.Sprintf("echo x >f%d.%d && mkdir -p d%d.%d && rm -r d%[3]d.%[4]d", worker, i, os.Getpid(), worker)
				out, exit, err := core.Exec(context.Background(), l, workspaceCommand(dir, script))
				if err != nil || exit.Code != 0 || len(out) > 0 {
					t.Errorf("call %d of worker %d: exit %+v, error %v\n%s", i, worker, exit, err, out)
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// workspaceCommand is a command that may write a directory.
func workspaceCommand(dir, script string) core.Command {
	all := grant(core.ScopeWrite, dir)
	all.Recursive = true
	return core.Command{Script: script, Grants: []core.Grant{all, grant(core.ScopeShell, script)}}
}

// agentProcess returns the command of an agent in its own process.
func agentProcess(dir, tmp string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestAgentProcess$", "-test.count=1")
	cmd.Env = append(os.Environ(), agentEnv+"="+dir, "TMPDIR="+tmp)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// realDir returns a temporary directory without symbolic links in its path.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// leftovers returns what the sandbox left behind below a directory.
func leftovers(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".git") || strings.HasPrefix(d.Name(), "agent-tmp-") || strings.Contains(d.Name(), sandbox.AsideSuffix) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// TestAgentsShareAWorkspace runs agents at once in the same directory, and in a
// directory and its parent, none of which is a repository.
func TestAgentsShareAWorkspace(t *testing.T) {
	if l, _, _ := newConfined(t); !l.Sandboxed(t.Context()) {
		t.Skip("no sandbox level works on this machine")
	}
	for name, sub := range map[string]string{"same": "", "parent and subdirectory": "sub"} {
		t.Run(name, func(t *testing.T) {
			dir, tmp := realDir(t), realDir(t)
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for _, at := range []string{dir, filepath.Join(dir, sub)} {
				wg.Go(func() {
					if out, err := agentProcess(at, tmp).CombinedOutput(); err != nil {
						t.Errorf("agent in %s: %v\n%s", at, err, bytes.TrimSpace(out))
					}
				})
			}
			wg.Wait()
			if left := append(leftovers(t, dir), leftovers(t, tmp)...); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestKilledAgentsLeftovers kills an agent: the next one removes what it left
// behind, but nothing of agents that are running.
func TestKilledAgentsLeftovers(t *testing.T) {
	if l, _, _ := newConfined(t); !l.Sandboxed(t.Context()) {
		t.Skip("no sandbox level works on this machine")
	}
	dir, tmp := realDir(t), realDir(t)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "empty", ".git"), 0o755), os.MkdirAll(filepath.Join(dir, "sub"), 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	start := func(at string) *exec.Cmd {
		agent := agentProcess(at, tmp, "TEST_AGENT_HANGS=1")
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, filepath.Join(at, "started"))
		return agent
	}
	end := func(agent *exec.Cmd) {
		if err := agent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = agent.Wait() // killed
	}
	other, killed := start(dir), start(filepath.Join(dir, "sub"))
	end(killed)
	next := func() []string {
		l, err := newAgent(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		return append(leftovers(t, dir), leftovers(t, tmp)...)
	}
	git, empty := filepath.Join(dir, ".git"), filepath.Join(dir, "empty", ".git")
	if left := next(); len(left) != 3 || left[0] != git || left[1] != empty {
		t.Errorf("with a running agent there is %q, want its placeholder, its directory and %s", left, empty)
	}
	end(other)
	if left := next(); len(left) != 1 || left[0] != empty {
		t.Errorf("with no running agent there is %q, want %s", left, empty)
	}
}

// waitFor waits until a file exists.
func waitFor(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		if _, err := os.Lstat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s", path)
		}
	}
}
