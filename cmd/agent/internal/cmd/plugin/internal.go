package plugin

import (
	"fmt"

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
		RunE:   func(_ *cobra.Command, args []string) error { return serve(s.Bundled, args[0]) },
	}
}

func serve(bundled cmdutil.Bundled, name string) error {
	plugin, ok := bundled[name]
	if !ok {
		return fmt.Errorf("no bundled plugin %q", name)
	}
	sdk.Serve(plugin())
	return nil
}
