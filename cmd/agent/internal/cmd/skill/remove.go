package skill

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/bundle"
)

type removeOptions struct {
	installedOptions
	force bool
}

func newRemoveCmd(s *cmdutil.IO) *cobra.Command {
	o := &removeOptions{}
	o.IO = s
	cmd := &cobra.Command{
		Use:     "remove NAME…",
		Aliases: []string{"rm"},
		Short:   "Remove installed skills",
		Args:    cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&o.force, "force", false, "discard your changes to them")
	return cmd
}

func (o *removeOptions) run(ctx context.Context, names []string) error {
	if err := o.open(); err != nil {
		return err
	}
	var done []outcome
	for _, name := range names {
		if err := o.remove(ctx, name); err != nil {
			return errors.Join(o.report(done), err)
		}
		done = append(done, outcome{Name: name, Result: resultRemoved})
	}
	return o.report(done)
}

func (o *removeOptions) remove(ctx context.Context, name string) error {
	err := o.installer.Remove(ctx, name, o.force)
	switch {
	case errors.Is(err, bundle.ErrNotInstalled):
		return fmt.Errorf("no installed skill %q in %s; delete a skill of yours yourself, or disable it: agent skills disable %s", name, o.installer.Dir(), name)
	case errors.Is(err, bundle.ErrLocalEdits):
		return fmt.Errorf("%w: see agent skills verify %s, or discard the edits with --force", err, name)
	}
	return err
}
