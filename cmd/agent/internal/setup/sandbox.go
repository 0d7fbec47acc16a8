package setup

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// sandbox returns how child processes are confined.
func (s *Setup) sandbox() *agent.SandboxOptions {
	set := s.Settings.Sandbox
	return &agent.SandboxOptions{
		Shell: sandbox.Mode(set.Shell), Skills: sandbox.Mode(set.Skills),
		Plugins: sandbox.Mode(set.Plugins), MCP: sandbox.Mode(set.MCP),
		Writable: s.absolute(set.Writable), Masked: s.absolute(set.Masked), Hosts: set.Hosts,
		Home: agent.HomeView(set.Home), MCPServers: agent.MCPServers(set.MCPServers),
	}
}

// checkSandbox checks the sandbox settings.
func (s *Setup) checkSandbox() error {
	const key = "sandbox.hosts"
	for i, h := range s.Settings.Sandbox.Hosts {
		if _, err := sandbox.ParseHost(h); err != nil && h != "*" {
			return &config.Error{Key: key, Err: fmt.Errorf("%s: %s, entry %d: %w", s.Source(key), key, i+1, err)}
		}
	}
	return nil
}

// absolute makes paths of the settings absolute: ~ is the home directory, relative
// paths start at the working directory.
func (s *Setup) absolute(paths []string) []string {
	var all []string
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(filepath.ToSlash(p)+"/", "~/"); ok {
			p = filepath.Join(s.UserHome, rest)
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(s.Dir, p)
		}
		all = append(all, filepath.Clean(p))
	}
	return all
}
