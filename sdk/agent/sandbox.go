package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/sensitive"
	"github.com/seed-009c0928/agent/mcp"
)

// SandboxOptions configure the sandbox of child processes. The zero value uses the
// strongest one available on this machine.
type SandboxOptions struct {
	// Shell, Skills, Plugins and MCP set the level for commands, scripts of
	// skills, plugins and MCP servers. Empty is sandbox.ModeAuto.
	Shell, Skills, Plugins, MCP sandbox.Mode
	// Writable lists files and directories outside the workspace that commands may
	// write.
	Writable []string
	// Masked lists files and directories to hide, besides the well-known locations
	// of secrets.
	Masked []string
	// Hosts lists the hosts that commands may reach; see sandbox.ParseHost, "*" is
	// all.
	Hosts []string
	// Home is what processes see of the home directory. Empty is HomeListed.
	Home HomeView
	// MCPServers says which MCP servers without a sandbox in their settings are
	// confined. Empty is ConfineProject.
	MCPServers MCPServers
}

// MCPServers says which MCP servers are confined by default.
type MCPServers string

// The choices.
const (
	ConfineProject MCPServers = "project" // those that a project configures
	ConfineAll     MCPServers = "all"
	ConfineNone    MCPServers = "none"
)

// sandbox returns the sandbox of the environment, nil for none. It is none with a
// policy of the host, unless configured, as the grants of the policy must describe
// what commands may do in it.
func (a *Agent) sandbox() *env.Sandbox {
	o := a.opts.Sandbox
	if o == nil {
		if a.opts.Policy != nil {
			return nil
		}
		o = &SandboxOptions{}
	}
	s := &env.Sandbox{
		Shell: o.Shell, Skills: o.Skills, Writable: o.Writable, Hosts: o.Hosts,
		Masked: a.masked(), Sensitive: sensitive.IsSecret, Fixture: sensitive.Fixture,
	}
	s.ReadOnly = a.protected()
	s.Scratch = scratch()
	s.Home = sync.OnceValues(a.hiddenHome) // with the first command
	return s
}

// protected returns the names and paths that no process in a sandbox may write.
func (a *Agent) protected() []string {
	names := sensitive.ProtectedNames()
	if a.opts.Home != "" {
		names = append(names, a.opts.Home)
	}
	return names
}

// scratch returns the caches.
func scratch() (dirs []string) {
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range caches {
			dirs = append(dirs, filepath.Join(home, name))
		}
	}
	return dirs
}

// masked returns the locations of secrets.
func (a *Agent) masked() []string {
	home, _ := os.UserHomeDir() // empty if there is none
	masked := sensitive.SecretPaths(filepath.ToSlash(home), filepath.ToSlash(a.opts.Home))
	if a.opts.Sandbox != nil {
		masked = append(masked, a.opts.Sandbox.Masked...)
	}
	return masked
}

// secretsIn returns the files with secrets in directories, without these themselves.
func secretsIn(dirs []string) []string {
	return slices.DeleteFunc(env.Secrets(dirs, sensitive.IsSecret, sensitive.Fixture), func(path string) bool { return slices.Contains(dirs, path) })
}

// mcpSandbox returns the base sandbox of MCP servers: with the configured level,
// and secrets hidden. It allows no writing and no network.
func (a *Agent) mcpSandbox() *sandbox.Profile {
	p := &sandbox.Profile{}
	if o := a.opts.Sandbox; o != nil {
		p.Mode = o.MCP
	}
	for _, pattern := range a.masked() {
		p.Masked = append(p.Masked, env.Expand(pattern)...)
	}
	if home, open := a.hiddenHome(); home != "" {
		p.Masked = append(p.Masked, sandbox.HideExcept([]string{home}, append(open, a.env.Info().Roots...))...)
	}
	p.Masked = append(p.Masked, secretsIn(a.env.Info().Roots)...)
	slices.Sort(p.Masked)
	return p
}

// ownSandbox returns the sandbox of an MCP server that is confined by default. It sees
// the system's programs, the toolchains and caches of the home directory, and the
// workspace; it writes to copies of the caches, and has the network.
func (a *Agent) ownSandbox() (*sandbox.Profile, error) {
	p := a.mcpSandbox()
	open := slices.Concat(sandbox.SystemPaths(), a.env.Info().Roots, sandbox.ProgramPaths(sandbox.PathDirs(os.Environ()), ""))
	home, err := os.UserHomeDir()
	if err == nil {
		if home = sandbox.Resolve(home); a.homeView() == HomeOpen {
			open = append(open, home)
		} else {
			open = append(open, a.openHome(home)...)
		}
	}
	p.Masked = append(p.Masked, sandbox.HideExcept(sandbox.UserRoots(home, a.opts.Home), open)...)
	p.Readable, p.Scratch = a.env.Info().Roots, scratch()
	p.Network.Full = true
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.scratch == nil {
		if a.scratch, err = sandbox.NewTempDir(); err != nil {
			return nil, fmt.Errorf("create a directory for the caches of MCP servers: %w", err)
		}
	}
	p.Layers = a.scratch.Path
	return p, nil
}

// privateSandbox returns the sandbox of a plugin's MCP server. It sees the system's
// programs, the workspace, and what was granted; nothing else of the user.
func (a *Agent) privateSandbox(c *mcp.Confine) *sandbox.Profile {
	p := &sandbox.Profile{}
	if o := a.opts.Sandbox; o != nil {
		p.Mode = o.MCP
	}
	roots := a.env.Info().Roots
	home, err := os.UserHomeDir()
	if err == nil {
		home = sandbox.Resolve(home)
	}
	granted := slices.Concat(c.Readable, c.Writable)
	open := slices.Concat(sandbox.SystemPaths(), roots, granted, sandbox.ProgramPaths(sandbox.PathDirs(os.Environ()), home))
	p.Masked = sandbox.HideExcept(sandbox.UserRoots(home, a.opts.Home), open)
	for _, pattern := range a.masked() {
		for _, at := range env.Expand(pattern) {
			if !slices.ContainsFunc(granted, func(dir string) bool { return sandbox.Below(at, dir) }) {
				p.Masked = append(p.Masked, at)
			}
		}
	}
	p.Masked = append(p.Masked, secretsIn(roots)...)
	slices.Sort(p.Masked)
	p.Readable = slices.Concat(roots, c.Readable)
	return p
}
