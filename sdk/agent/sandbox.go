package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/sensitive"
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
}

// caches are directories below the home directory that commands write to. In the
// sandbox they write to a copy.
var caches = []string{
	".cache", "Library/Caches", ".npm", ".pnpm-store", ".local/share/pnpm", ".yarn", ".bun/install/cache", ".deno", "go/pkg",
	".cargo/registry", ".cargo/git", ".rustup/tmp", ".m2/repository", ".gradle/caches", ".ivy2", ".sbt", ".nuget", ".gem", ".composer/cache", ".node-gyp",
}

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
		Masked: a.masked(), Sensitive: sensitive.SecretName,
	}
	for _, name := range sensitive.ProtectedNames() {
		if strings.Contains(name, "*") {
			continue
		}
		if name != ".git/" { // only a missing .git is replaced by an empty directory
			name = strings.TrimSuffix(name, "/")
		}
		s.ReadOnly = append(s.ReadOnly, name)
	}
	if a.opts.Home != "" {
		s.ReadOnly = append(s.ReadOnly, a.opts.Home)
	}
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range caches {
			s.Scratch = append(s.Scratch, filepath.Join(home, name))
		}
	}
	return s
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
	slices.Sort(p.Masked)
	return p
}
