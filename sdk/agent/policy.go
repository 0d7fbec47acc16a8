package agent

import (
	"context"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
)

// newPolicy returns the policy, with what the environment knows.
func (a *Agent) newPolicy(ctx context.Context) (core.Policy, error) {
	if a.opts.Policy != nil {
		return a.opts.Policy, nil
	}
	info, p := a.env.Info(), a.opts.Permissions
	p.Home, p.Workspace, p.Env = info.Home, info.Roots, a.env
	if confines, ok := a.env.(interface{ Sandboxed(context.Context) bool }); ok {
		p.Sandboxed = sync.OnceValue(func() bool { return confines.Sandboxed(context.WithoutCancel(ctx)) })
	}
	p.Sandbox, _ = a.env.(permissions.Sandbox)
	p.Held = a.held
	p.FoldCase = p.FoldCase || info.OS == "windows" || info.OS == "darwin"
	if p.AgentHome == "" {
		p.AgentHome = a.opts.Home
	}
	return permissions.New(p)
}
