package skill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

type verifyOptions struct {
	installedOptions
	accept bool
}

func newVerifyCmd(s *cmdutil.IO) *cobra.Command {
	o := &verifyOptions{}
	o.IO = s
	cmd := &cobra.Command{
		Use:   "verify [NAME…]",
		Short: "Compare installed skills with what you approved",
		Long: "Hash the files of installed skills and compare them with the lock file. A changed skill is not used until its files\n" +
			"are restored, or accepted with --accept. The exit code is 1 if a skill changed.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&o.accept, "accept", false, "approve the named skills as they are now")
	return cmd
}

func (o *verifyOptions) run(ctx context.Context, names []string) error {
	if o.accept && len(names) == 0 {
		return cmdutil.Usagef("--accept: name the skills whose changes you approve")
	}
	if err := o.open(); err != nil {
		return err
	}
	entries, err := o.entries(ctx, names)
	if err != nil {
		return err
	}
	var done []outcome
	changed := false
	for _, e := range entries {
		d, err := o.verify(ctx, e.Name)
		if err != nil {
			return errors.Join(o.report(done), err)
		}
		changed = changed || d.Result == resultChanged
		done = append(done, d)
	}
	if err := o.report(done); err != nil || !changed {
		return err
	}
	return &cmdutil.StatusError{Code: cmdutil.ExitError}
}

func (o *verifyOptions) verify(ctx context.Context, name string) (outcome, error) {
	e, changes, err := o.installer.Verify(ctx, name)
	if err != nil {
		return outcome{}, fmt.Errorf("skill %s: %w", name, err)
	}
	d := newOutcome(e, resultClean)
	d.Changes = changes
	switch {
	case len(changes) == 0:
	case o.accept:
		d.Result = resultAccepted
		err = o.installer.Accept(ctx, name, time.Now())
	default:
		d.Result = resultChanged
	}
	return d, err
}
