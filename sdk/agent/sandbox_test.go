package agent_test

import (
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func TestProcessSandbox(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	a, err := agent.Open(t.Context(), agent.Options{
		Dir: t.TempDir(), Home: t.TempDir(), Sandbox: &agent.SandboxOptions{Shell: sandbox.ModeOff, Plugins: sandbox.ModeRequire, Masked: []string{"/srv/keys"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	p := a.ProcessSandbox(core.ScopePlugin)
	if p.Mode != sandbox.ModeRequire || len(p.Writable) != 0 || p.Network.Full || !slices.Contains(p.Masked, "/srv/keys") || !slices.Contains(p.Masked, "/home/ann/.ssh") {
		t.Errorf("a plugin's: %+v", p)
	}
	if p := a.ProcessSandbox(core.ScopeMCP); p.Mode != "" {
		t.Errorf("an MCP server's: %+v", p)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// TestOwnPolicyHasNoSandbox checks that the grants of a policy which knows of
// no sandbox are not taken for its walls.
func TestOwnPolicyHasNoSandbox(t *testing.T) {
	for name, opts := range map[string]agent.Options{
		"own policy": {Policy: coretest.AllowAll},
		"off":        {Sandbox: &agent.SandboxOptions{Shell: sandbox.ModeOff}},
	} {
		opts.Dir = t.TempDir()
		a, err := agent.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if a.Env().(*env.Local).Sandboxed(t.Context()) {
			t.Errorf("%s: commands are confined", name)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
