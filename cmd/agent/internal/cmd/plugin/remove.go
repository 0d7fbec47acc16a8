package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins"
)

type removeOptions struct {
	options
	discardEdits bool
}

func newRemoveCmd(s *cmdutil.IO) *cobra.Command {
	o := &removeOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:     "remove NAME…",
		Aliases: []string{"rm"},
		Short:   "Remove plugins that you added",
		Args:    cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE:    func(cmd *cobra.Command, names []string) error { return o.run(cmd.Context(), names) },
	}
	cmd.Flags().BoolVar(&o.discardEdits, "discard-edits", false, "remove plugins even if their files were edited")
	return cmd
}

func (o *removeOptions) run(ctx context.Context, names []string) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	var errs []error
	for _, name := range names {
		if err := h.Store().Remove(ctx, name, o.discardEdits); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := o.forget(ctx, h, name); err != nil {
			errs = append(errs, err)
		}
		fmt.Fprintf(o.Out, "Removed %s.\n", name)
	}
	return errors.Join(errs...)
}

// forget removes what the user set for a plugin.
func (o *removeOptions) forget(ctx context.Context, h *host, name string) error {
	var secrets []string
	err := plugins.SetChoices(ctx, h.set.Home, name, func(c *plugins.Choices) {
		secrets = c.Secrets
		*c = plugins.Choices{}
	})
	for _, key := range secrets {
		if gone := o.Keyring.Delete(ctx, setup.PluginSecret(name, key)); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
