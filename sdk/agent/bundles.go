package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/bundles"
)

// Bundle is a plugin of files, also one for Claude Code, Codex, Cursor or Gemini CLI:
// sessions get its skills, agent types, MCP servers, hooks and context files. Its slash
// commands are left to the program, its language servers and its own program, if any, to
// Options.Plugins. Set either Name or Dir; Options.Home is required.
type Bundle struct {
	// Name is that of a plugin which is installed below Home, as by agent plugins add.
	// Its files must be the approved ones.
	Name string
	// Dir is a folder that is used as it is. You vouch for it: its hooks
	// and MCP servers run, confined, without approval.
	Dir string
	// Settings are values of the plugin's settings by key, secrets included. What is
	// missing is as the user set it, or the default.
	Settings map[string]string
}

// BundleHooks returns the hooks of a bundle, and what cannot be used. Commands read the
// plugin's folder and write its data directory, which is created.
func BundleHooks(b *plugins.Installed, v bundles.Values) (defs []hooks.Definition, problems []hooks.Problem) {
	for _, h := range b.Hooks {
		src := hooks.Source{
			Name: "plugin " + b.Name, File: filepath.Join(b.Dir, h.Path), Gemini: b.Format == bundles.Gemini,
			Vars: b.HookVars(v), Read: []string{b.Dir}, Write: []string{v.Data},
		}
		some, wrong, err := ParseHooks(src, h.Data)
		if err = cmp.Or(os.MkdirAll(v.Data, 0o700), err); err != nil {
			wrong = append(wrong, hooks.Problem{Source: src, Text: err.Error()})
		}
		defs, problems = append(defs, some...), append(problems, wrong...)
	}
	return defs, problems
}

// addBundles adds the bundles to the options.
func (a *Agent) addBundles(ctx context.Context) error {
	if len(a.opts.Bundles) == 0 {
		return nil
	}
	if a.opts.Home == "" {
		return errors.New("agent.Open: Bundles need a Home")
	}
	installed, failed := plugins.Bundles(ctx, a.opts.Home, true)
	for _, wanted := range a.opts.Bundles {
		b, err := wanted.find(a.opts.Home, installed, failed)
		if err != nil {
			return fmt.Errorf("agent.Open: %w", err)
		}
		a.addBundle(b)
	}
	return nil
}

// find reads the bundle.
func (w *Bundle) find(home string, installed []plugins.Installed, failed []error) (*plugins.Installed, error) {
	if (w.Name == "") == (w.Dir == "") {
		return nil, errors.New("a Bundle needs either a Name or a Dir")
	}
	if w.Dir != "" {
		b, err := plugins.InFolder(home, w.Dir, w.Settings)
		if err != nil {
			return nil, fmt.Errorf("the plugin in %s: %w", w.Dir, err)
		}
		return b, nil
	}
	at := slices.IndexFunc(installed, func(b plugins.Installed) bool { return b.Name == w.Name })
	if at < 0 {
		for _, err := range failed {
			if broken := (*plugins.Error)(nil); errors.As(err, &broken) && broken.Plugin == w.Name {
				return nil, err
			}
		}
		return nil, errors.Join(append([]error{fmt.Errorf("no plugin %q with files to use is installed below %s", w.Name, home)}, failed...)...)
	}
	b := installed[at]
	return &b, b.Set(w.Settings)
}

// addBundle adds one to the options, which are the agent's own.
func (a *Agent) addBundle(b *plugins.Installed) {
	o := &a.opts
	workspace := o.Dir
	if info := a.env.Info(); o.Env == nil { // on this machine
		workspace = info.Dir
	}
	v := b.Values(workspace, nil)
	if p := b.SkillPlace(v); len(p.Folders) > 0 {
		o.Skills.Library = o.Skills.Library.With(p)
	}
	o.Agents = slices.Concat(o.Agents, b.AgentTypes(v))
	o.MCP.Servers = slices.Concat(o.MCP.Servers, b.MCPServers(v, os.LookupEnv))
	defs, problems := BundleHooks(b, v)
	o.Hooks = slices.Concat(o.Hooks, defs)
	for _, secret := range v.Secrets {
		o.Secrets = append(slices.Clip(o.Secrets), secret)
	}
	if source := b.ContextSource(); source != nil {
		a.bundled = append(a.bundled, source)
	}
	for _, u := range b.Unusable {
		o.Logger.Warn("a part of a plugin cannot be used", "plugin", b.Name, "part", u.String())
	}
	for _, p := range problems {
		o.Logger.Warn("a hook cannot be used", "hook", p.String())
	}
}

// withBundles adds the context files of the bundles.
func (a *Agent) withBundles(cfg *core.Config) {
	cfg.Context = append(slices.Clip(cfg.Context), a.bundled...)
}
