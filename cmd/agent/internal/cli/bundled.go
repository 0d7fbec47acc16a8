package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/web"
	"github.com/seed-009c0928/agent/sdk"
)

// bundledPlugins returns the plugins in this program. Each runs in a process of its
// own, which is this program again, and can do nothing that another's could not.
// They are made when they are needed: it takes a while.
func bundledPlugins() []sdk.Plugin { return []sdk.Plugin{web.Plugin(buildVersion())} }

// ownPlugins makes the bundled plugins; nil makes none.
type ownPlugins func() []sdk.Plugin

func (b ownPlugins) all() []sdk.Plugin {
	if b == nil {
		return nil
	}
	return b()
}

// internalPlugin is the hidden command that serves a bundled plugin.
const internalPlugin = "internal-plugin"

// newInternalPlugin serves a bundled plugin to the agent that started it.
func newInternalPlugin(s *streams) *cobra.Command {
	return &cobra.Command{
		Use: internalPlugin + " NAME", Hidden: true, Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			bundled := s.bundled.all()
			i := slices.IndexFunc(bundled, func(p sdk.Plugin) bool { return p.Name == args[0] })
			if i < 0 {
				return &usageError{fmt.Errorf("there is no bundled plugin %q", args[0])}
			}
			sdk.Serve(bundled[i])
			return nil
		},
	}
}

// pluginOptions say which plugins there are and how they run.
func (s *settings) pluginOptions() *plugins.Options {
	set := s.Settings.Plugins
	o := &plugins.Options{
		Home: s.Home, Bundled: s.bundled.all(), Disabled: set.Disabled, UserHome: s.userHome, Sandbox: sandbox.Mode(s.Settings.Sandbox.Plugins),
		Idle: time.Duration(set.IdleSeconds) * time.Second, CallTimeout: time.Duration(set.CallSeconds) * time.Second,
	}
	if self, err := os.Executable(); err == nil {
		o.BundledCommand = []string{self, internalPlugin}
	}
	if s.trusted {
		o.Project = filepath.Join(s.dir, ".agent", "plugins")
	}
	return o
}
