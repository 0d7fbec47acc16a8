package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
)

type allowOptions struct {
	options
	allow plugins.Manifest
	reset bool
}

func newAllowCmd(s *cmdutil.IO) *cobra.Command {
	o := &allowOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:   "allow NAME",
		Short: "Allow a plugin's MCP servers more than their own folder",
		Long: "Add to what the processes of a plugin's MCP servers may access. Without it they see the system's programs, the\n" +
			"plugin's folder, its data directory and the workspace, which they cannot change, and have no network.\n" +
			"Paths begin with $WORKSPACE, $HOME or /.",
		Example: "  agent plugins allow weather --host api.weather.example\n  agent plugins allow files --write '$WORKSPACE' --read '$HOME/notes'",
		Args:    cmdutil.Args(cobra.ExactArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags.Register(cmd.Flags(), setup.SettingsFlags)
	cmd.Flags().StringArrayVar(&o.allow.Network, "host", nil, "host to connect to; * means all")
	cmd.Flags().StringArrayVar(&o.allow.Read, "read", nil, "path to read")
	cmd.Flags().StringArrayVar(&o.allow.Write, "write", nil, "path to read and write")
	cmd.Flags().BoolVar(&o.reset, "reset", false, "withdraw what was allowed before")
	return cmd
}

func (o *allowOptions) run(ctx context.Context, name string) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	if _, err := h.bundle(name); err != nil {
		return err
	}
	if err := plugins.CheckAllow(o.allow); err != nil {
		return &cmdutil.UsageError{Err: err}
	}
	var now plugins.Manifest
	err = plugins.SetChoices(ctx, h.set.Home, name, func(c *plugins.Choices) {
		if o.reset {
			c.Allow = plugins.Manifest{}
		}
		c.Allow.Add(o.allow)
		now = c.Allow
	})
	if err != nil {
		return err
	}
	lines := grants(now)
	if len(lines) == 0 {
		fmt.Fprintf(o.Out, "%s may access nothing more.\n", name)
	}
	for _, g := range lines {
		fmt.Fprintf(o.Out, "%s may %s.\n", name, display.VisibleLine(g, 300))
	}
	return nil
}
