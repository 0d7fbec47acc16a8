package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/permissions"
)

// SandboxOptions say how child processes are confined. The zero value confines
// them as well as this machine can.
type SandboxOptions struct {
	// Shell, Skills, Plugins and MCP choose the level for commands, scripts of
	// skills, plugins and MCP servers. Empty is sandbox.ModeAuto.
	Shell, Skills, Plugins, MCP sandbox.Mode
	// Writable are files and directories, besides those of the workspace, that
	// commands may write.
	Writable []string
	// Masked are files and directories that are hidden, besides the well-known
	// places of secrets.
	Masked []string
	// Hosts can be reached by commands; see sandbox.ParseHost, "*" is all.
	Hosts []string
}

// caches are directories below a home that commands fill as they work. They
// write a copy.
var caches = []string{
	".cache", "Library/Caches", ".npm", ".pnpm-store", ".local/share/pnpm", ".yarn", ".bun/install/cache", ".deno", "go/pkg",
	".cargo/registry", ".cargo/git", ".rustup/tmp", ".m2/repository", ".gradle/caches", ".ivy2", ".sbt", ".nuget", ".gem", ".composer/cache", ".node-gyp",
}

// sandbox returns the options of the environment, nil for none: a policy of the
// host's own says by its grants what commands may do, and must know of the
// sandbox to do that.
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
		Masked: a.masked(), Sensitive: permissions.SensitiveName,
	}
	for _, name := range permissions.ProtectedNames() {
		if name != ".git/" { // only for .git is an empty directory put where it is missing
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

// masked returns the places of secrets.
func (a *Agent) masked() []string {
	home, _ := os.UserHomeDir() // without one there are no secrets in it
	masked := permissions.SensitivePaths(home)
	if a.opts.Home != "" { // may hold keys
		masked = append(masked, filepath.Join(a.opts.Home, "settings.json"))
	}
	if a.opts.Sandbox != nil {
		masked = append(masked, a.opts.Sandbox.Masked...)
	}
	return masked
}

// ProcessSandbox returns what the sandbox of a plugin's or an MCP server's
// process begins with, by core.ScopePlugin or core.ScopeMCP: the mode that was
// chosen for it, and the secrets hidden. It may write nothing and has no
// network; whoever starts the process adds what was agreed to.
func (a *Agent) ProcessSandbox(scope core.Scope) *sandbox.Profile {
	p := &sandbox.Profile{}
	if o := a.opts.Sandbox; o != nil {
		p.Mode = o.MCP
		if scope == core.ScopePlugin {
			p.Mode = o.Plugins
		}
	}
	for _, pattern := range a.masked() {
		p.Masked = append(p.Masked, env.Expand(pattern)...)
	}
	slices.Sort(p.Masked)
	return p
}
