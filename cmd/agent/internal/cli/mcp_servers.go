package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// The scopes of servers.
const (
	scopeUser    = "user"
	scopeProject = "project"
)

// errUntrustedServer is wrapped by the problem of a project's server that the
// person does not trust as it is.
var errUntrustedServer = errors.New("not trusted")

// servers are the MCP servers in force: the person's, then the project's. A
// server of a project can be used when the person trusts it as it is. The
// warnings are about what could not be read.
func (s *settings) servers() (all []mcp.Configured, warnings []string) {
	if s.found == nil {
		all, warnings = s.findServers()
		s.found = &foundServers{all, warnings}
	}
	return slices.Clone(s.found.servers), s.found.warnings
}

// foundServers is what servers found, once.
type foundServers struct {
	servers  []mcp.Configured
	warnings []string
}

func (s *settings) findServers() (all []mcp.Configured, warnings []string) {
	own := s.Settings.MCP.Servers
	for _, name := range sortedKeys(own) {
		all = append(all, mcp.Configured{Name: name, Server: own[name], Source: scopeUser})
	}
	project, warnings, err := config.ProjectServers(s.dir)
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	trusted, err := s.trustedServers()
	for _, name := range sortedKeys(project) {
		c := mcp.Configured{Name: name, Server: project[name], Source: scopeProject}
		if c.Problem = err; err == nil {
			c.Problem = distrust(name, trusted[name], c.Server.Hash())
		}
		all = append(all, c)
	}
	for i := range all {
		if slices.Contains(s.Settings.MCP.Disabled, all[i].Name) {
			all[i].Server.Disabled = true
		}
	}
	return all, warnings
}

func (s *settings) trustedServers() (map[string]string, error) {
	if s.Home == "" {
		return nil, errors.New("there is no home directory to keep trust in")
	}
	return trust.Open(s.Home).Servers(s.dir)
}

// distrust says why a project's server may not be used; nil if it may.
func distrust(name, trusted, hash string) error {
	switch trusted {
	case hash:
		return nil
	case "":
		return fmt.Errorf("%w: %s of this directory wants to start it; look at it (agent mcp get %s), then run: agent mcp enable %s", errUntrustedServer, mcp.ProjectFile, name, name)
	}
	return fmt.Errorf("%w any more: what %s wants to start has changed since you trusted it; look at it (agent mcp get %s), then run: agent mcp enable %s", errUntrustedServer, mcp.ProjectFile, name, name)
}

// mcpOptions describe the MCP servers of an agent.
func (s *settings) mcpOptions() agent.MCPOptions {
	var o agent.MCPOptions
	if !s.bare {
		o.Servers, _ = s.servers()
	}
	if s.Home != "" {
		o.Dir = mcpDir(s.Home)
		o.Authorize = s.signIn(nil).Authorizer()
	}
	return o
}

// mcpDir is where is kept what is known of MCP servers.
func mcpDir(home string) string { return filepath.Join(home, "mcp") }

// mcpSecrets are the values in the settings of servers that records are to hide.
func mcpSecrets(servers []mcp.Configured) []string {
	var list []string
	for _, c := range servers {
		list = append(list, c.Server.Secrets(os.LookupEnv)...)
	}
	return list
}

// mcpWarnings says what of the servers cannot be used, and why.
func (s *settings) mcpWarnings() []string {
	if s.bare {
		return nil
	}
	servers, warnings := s.servers()
	host := mcp.NewHost(mcp.HostOptions{Servers: servers}) // it finds what is wrong, and starts nothing
	defer host.Close()
	for _, st := range host.Status() {
		if st.Problem != nil && !st.Server.Disabled {
			warnings = append(warnings, fmt.Sprintf("MCP server %s: %v", st.Name, st.Problem))
		}
	}
	return warnings
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// configured finds a server by its name.
func configured(servers []mcp.Configured, name string) (mcp.Configured, error) {
	var names []string
	for _, c := range servers {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return mcp.Configured{}, &usageError{fmt.Errorf("there is no MCP server %q, nor any other; agent mcp add makes one", name)}
	}
	return mcp.Configured{}, &usageError{fmt.Errorf("there is no MCP server %q; there are %s", name, strings.Join(names, ", "))}
}

// serverNames completes the names of servers.
func (s *streams) serverNames(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	quiet := *s
	quiet.err = io.Discard
	_, servers, err := (&mcpPlace{streams: &quiet}).load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, c := range servers {
		names = append(names, cobra.CompletionWithDesc(c.Name, display.OneLine(c.Server.Describe(), 60)))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
