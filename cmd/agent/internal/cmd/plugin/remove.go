package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
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
		fmt.Fprintf(o.Out, "Removed %s.\n", name)
	}
	return errors.Join(errs...)
}
