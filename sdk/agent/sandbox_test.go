package agent

import (
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins"
)

// TestSandboxOfProcesses: plugins and MCP servers get their configured levels, and
// MCP servers cannot read secrets.
func TestSandboxOfProcesses(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	a, err := Open(t.Context(), Options{
		Dir: t.TempDir(), Home: t.TempDir(), Plugins: &plugins.Options{},
		Sandbox: &SandboxOptions{Shell: sandbox.ModeOff, MCP: sandbox.ModeRequire, Plugins: sandbox.ModeOff, Masked: []string{"/srv/keys"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	p := a.mcpSandbox()
	if p.Mode != sandbox.ModeRequire || len(p.Writable) != 0 || p.Network.Full || !slices.Contains(p.Masked, "/srv/keys") || !slices.Contains(p.Masked, "/home/ann/.ssh") {
		t.Errorf("MCP servers: %+v", p)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	if got := a.pluginOptions().Sandbox; got != sandbox.ModeOff {
		t.Errorf("plugins: level %q, want %q", got, sandbox.ModeOff)
	}
	a.opts.Plugins.Sandbox = sandbox.ModeRequire
	if got := a.pluginOptions().Sandbox; got != sandbox.ModeRequire {
		t.Errorf("plugins with a level in their own options: %q, want %q", got, sandbox.ModeRequire)
	}
}

// TestOwnPolicyHasNoSandbox: by default there is no sandbox with a policy of the
// host, whose grants would not fit it.
func TestOwnPolicyHasNoSandbox(t *testing.T) {
	for name, opts := range map[string]Options{
		"own policy": {Policy: coretest.AllowAll},
		"off":        {Sandbox: &SandboxOptions{Shell: sandbox.ModeOff}},
	} {
		opts.Dir = t.TempDir()
		a, err := Open(t.Context(), opts)
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
