package agent

import (
	"cmp"
	"context"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/registry"
)

// ToolSearch configures when the tools of toolsets are left out of the prompt, so
// that the model has to search for them. The zero value does so if they take more
// than 2 % of the model's context window.
type ToolSearch struct {
	Budget float64 // fraction of the context window for their definitions; 0 = 0.02
	Off    bool    // put all tools in the prompt
	// ByCall makes the model call found tools with call_tool, even if its provider
	// supports deferred tools.
	ByCall bool
}

const (
	searchBudget  = 0.02
	unknownWindow = 32_000 // tokens, of an unknown model
)

// tune sets the budget of a search for a model.
func (t ToolSearch) tune(s *registry.Search, p core.Profile, native bool) {
	if t.Off {
		s.SetBudget(-1, false)
		return
	}
	part := cmp.Or(t.Budget, searchBudget)
	s.SetBudget(int(part*float64(cmp.Or(p.ContextWindow, unknownWindow))), native && !t.ByCall)
}

// keptSources are the toolsets that are always in the prompt, as their tools are
// for finding something.
var keptSources = []string{"skills"}

// ToolsFor returns the tools of a session with a profile, like ToolsOf, and marks
// those that are left out of the prompt if the provider supports deferred tools.
func (a *Agent) ToolsFor(p core.Profile) core.ToolTable {
	s := a.tools.NewSearch(a.ToolsOf(p.Name), keptSources...)
	a.opts.ToolSearch.tune(s, p, true)
	return s
}

// searching is the table of a session's tools with tool search.
type searching struct {
	*registry.Search
	options ToolSearch
}

func (a *Agent) searching(base core.ToolTable, cfg *core.Config) *searching {
	s := &searching{a.tools.NewSearch(base, keptSources...), a.opts.ToolSearch}
	s.adapt(cfg)
	if a.mcp != nil {
		s.Freeze()
	}
	cfg.Context = append(cfg.Context, s.Search)
	return s
}

// adapt configures the search to the model and the profile.
func (s *searching) adapt(cfg *core.Config) {
	s.options.tune(s.Search, cfg.Profile, model.DefersTools(cfg.Provider, cfg.Model))
}

// hooks runs the hooks of the search before those of the host.
func (s *searching) hooks(host core.Hooks) core.Hooks {
	all := host
	all.BeforeModel = func(ctx context.Context, req *model.Request) error {
		if err := s.BeforeModel(ctx, req); err != nil || host.BeforeModel == nil {
			return err
		}
		return host.BeforeModel(ctx, req)
	}
	all.BeforeTool = func(ctx context.Context, call *model.ToolCall) error {
		if err := s.BeforeTool(ctx, call); err != nil || host.BeforeTool == nil {
			return err
		}
		return host.BeforeTool(ctx, call)
	}
	return all
}
