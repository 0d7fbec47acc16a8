package cli

import (
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// sandbox is how child processes are confined.
func (s *settings) sandbox() *agent.SandboxOptions {
	set := s.Settings.Sandbox
	return &agent.SandboxOptions{
		Shell: sandbox.Mode(set.Shell), Skills: sandbox.Mode(set.Skills),
		Plugins: sandbox.Mode(set.Plugins), MCP: sandbox.Mode(set.MCP),
		Writable: s.absolute(set.Writable), Masked: s.absolute(set.Masked), Hosts: set.Hosts,
	}
}

// absolute makes paths of the settings absolute: ~ is the home directory, and
// what is relative is meant in the directory that the work is done in.
func (s *settings) absolute(paths []string) []string {
	var all []string
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(filepath.ToSlash(p)+"/", "~/"); ok {
			p = filepath.Join(s.userHome, rest)
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(s.dir, p)
		}
		all = append(all, filepath.Clean(p))
	}
	return all
}
