package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/mcp/oauth"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// SignIn is how this person signs in to MCP servers; nil is nobody.
func (s *Setup) SignIn(p oauth.Person) agent.MCPSignIn {
	var keys oauth.Keyring
	if s.keyring != nil && s.keyring.Running() {
		keys = s.keyring
	}
	return agent.MCPSignIn{Store: oauth.NewStore(filepath.Join(MCPDir(s.Home), "auth"), keys), Person: p}
}

const serveInstructions = "A coding agent. Its tools work on the files and commands of its workspace; its own rules decide what they may do, " +
	"and it may ask your person. run_task gives it a whole task."

// ServerOptions are those of the sessions that clients use.
func (s *Setup) ServerOptions(noTasks bool) (agent.MCPServerOptions, error) {
	o := agent.MCPServerOptions{Instructions: serveInstructions}
	if err := s.SessionOptions(&o.Calls); err != nil {
		return o, err
	}
	o.Calls.Ephemeral = !s.Settings.Session.Save
	limits := o.Calls.Limits // those of a conversation do not hold for single calls
	o.Calls.Limits = core.Limits{
		CommandTimeout: limits.CommandTimeout, MaxCommandTimeout: limits.MaxCommandTimeout, ParallelCalls: limits.ParallelCalls, NoLoopDetection: true,
	}
	if !noTasks {
		o.Task = func(ctx context.Context) (opts agent.SessionOptions, err error) {
			if opts.Provider, err = s.Providers(ctx); err != nil {
				return opts, err
			}
			opts.Ephemeral = !s.Settings.Session.Save
			return opts, s.SessionOptions(&opts)
		}
	}
	return o, nil
}

// The scopes of servers.
const (
	ScopeUser    = "user"
	ScopeProject = "project"
)

// ErrUntrustedServer is wrapped by the problem of a project's server that the
// person does not trust as it is.
var ErrUntrustedServer = errors.New("not trusted")

// Servers are the MCP servers in force: the person's, then the project's. A
// server of a project can be used when the person trusts it as it is. The
// warnings are about what could not be read.
func (s *Setup) Servers() (all []mcp.Configured, warnings []string) {
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

func (s *Setup) findServers() (all []mcp.Configured, warnings []string) {
	own := s.Settings.MCP.Servers
	for _, name := range cmdutil.SortedKeys(own) {
		all = append(all, mcp.Configured{Name: name, Server: own[name], Source: ScopeUser})
	}
	project, warnings, err := config.ProjectServers(s.Dir)
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	trusted, err := s.trustedServers()
	for _, name := range cmdutil.SortedKeys(project) {
		c := mcp.Configured{Name: name, Server: project[name], Source: ScopeProject}
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

func (s *Setup) trustedServers() (map[string]string, error) {
	if s.Home == "" {
		return nil, errors.New("there is no home directory to keep trust in")
	}
	return trust.Open(s.Home).Servers(s.Dir)
}

// distrust says why a project's server may not be used; nil if it may.
func distrust(name, trusted, hash string) error {
	switch trusted {
	case hash:
		return nil
	case "":
		return fmt.Errorf("%w: %s of this directory wants to start it; look at it (agent mcp get %s), then run: agent mcp enable %s", ErrUntrustedServer, mcp.ProjectFile, name, name)
	}
	return fmt.Errorf("%w any more: what %s wants to start has changed since you trusted it; look at it (agent mcp get %s), then run: agent mcp enable %s", ErrUntrustedServer, mcp.ProjectFile, name, name)
}

// mcpOptions describe the MCP servers of an agent.
func (s *Setup) mcpOptions() agent.MCPOptions {
	var o agent.MCPOptions
	if !s.bare {
		o.Servers, _ = s.Servers()
	}
	if s.Home != "" {
		o.Dir = MCPDir(s.Home)
		o.Authorize = s.SignIn(nil).Authorizer()
	}
	return o
}

// MCPDir is where is kept what is known of MCP servers.
func MCPDir(home string) string { return filepath.Join(home, "mcp") }

// mcpSecrets are the values in the settings of servers that records are to hide.
func mcpSecrets(servers []mcp.Configured) []string {
	var list []string
	for _, c := range servers {
		list = append(list, c.Server.Secrets(os.LookupEnv)...)
	}
	return list
}

// MCPWarnings says what of the servers cannot be used, and why.
func (s *Setup) MCPWarnings() []string {
	if s.bare {
		return nil
	}
	servers, warnings := s.Servers()
	host := mcp.NewHost(mcp.HostOptions{Servers: servers}) // it finds what is wrong, and starts nothing
	defer host.Close()
	for _, st := range host.Status() {
		if st.Problem != nil && !st.Server.Disabled {
			warnings = append(warnings, fmt.Sprintf("MCP server %s: %v", st.Name, st.Problem))
		}
	}
	return warnings
}

// Configured finds a server by its name.
func Configured(servers []mcp.Configured, name string) (mcp.Configured, error) {
	var names []string
	for _, c := range servers {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return mcp.Configured{}, cmdutil.Usagef("there is no MCP server %q, nor any other; agent mcp add makes one", name)
	}
	return mcp.Configured{}, cmdutil.Usagef("there is no MCP server %q; there are %s", name, strings.Join(names, ", "))
}
