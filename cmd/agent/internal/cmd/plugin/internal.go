package plugin

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/sdk"
)

// NewInternalCmd returns the hidden command that serves a bundled plugin to the
// agent that started it.
func NewInternalCmd(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use:    setup.InternalPlugin + " NAME",
		Hidden: true,
		Args:   cmdutil.Args(cobra.ExactArgs(1)),
		RunE:   func(_ *cobra.Command, args []string) error { return serve(s.BundledPlugins(), args[0]) },
	}
}

func serve(bundled []sdk.Plugin, name string) error {
	i := slices.IndexFunc(bundled, func(p sdk.Plugin) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("no bundled plugin %q", name)
	}
	sdk.Serve(bundled[i])
	return nil
}
