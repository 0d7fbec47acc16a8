package session

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type repairOptions struct {
	*cmdutil.IO
	dryRun bool
}

func newRepairCmd(s *cmdutil.IO) *cobra.Command {
	o := &repairOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "repair ID",
		Short: "Repair a damaged session log",
		Long: "Cut the session log at the first record that cannot be read, since a conversation with gaps is useless.\n" +
			"What is cut off is added to the file ID.jsonl.torn beside the log. If only the last record is incomplete,\n" +
			"as after a crash, resuming the session does the same.",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "report the damage and change nothing")
	return cmd
}

func (o *repairOptions) run(ctx context.Context, prefix string) error {
	home, id, err := setup.FindSession(o.IO, prefix)
	if err != nil {
		return err
	}
	inspect := store.RepairLog
	if o.dryRun {
		inspect = store.Check
	}
	damage, err := inspect(ctx, agent.SessionsDir(home), id)
	if err != nil {
		return err
	}
	return printDamage(o.Out, id, damage)
}

func printDamage(out io.Writer, id string, d *store.Damage) error {
	if d == nil {
		_, err := fmt.Fprintf(out, "Session %s is intact.\n", id)
		return err
	}
	what := fmt.Sprintf("line %d cannot be read", d.Line)
	if d.Torn {
		what = "the last record is incomplete"
	}
	action := "would be cut off"
	if d.Saved != "" {
		action = "moved to " + d.Saved
	}
	_, err := fmt.Fprintf(out, "Session %s: %s (%v).\n%s kept, %s (%s) %s.\n", id, what, d.Err,
		display.Plural(d.Line-1, "record"), display.Plural(d.Lines, "line"), cmdutil.Size(d.Bytes), action)
	return err
}
