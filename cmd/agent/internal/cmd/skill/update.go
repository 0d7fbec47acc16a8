package skill

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/bundle"
)

type updateOptions struct{ approveOptions }

func newUpdateCmd(s *cmdutil.IO) *cobra.Command {
	o := &updateOptions{}
	o.IO = s
	cmd := &cobra.Command{
		Use:   "update [NAME…]",
		Short: "Update installed skills (default: all)",
		Long:  "Fetch installed skills from their sources again, show what changed, and install what you approve.",
		Args:  cobra.ArbitraryArgs,
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.register(cmd)
	return cmd
}

func (o *updateOptions) run(ctx context.Context, names []string) error {
	if err := o.open(); err != nil {
		return err
	}
	entries, err := o.entries(ctx, names)
	if err != nil {
		return err
	}
	var done []outcome
	var failed []error
	for _, e := range entries {
		d, err := o.update(ctx, e)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, d)
	}
	return errors.Join(append(failed, o.report(done))...)
}

func (o *updateOptions) update(ctx context.Context, e bundle.Entry) (outcome, error) {
	batch, err := o.installer.Update(ctx, e)
	if err != nil {
		return outcome{}, err
	}
	defer batch.Close()
	return o.install(ctx, batch.Offers[0])
}
