package setup

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/bundles"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/skills"
)

// foundBundles is the result of findBundles.
type foundBundles struct {
	list   []plugins.Installed
	values []bundles.Values // of each
	failed []error
}

// bundles returns the bundles of the installed plugins that are enabled. It is safe for
// concurrent use.
func (s *Setup) bundles() *foundBundles {
	s.lookForBundles.Do(func() { s.foundBundles = s.findBundles() })
	return s.foundBundles
}

func (s *Setup) findBundles() *foundBundles {
	f := &foundBundles{}
	if s.bare || !s.Settings.Plugins.Enabled {
		return f
	}
	var all []plugins.Installed
	all, f.failed = plugins.Bundles(context.Background(), s.Home, false)
	for _, b := range all {
		if !slices.Contains(s.Settings.Plugins.Disabled, b.Name) {
			f.list = append(f.list, b)
			f.values = append(f.values, b.Values(s.Dir, s.pluginSecret))
		}
	}
	return f
}

// PluginSecret is the name of the keyring's entry for a secret of a plugin.
func PluginSecret(plugin, key string) string { return "plugin " + plugin + " " + key }

// pluginSecret returns a secret of a plugin; empty if it is not stored.
func (s *Setup) pluginSecret(plugin, key string) string {
	if s.keyring == nil || !s.keyring.Running() {
		return ""
	}
	value, err := s.keyring.Get(context.Background(), PluginSecret(plugin, key))
	if err != nil {
		return ""
	}
	return value
}

// bundleSecrets returns the secrets of the plugins' settings, to be redacted.
func (s *Setup) bundleSecrets() (list []string) {
	for _, v := range s.bundles().values {
		for _, secret := range v.Secrets {
			list = append(list, secret)
		}
	}
	return list
}

// bundleSkills returns the places of the plugins' skills.
func (s *Setup) bundleSkills() (list []skills.Place) {
	f := s.bundles()
	for i, b := range f.list {
		if p := b.SkillPlace(f.values[i]); len(p.Folders) > 0 {
			list = append(list, p)
		}
	}
	return list
}

// bundleAgents returns the plugins' agent types.
func (s *Setup) bundleAgents() (list []subagent.Definition) {
	f := s.bundles()
	for i, b := range f.list {
		list = append(list, b.AgentTypes(f.values[i])...)
	}
	return list
}

// bundleCommands returns the plugins' commands.
func (s *Setup) bundleCommands() (list []CustomCommand) {
	f := s.bundles()
	for i, b := range f.list {
		for _, c := range b.Commands {
			custom := customCommand(c.Command)
			custom.Body, custom.Scope = b.FillText(custom.Body, f.values[i]), "plugin"
			list = append(list, custom)
		}
	}
	return list
}

// bundleServers returns the plugins' MCP servers.
func (s *Setup) bundleServers() (list []mcp.Configured) {
	f := s.bundles()
	for i, b := range f.list {
		list = append(list, b.MCPServers(f.values[i], os.LookupEnv)...)
	}
	return list
}

// bundleHooks adds the hooks of the plugins.
func (s *Setup) bundleHooks() {
	f := s.bundles()
	for i, b := range f.list {
		defs, problems := agent.BundleHooks(&b, f.values[i])
		s.hooks, s.problems = append(s.hooks, defs...), append(s.problems, problems...)
	}
}

// HookProblems returns what is wrong with the hooks of a bundle.
func HookProblems(b *bundles.Bundle) (list []bundles.Unusable) {
	for _, h := range b.Hooks {
		_, problems, err := agent.ParseHooks(hooks.Source{Name: "plugin " + b.Name, Gemini: b.Format == bundles.Gemini}, h.Data)
		if err != nil {
			problems = append(problems, hooks.Problem{Text: err.Error()})
		}
		for _, p := range problems {
			list = append(list, bundles.Unusable{Kind: "hook", Name: strings.TrimSpace(h.Path + " " + p.Event), Reason: p.Text})
		}
	}
	return list
}

// BundleInfo describes the bundle of a plugin on a few words: "2 skills, 1 hook".
func BundleInfo(b *bundles.Bundle) (parts []string) {
	hooks := 0
	for _, s := range b.Skills {
		hooks += len(s.Hooks)
	}
	for _, h := range b.Hooks {
		hooks += len(h.List)
	}
	for _, p := range []struct {
		n    int
		what string
	}{
		{len(b.Skills), "skill"},
		{len(b.Commands), "command"},
		{len(b.Agents), "agent"},
		{len(b.Servers), "MCP server"},
		{len(b.Languages), "language server"},
		{hooks, "hook"},
		{len(b.Context), "context file"},
		{len(b.Settings), "setting"},
	} {
		if p.n > 0 {
			parts = append(parts, display.Plural(p.n, p.what))
		}
	}
	return parts
}
