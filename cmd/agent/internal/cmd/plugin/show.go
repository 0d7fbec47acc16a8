package plugin

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
)

type showOptions struct {
	options
	json bool
}

func newShowCmd(s *cmdutil.IO) *cobra.Command {
	o := &showOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show what a plugin holds, and what of it is not used",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *showOptions) run(ctx context.Context, name string) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	b, err := h.bundle(name)
	if err != nil {
		return err
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, b)
	}
	fmt.Fprintf(o.Out, "%s (%s) from %s\n", named(plugins.Spec{Name: b.Name, Version: b.Version}), b.Format, display.VisibleLine(b.Source, 300))
	if b.Summary != "" {
		fmt.Fprintf(o.Out, "  %s\n", display.VisibleLine(b.Summary, 300))
	}
	showPieces(o.Out, b.Bundle, nil)
	for _, g := range grants(b.Choices.Allow) {
		fmt.Fprintf(o.Out, "  allowed   %s\n", display.VisibleLine(g, 300))
	}
	return nil
}

// grants lists what the user allowed a plugin's MCP servers.
func grants(m plugins.Manifest) (lines []string) {
	for _, g := range []struct {
		what string
		list []string
	}{{"read", m.Read}, {"write", m.Write}, {"connect to", m.Network}} {
		if len(g.list) > 0 {
			lines = append(lines, g.what+" "+strings.Join(g.list, ", "))
		}
	}
	return lines
}
