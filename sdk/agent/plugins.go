package agent

import (
	"context"
	"slices"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/sensitive"
	"github.com/seed-009c0928/agent/core/worktree"
	"github.com/seed-009c0928/agent/plugins"
)

// openPlugins opens the plugin host and adds the plugins' tools. A plugin that
// cannot be used is left out and reported by PluginErrors.
func (a *Agent) openPlugins(ctx context.Context) error {
	if a.opts.Plugins == nil {
		return nil
	}
	a.plugins = plugins.Open(ctx, a.pluginOptions())
	for _, p := range a.plugins.Plugins() {
		var set core.Toolset = watched{p, a}
		if p.Name() == "lsp" && p.Scope() == plugins.Bundled {
			a.servers = newLanguageServers(p)
			set = a.servers
		}
		if err := a.tools.Add(ctx, set); err != nil { // its name is taken
			if ctx.Err() != nil {
				return err
			}
			a.pluginErrs = append(a.pluginErrs, &plugins.Error{Plugin: p.Name(), Err: err})
		}
	}
	return nil
}

// pluginOptions returns the host's options, completed by what the agent knows.
func (a *Agent) pluginOptions() plugins.Options {
	o, info := *a.opts.Plugins, a.env.Info()
	o.Supervisor, o.Version, o.Logger = a.commands, a.opts.Version, a.opts.Logger
	o.Started, o.Sample = a.sourceStarted("plugin"), a.sampleFor
	if o.Sandbox == "" && a.opts.Sandbox != nil {
		o.Sandbox = a.opts.Sandbox.Plugins
	}
	o.Protect = func(name string, p *sandbox.Profile, read, write []string) {
		p.Masked = append(p.Masked, secretsIn(slices.Concat(read, write))...)
		if len(write) > 0 {
			env.Protect(p, sensitive.ProtectedNames())
			a.confined.set(name, confinedProcess{p, write})
		}
	}
	o.Masked = append(slices.Clone(o.Masked), a.masked()...)
	if o.Workspace == "" && info.OS != "" {
		o.Workspace = a.opts.Dir
		if a.opts.Env == nil { // on this machine
			o.Workspace = info.Dir
			o.Worktrees = worktree.Dir(a.home(), info.Dir)
		}
	}
	return o
}

// Plugins returns the plugin host; nil without plugins.
func (a *Agent) Plugins() *plugins.Host { return a.plugins }

// PluginErrors returns an error for each plugin that was left out.
func (a *Agent) PluginErrors() []error {
	if a.plugins == nil {
		return nil
	}
	errs := slices.Clone(a.pluginErrs)
	for _, e := range a.plugins.Broken() {
		errs = append(errs, e)
	}
	return errs
}

// withPlugins adds the plugins' context sources and their secrets, to hide them.
func (a *Agent) withPlugins(cfg *core.Config) {
	if a.plugins == nil {
		return
	}
	cfg.Context = append(cfg.Context[:len(cfg.Context):len(cfg.Context)], a.plugins.ContextSources()...)
	cfg.Secrets = append(cfg.Secrets[:len(cfg.Secrets):len(cfg.Secrets)], secrets(a.plugins.Secrets())...)
}
