package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// NewCmd returns agent plugins.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	cmd := cmdutil.Group("plugins", "Manage plugins",
		newListCmd(s), newShowCmd(s), newAddCmd(s), newUpdateCmd(s), newRemoveCmd(s), newEnableCmd(s), newDisableCmd(s),
		newConfigCmd(s), newAllowCmd(s), newMarketplaceCmd(s), newSearchCmd(s), newVerifyCmd(s), newLogsCmd(s), newCreateCmd(s), newTestCmd(s), newDevCmd(s), newSealCmd(s))
	cmd.Example = "  agent plugins new weather --lang go\n  agent plugins add ./weather\n  agent plugins list"
	return cmd
}

// options are what the commands share that need to know the plugins.
type options struct {
	*cmdutil.IO
	flags setup.Flags
}

// host is a plugin host with the settings that it was opened with.
type host struct {
	*plugins.Host
	set     *setup.Setup
	agent   *agent.Agent
	bundles []plugins.Installed // including the disabled ones
}

// open opens a host of all plugins, including the disabled ones.
func (o *options) open(ctx context.Context) (*host, error) {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return nil, err
	}
	if set.Home == "" {
		return nil, errors.New("no home directory for plugins: set AGENT_HOME")
	}
	opts := set.PluginOptions()
	opts.Disabled = nil
	opts.Bundles, opts.BrokenBundles = plugins.Bundles(ctx, set.Home, true)
	a, err := set.OpenPlugins(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &host{a.Plugins(), set, a, opts.Bundles}, nil
}

// Close ends all plugins.
func (h *host) Close() error { return h.agent.Close() }

// check returns an error if there is no plugin with this name, not even a broken
// one.
func (h *host) check(name string) error {
	if slices.ContainsFunc(h.Plugins(), func(p *plugins.Plugin) bool { return p.Name() == name }) ||
		slices.ContainsFunc(h.bundles, func(b plugins.Installed) bool { return b.Name == name }) ||
		slices.ContainsFunc(h.Broken(), func(e *plugins.Error) bool { return e.Plugin == name }) {
		return nil
	}
	return fmt.Errorf("no plugin %q; list them with 'agent plugins list'", name)
}

// configurable returns a plugin with its settings.
func (h *host) configurable(name string) (plugins.Installed, error) {
	for _, p := range h.Plugins() {
		if p.Name() == name && p.Scope() != plugins.User {
			return p.Installed()
		}
	}
	return h.bundle(name)
}

// program returns the program of a plugin, or nil.
func (h *host) program(name string) *plugins.Plugin {
	for _, p := range h.Plugins() {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// installed returns the bundle of an installed or linked plugin, or nil.
func (h *host) installed(name string) *plugins.Installed {
	for i := range h.bundles {
		if h.bundles[i].Name == name {
			return &h.bundles[i]
		}
	}
	return nil
}

// bundle returns the bundle of an installed plugin.
func (h *host) bundle(name string) (plugins.Installed, error) {
	if b := h.installed(name); b != nil {
		return *b, nil
	}
	for _, e := range h.Broken() {
		if e.Plugin == name {
			return plugins.Installed{}, e
		}
	}
	if err := h.check(name); err != nil {
		return plugins.Installed{}, err
	}
	return plugins.Installed{}, fmt.Errorf("the plugin %s has a program and nothing else: see 'agent plugins list'", name)
}
