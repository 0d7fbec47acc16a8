package agent

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/mcp"
)

// MCPOptions are the MCP servers of an agent. Each starts when one of its tools
// is called first.
type MCPOptions struct {
	Servers []mcp.Configured
	// Dir is where is kept what is known of servers: with it, their tools are
	// there before they start, and a definition that changes is noticed. Empty
	// keeps nothing.
	Dir string
	// Authorize signs in to servers that are reached by HTTP; nil signs in
	// nowhere.
	Authorize mcp.Authorizer
}

// openMCP makes the host of the MCP servers and adds their tools. A server that
// cannot be added is refused by name; the others work.
func (a *Agent) openMCP(ctx context.Context) {
	o := a.opts.MCP
	if len(o.Servers) == 0 {
		return
	}
	info := a.env.Info()
	connect := mcp.ConnectOptions{
		Supervisor: a.commands, Authorize: o.Authorize, Dir: a.opts.Dir, Sample: a.sample, Prepare: a.confine,
		ClientName: "agent", ClientVersion: a.opts.Version,
	}
	if a.opts.Env == nil { // servers run on this machine and know no other's directories
		connect.Dir, connect.Roots = info.Dir, info.Roots
	}
	a.mcp = mcp.NewHost(mcp.HostOptions{Servers: o.Servers, Connect: connect, Dir: o.Dir, Logger: a.opts.Logger})
	for _, set := range a.mcp.Toolsets() {
		if err := a.tools.Add(ctx, set); err != nil {
			a.mcp.Refuse(set.Name(), err)
		}
	}
}

// confine puts the process of an MCP server into the sandbox that its settings
// ask for.
func (a *Agent) confine(_ string, s mcp.Server, spec *proc.Spec) error {
	if s.Sandbox == nil {
		return nil
	}
	p := a.ProcessSandbox(core.ScopeMCP)
	for _, path := range s.Sandbox.Writable {
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.env.Info().Dir, path)
		}
		p.Writable = append(p.Writable, path)
	}
	p.Network.Hosts = slices.Clone(s.Sandbox.Hosts)
	if slices.Contains(p.Network.Hosts, "*") {
		p.Network = sandbox.Network{Full: true}
	}
	spec.Sandbox = p
	return p.Check()
}

// MCP returns the host of the MCP servers, nil if there are none.
func (a *Agent) MCP() *mcp.Host { return a.mcp }

// Ready waits for the tools of the MCP servers that are required and not known
// yet, each as long as it may take to start. Missing are the servers of which
// no tools are known; the error names the required ones that failed.
func (a *Agent) Ready(ctx context.Context) (missing []string, err error) {
	if a.mcp == nil {
		return nil, nil
	}
	return a.mcp.Ready(ctx)
}

// sample asks the model of a session on behalf of an MCP server. What it costs
// counts as the session's.
func (a *Agent) sample(ctx context.Context, session core.SessionInfo, req *model.Request) (*model.Response, error) {
	a.mu.Lock()
	f := a.families[session.ID]
	a.mu.Unlock()
	if f == nil {
		return nil, errors.New("the session is over")
	}
	f.mu.Lock()
	provider, name, price := f.cfg.Provider, f.cfg.Model, f.cfg.Cost
	f.mu.Unlock()
	if name == "" {
		name = provider.Info().Model
	}
	asked := *req
	asked.Model = name
	resp, err := model.Complete(ctx, provider, &asked)
	if err != nil {
		return nil, err
	}
	if resp.Model == "" {
		resp.Model = name
	}
	usd := 0.0
	if price != nil {
		usd, _ = price(name, resp.Usage)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spent = f.spent.Add(resp.Usage)
	f.cost += usd
	return resp, nil
}
