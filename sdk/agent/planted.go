package agent

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// profiles are the sandboxes of running plugins and MCP servers that can write
// directories, by toolset.
type profiles struct {
	mu  sync.Mutex
	all map[string]confinedProcess
}

// confinedProcess is a process in a sandbox, and the directories of the user that it
// can write.
type confinedProcess struct {
	profile *sandbox.Profile
	dirs    []string
}

func (p *profiles) set(toolset string, c confinedProcess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]confinedProcess{}
	}
	p.all[toolset] = c
}

func (p *profiles) get(toolset string) confinedProcess {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[toolset]
}

// watched is the toolset of a plugin or MCP server. After each call, files that its
// process planted are set aside, as after a command.
type watched struct {
	core.Toolset
	agent *Agent
}

// Tools implements [core.Toolset].
func (w watched) Tools(ctx context.Context) ([]core.Tool, error) {
	tools, err := w.Toolset.Tools(ctx)
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i] = watchedTool{tools[i], w}
	}
	return tools, err
}

type watchedTool struct {
	core.Tool
	set watched
}

// Run implements [core.Tool].
func (t watchedTool) Run(ctx context.Context, call *core.Call) (core.Result, error) {
	a := t.set.agent
	setAside := env.Watch()
	res, err := t.Tool.Run(ctx, call)
	a.offerMore(ctx, t.set.Name(), call, &res)
	process := a.confined.get(t.set.Name())
	if process.profile == nil || len(process.dirs) == 0 || !a.sandboxed(ctx, process.profile.Mode) {
		return res, err
	}
	if notes := setAside(a.protected(), process.profile, process.dirs); len(notes) > 0 {
		res.Content = append(slices.Clone(res.Content), model.Text{Text: "[sandbox: " + strings.Join(notes, "; ") + "]"})
	}
	return res, err
}

// sandboxed reports whether processes with a mode are confined on this machine.
func (a *Agent) sandboxed(ctx context.Context, mode sandbox.Mode) bool {
	level, err := a.commands.Sandbox().Choose(ctx, mode)
	return err == nil && level != sandbox.None
}
