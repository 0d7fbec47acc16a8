package session

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type forkOptions struct {
	*cmdutil.IO
	at uint64 // 0 copies all records
}

func newForkCmd(s *cmdutil.IO) *cobra.Command {
	o := &forkOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "fork ID",
		Short: "Fork a session, optionally at an earlier record",
		Long: "Copy a session's records to a new session and print its ID. The original is not changed and may be in use.\n" +
			"'agent sessions show' prints the record numbers for --at. Tool outputs that the fork refers to are kept,\n" +
			"even if the original is deleted.",
		Example: "  agent sessions fork 0198a2c4 --at 57\n" +
			"  agent exec --resume \"$(agent sessions fork 0198a2c4)\" \"Try it another way\"",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && o.at == 0 {
				return cmdutil.Usagef("--at 0: record numbers start at 1")
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().Uint64Var(&o.at, "at", 0, "copy only the records up to number `SEQ`")
	return cmd
}

func (o *forkOptions) run(ctx context.Context, prefix string) error {
	home, id, err := setup.FindSession(o.IO, prefix)
	if err != nil {
		return err
	}
	fork, err := agent.ForkSession(ctx, home, id, event.Seq(o.at))
	if err != nil {
		return setup.SessionAdvice(err, id)
	}
	_, err = fmt.Fprintln(o.Out, fork)
	return err
}
