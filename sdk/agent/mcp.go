package agent

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/sensitive"
	"github.com/seed-009c0928/agent/mcp"
)

// MCPOptions configure the MCP servers of an agent. A server starts with the first
// call of one of its tools.
type MCPOptions struct {
	Servers []mcp.Configured
	// Dir is a cache of the servers' tools: with it, tools are available before
	// their server starts, and changed definitions are noticed. Empty = no cache.
	Dir string
	// Authorize signs in to HTTP servers; nil signs in nowhere.
	Authorize mcp.Authorizer
	// Command runs the commands in the settings of servers; nil refuses them.
	Command mcp.Command
}

// openMCP opens the MCP host and adds the servers' tools. A server that cannot be
// added is refused; the others work.
func (a *Agent) openMCP(ctx context.Context) {
	o := a.opts.MCP
	if len(o.Servers) == 0 {
		return
	}
	info := a.env.Info()
	connect := mcp.ConnectOptions{
		Supervisor: a.commands, Authorize: o.Authorize, Command: o.Command, Dir: a.opts.Dir, Sample: a.sample, Prepare: a.confine,
		ClientName: "agent", ClientVersion: a.opts.Version,
	}
	if a.opts.Env == nil { // servers run on this machine, so other directories mean nothing to them
		connect.Dir, connect.Roots = info.Dir, info.Roots
	}
	a.mcp = mcp.NewHost(mcp.HostOptions{Servers: o.Servers, Connect: connect, Dir: o.Dir, Logger: a.opts.Logger, Started: a.sourceStarted("mcp")})
	for _, set := range a.mcp.Toolsets() {
		if err := a.tools.Add(ctx, watched{set, a}); err != nil {
			a.mcp.Refuse(set.Name(), err)
		}
	}
}

// confine sets the sandbox of an MCP server's process: that of its settings, or the
// default. A project can add to the default, not replace it.
func (a *Agent) confine(name string, s mcp.Server, spec *proc.Spec) error {
	confined := a.confinesServer(name)
	if s.Sandbox == nil && !confined {
		return nil
	}
	p, err := a.mcpSandbox(), error(nil)
	private := s.Sandbox != nil && s.Sandbox.Private
	switch {
	case private:
		p = a.privateSandbox(s.Sandbox)
	case confined:
		if p, err = a.ownSandbox(); err != nil {
			return err
		}
	}
	if s.Sandbox != nil {
		p.Network = sandbox.Network{Hosts: slices.Clone(s.Sandbox.Hosts)}
		if slices.Contains(s.Sandbox.Hosts, "*") {
			p.Network = sandbox.Network{Full: true}
		}
		if a.widens(name) != nil {
			if len(p.Network.Hosts) == 0 && !p.Network.Full {
				p.Network.Hosts = []string{nowhere}
			}
			p.Network.Refused = func(host, _ string) { a.refusals.host(name, host) }
		}
		for _, path := range s.Sandbox.Writable {
			if !filepath.IsAbs(path) {
				path = filepath.Join(a.env.Info().Dir, path)
			}
			p.Writable = append(p.Writable, path)
		}
	}
	if confined || private {
		p.Masked = slices.DeleteFunc(p.Masked, func(m string) bool { return slices.Contains(p.Writable, m) })
	}
	if private { // its data directory is in the agent's home
		env.Protect(p, sensitive.ProtectedNames())
	} else {
		env.Protect(p, a.protected())
	}
	a.confined.set(name, confinedProcess{p, slices.Clone(p.Writable)})
	spec.Sandbox = p
	return p.Check()
}

// confinesServer reports whether a server is confined by default.
func (a *Agent) confinesServer(name string) bool {
	choice := ConfineProject
	if o := a.opts.Sandbox; o != nil && o.MCPServers != "" {
		choice = o.MCPServers
	}
	i := slices.IndexFunc(a.opts.MCP.Servers, func(c mcp.Configured) bool { return c.Name == name })
	return choice == ConfineAll || choice == ConfineProject && i >= 0 && a.opts.MCP.Servers[i].Project
}

// MCP returns the MCP host; nil without MCP servers.
func (a *Agent) MCP() *mcp.Host { return a.mcp }

// Ready waits until the tools of all required MCP servers are known, for at most
// the start timeout of each. Missing lists the servers whose tools are still
// unknown; the error names the required ones that failed.
func (a *Agent) Ready(ctx context.Context) (missing []string, err error) {
	if a.mcp == nil {
		return nil, nil
	}
	return a.mcp.Ready(ctx)
}

// sample calls the model of a session for an MCP server.
func (a *Agent) sample(ctx context.Context, session core.SessionInfo, req *model.Request) (*model.Response, error) {
	return a.sampleFor(ctx, session, "MCP server", req)
}

// sampleFor calls the model of a session for a plugin or an MCP server. The session
// pays for it and records it.
func (a *Agent) sampleFor(ctx context.Context, session core.SessionInfo, by string, req *model.Request) (*model.Response, error) {
	f, provider, name, err := a.providerOf(session)
	if err != nil {
		return nil, err
	}
	asked := *req
	asked.Model = name
	using, start := provider.Info().Name, time.Now()
	f.note(ctx, event.LLMStart{Provider: using, Model: name, Server: provider.Info().Endpoint, Purpose: by, Messages: len(req.Messages)})
	resp, err := model.Complete(ctx, provider, &asked)
	if err != nil {
		f.note(ctx, event.LLMEnd{Provider: using, Model: name, LatencyMS: time.Since(start).Milliseconds(), Error: err.Error()})
		return nil, err
	}
	if resp.By != nil {
		using, name = resp.By.Name, resp.By.Model
	}
	if resp.Model == "" {
		resp.Model = name
	}
	f.pay(using, name, resp.Usage)
	f.note(ctx, event.LLMEnd{Provider: using, Model: name, Usage: resp.Usage, Stop: resp.Stop, LatencyMS: time.Since(start).Milliseconds()})
	return resp, nil
}

// note records an event in the session.
func (f *node) note(ctx context.Context, body event.Body) {
	f.mu.Lock()
	s := f.session
	f.mu.Unlock()
	if s != nil {
		s.Note(ctx, body)
	}
}

// providerOf returns the provider and the model that a session uses.
func (a *Agent) providerOf(session core.SessionInfo) (*node, model.Provider, string, error) {
	a.mu.Lock()
	f := a.nodes[session.ID]
	a.mu.Unlock()
	if f == nil {
		return nil, nil, "", errors.New("the session has ended")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f, f.cfg.Provider, cmp.Or(f.cfg.Model, f.cfg.Provider.Info().Model), nil
}

// pay adds a model call besides those of the session's loop to what it used.
func (f *node) pay(provider, name string, used model.Usage) {
	f.mu.Lock()
	price := f.cfg.Cost
	f.mu.Unlock()
	usd := 0.0
	if price != nil {
		usd, _ = price(provider, name, used)
	}
	f.mu.Lock()
	f.beside = f.beside.Add(used)
	f.mu.Unlock()
	for at := f; at != nil; at = at.parent {
		at.mu.Lock()
		at.spent = at.spent.Add(used)
		at.cost += usd
		at.mu.Unlock()
	}
	f.shareTokens()
}

// settled returns an outcome with the usage of the calls beside the loop.
func (f *node) settled(out core.Outcome) core.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	out.Usage, f.beside = out.Usage.Add(f.beside), model.Usage{}
	return out
}
