package plugin

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/sdk"
)

// NewInternalCmd serves a bundled plugin to the agent that started it.
func NewInternalCmd(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use: setup.InternalPlugin + " NAME", Hidden: true, Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			bundled := s.BundledPlugins()
			i := slices.IndexFunc(bundled, func(p sdk.Plugin) bool { return p.Name == args[0] })
			if i < 0 {
				return cmdutil.Usagef("there is no bundled plugin %q", args[0])
			}
			sdk.Serve(bundled[i])
			return nil
		},
	}
}
