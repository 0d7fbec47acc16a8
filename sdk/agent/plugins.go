package agent

import (
	"context"
	"slices"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/plugins"
)

// openPlugins opens the host of the plugins and adds their tools. A plugin that
// cannot be used is left out; PluginErrors tells of it.
func (a *Agent) openPlugins(ctx context.Context) error {
	if a.opts.Plugins == nil {
		return nil
	}
	o, info := *a.opts.Plugins, a.env.Info()
	o.Supervisor, o.Version, o.Logger = a.commands, a.opts.Version, a.opts.Logger
	if o.Workspace == "" && info.OS != "" {
		o.Workspace = a.opts.Dir
		if a.opts.Env == nil { // then it is this machine's
			o.Workspace = info.Dir
		}
	}
	a.plugins = plugins.Open(ctx, o)
	for _, p := range a.plugins.Plugins() {
		if err := a.tools.Add(ctx, p); err != nil { // its name is that of another source
			if ctx.Err() != nil {
				return err
			}
			a.pluginErrs = append(a.pluginErrs, &plugins.Error{Plugin: p.Name(), Err: err})
		}
	}
	return nil
}

// Plugins returns the host of the plugins; nil without.
func (a *Agent) Plugins() *plugins.Host { return a.plugins }

// PluginErrors says which plugins were left out, and why.
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

// withPlugins adds what plugins add to sessions: context, and secrets of theirs
// that are to be hidden.
func (a *Agent) withPlugins(cfg *core.Config) {
	if a.plugins == nil {
		return
	}
	cfg.Context = append(cfg.Context[:len(cfg.Context):len(cfg.Context)], a.plugins.ContextSources()...)
	cfg.Secrets = append(cfg.Secrets[:len(cfg.Secrets):len(cfg.Secrets)], secrets(a.plugins.Secrets())...)
}
