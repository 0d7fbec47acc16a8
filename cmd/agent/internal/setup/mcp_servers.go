package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/mcp/oauth"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// SignIn signs in to MCP servers with the stored tokens. The user is taken to the
// sign-in page by p; nil = non-interactive.
func (s *Setup) SignIn(p oauth.Browser) agent.MCPSignIn {
	var keys oauth.Keyring
	if s.keyring != nil && s.keyring.Running() {
		keys = s.keyring
	}
	return agent.MCPSignIn{Store: oauth.NewStore(filepath.Join(MCPDir(s.Home), "auth"), keys), Browser: p}
}

// The scopes of MCP servers.
const (
	ScopeUser    = "user"    // in the user's settings
	ScopeProject = "project" // in a directory's .mcp.json
)

// ErrUntrustedServer is wrapped by the problem of a project's server whose
// current definition the user does not trust.
var ErrUntrustedServer = errors.New("not trusted")

// Servers returns the configured MCP servers: the user's, then the project's. A
// project's server whose current definition is not trusted has a problem. The
// warnings are about what could not be read.
func (s *Setup) Servers() (all []mcp.Configured, warnings []string) {
	if s.found == nil {
		all, warnings = s.findServers()
		s.found = &foundServers{all, warnings}
	}
	return slices.Clone(s.found.servers), s.found.warnings
}

// foundServers is the result of findServers.
type foundServers struct {
	servers  []mcp.Configured
	warnings []string
}

func (s *Setup) findServers() (all []mcp.Configured, warnings []string) {
	user := s.Settings.MCP.Servers
	for _, name := range cmdutil.SortedKeys(user) {
		all = append(all, mcp.Configured{Name: name, Server: user[name], Source: ScopeUser})
	}
	project, warnings, err := config.ProjectServers(s.Dir)
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	trusted, err := s.trustedServers()
	for _, name := range cmdutil.SortedKeys(project) {
		c := mcp.Configured{Name: name, Server: project[name], Source: ScopeProject, Project: true}
		if c.Problem = err; err == nil {
			c.Problem = checkTrust(name, trusted[name], c.Server.Hash())
		}
		all = append(all, c)
	}
	all = append(all, s.bundleServers()...)
	for i := range all {
		if slices.Contains(s.Settings.MCP.Disabled, all[i].Name) {
			all[i].Server.Disabled = true
		}
	}
	return all, warnings
}

// trustedServers returns the hashes of the project's trusted servers, by name.
func (s *Setup) trustedServers() (map[string]string, error) {
	if s.Home == "" {
		return nil, errors.New("no home directory to store trust in: set HOME or AGENT_HOME")
	}
	return trust.Open(s.Home).Servers(s.Dir)
}

// checkTrust returns why a project's server may not be used, given the hashes of
// its trusted and of its current definition; nil if it may.
func checkTrust(name, trusted, hash string) error {
	if trusted == hash {
		return nil
	}
	reason := "this directory's " + mcp.ProjectFile + " defines it"
	if trusted != "" {
		reason = mcp.ProjectFile + " has changed it since you trusted it"
	}
	return fmt.Errorf("%w: %s; review it (agent mcp get %s), then run: agent mcp enable %s", ErrUntrustedServer, reason, name, name)
}

// mcpOptions returns the options of an agent's MCP servers.
func (s *Setup) mcpOptions() agent.MCPOptions {
	o := agent.MCPOptions{Command: config.Command}
	if !s.bare {
		o.Servers, _ = s.Servers()
	}
	if s.Home != "" {
		o.Dir = MCPDir(s.Home)
		o.Authorize = s.SignIn(nil).Authorizer()
	}
	return o
}

// MCPDir is the directory of what is stored about MCP servers: their tools, the
// sign-ins and which are running.
func MCPDir(home string) string { return filepath.Join(home, "mcp") }

// mcpSecrets returns the secrets in the settings of servers, to be redacted.
func mcpSecrets(servers []mcp.Configured) []string {
	var list []string
	for _, c := range servers {
		list = append(list, c.Server.Secrets(os.LookupEnv)...)
	}
	return list
}

// MCPWarnings returns which MCP servers cannot be used, and why.
func (s *Setup) MCPWarnings() []string {
	if s.bare {
		return nil
	}
	servers, warnings := s.Servers()
	host := mcp.NewHost(mcp.HostOptions{Servers: servers}) // checks the servers, starts none
	defer host.Close()
	for _, st := range host.Status() {
		if st.Problem != nil && !st.Server.Disabled {
			warnings = append(warnings, fmt.Sprintf("MCP server %s: %v", st.Name, st.Problem))
		}
	}
	return warnings
}
