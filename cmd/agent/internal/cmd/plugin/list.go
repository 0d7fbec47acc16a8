package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
)

type listOptions struct {
	options
	json bool
}

func newListCmd(s *cmdutil.IO) *cobra.Command {
	o := &listOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List plugins with their state and permissions",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &o.json)
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	infos := h.infos()
	switch {
	case o.json:
		return cmdutil.WriteJSON(o.Out, infos)
	case len(infos) == 0:
		fmt.Fprintln(o.Err, "No plugins. Add one with 'agent plugins add', or create one with 'agent plugins new'.")
		return nil
	}
	return printPlugins(o.Out, infos)
}

// infos describes the plugins, the broken ones last.
func (h *host) infos() []setup.PluginInfo {
	infos := []setup.PluginInfo{}
	for _, p := range h.Plugins() {
		infos = append(infos, h.set.PluginInfo(p))
	}
	for _, b := range h.bundles {
		if i := slices.IndexFunc(infos, func(i setup.PluginInfo) bool { return i.Name == b.Name }); i >= 0 {
			infos[i].Holds = setup.BundleInfo(b.Bundle)
			continue
		}
		infos = append(infos, h.set.InstalledInfo(b))
	}
	for _, b := range h.Broken() {
		own := func(i setup.PluginInfo) bool { return i.Name == b.Plugin && i.Scope == plugins.User }
		edited := (*plugins.ChecksumError)(nil) // else it may be another plugin of the same name
		if i := slices.IndexFunc(infos, own); i >= 0 && errors.As(b, &edited) && edited.Sealed == "" {
			infos[i].State, infos[i].Problem = "broken", b.Err.Error()
			continue
		}
		infos = append(infos, setup.PluginInfo{Name: b.Plugin, State: "broken", Problem: b.Err.Error(), Tools: []string{}})
	}
	return infos
}

func printPlugins(out io.Writer, infos []setup.PluginInfo) error {
	t := cmdutil.NewTable(out, "NAME", "VERSION", "SCOPE", "STATE", "TOOLS", "PERMISSIONS")
	for _, i := range infos {
		permissions := i.Problem
		if len(i.Holds) > 0 {
			permissions = strings.Join(i.Holds, ", ")
		}
		if i.Manifest != nil && i.State != "broken" {
			permissions = strings.Join(append(i.Holds, i.Manifest.Lines()...), "; ")
		}
		t.Row(display.VisibleLine(i.Name, 40), display.VisibleLine(i.Version, 20), i.Scope, i.State,
			display.VisibleLine(i.ToolNames(), 40), display.VisibleLine(permissions, 300))
	}
	return t.Flush()
}
