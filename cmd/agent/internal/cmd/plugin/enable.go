package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// enableOptions are those of enable and disable.
type enableOptions struct {
	options
	on bool
}

func newEnableCmd(s *cmdutil.IO) *cobra.Command {
	return newSwitchCmd(s, true, "enable NAME…", "Enable plugins")
}

func newDisableCmd(s *cmdutil.IO) *cobra.Command {
	return newSwitchCmd(s, false, "disable NAME…", "Disable plugins without removing them")
}

func newSwitchCmd(s *cmdutil.IO, on bool, use, short string) *cobra.Command {
	o := &enableOptions{options{IO: s}, on}
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE:  func(cmd *cobra.Command, names []string) error { return o.run(cmd.Context(), names) },
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	return cmd
}

func (o *enableOptions) run(ctx context.Context, names []string) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, name := range names {
		if err := h.check(name); err != nil {
			return err
		}
	}
	if err := o.save(ctx, h.set.Home, names); err != nil {
		return err
	}
	return o.report(names)
}

// save writes the plugins to the user's settings.
func (o *enableOptions) save(ctx context.Context, home string, names []string) error {
	return config.UserFile(home).Edit(ctx, func(in *config.Settings) []config.Change {
		list := append([]string{}, in.Plugins.Disabled...)
		for _, name := range names {
			list = slices.DeleteFunc(list, func(n string) bool { return n == name })
			if !o.on {
				list = append(list, name)
			}
		}
		value, _ := json.Marshal(list) // strings cannot fail
		return []config.Change{{Key: "plugins.disabled", Value: string(value)}}
	})
}

// report prints the state of plugins with the new settings: other settings may
// still disable one.
func (o *enableOptions) report(names []string) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		switch {
		case !o.on:
			fmt.Fprintf(o.Out, "Disabled %s.\n", name)
		case !set.PluginOn(name):
			errs = append(errs, fmt.Errorf("plugin %s is still disabled by other settings: see 'agent config list'", name))
		default:
			fmt.Fprintf(o.Out, "Enabled %s.\n", name)
		}
	}
	return errors.Join(errs...)
}
