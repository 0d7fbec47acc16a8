package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type deleteOptions struct {
	*cmdutil.IO
	yes bool
}

func newDeleteCmd(s *cmdutil.IO) *cobra.Command {
	o := &deleteOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete sessions and their saved tool outputs",
		Args:  cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

// run deletes nothing unless all sessions exist.
func (o *deleteOptions) run(ctx context.Context, prefixes []string) error {
	var home string
	var ids []string
	for _, prefix := range prefixes {
		h, id, err := setup.FindSession(o.IO, prefix)
		if err != nil {
			return err
		}
		home, ids = h, append(ids, id)
	}
	question := fmt.Sprintf("Permanently delete %s (%s)?", display.Plural(len(ids), "session"), strings.Join(ids, ", "))
	if ok, err := o.Confirm(ctx, question, o.yes); err != nil {
		return err
	} else if !ok {
		fmt.Fprintln(o.Err, "Nothing was deleted.")
		return nil
	}
	var failed []error
	for _, id := range ids {
		if err := agent.DeleteSession(home, id); err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(o.Out, "Deleted %s.\n", id)
	}
	return errors.Join(failed...)
}
