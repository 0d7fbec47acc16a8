package provider

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

type setupOptions struct {
	*cmdutil.IO
	follows bool // an interactive session follows
}

// NewSetupCmd returns agent providers setup.
func NewSetupCmd(s *cmdutil.IO) *cobra.Command {
	o := &setupOptions{IO: s}
	return &cobra.Command{
		Use:   "setup [NAME]",
		Short: "Configure a provider interactively",
		Long: "Ask for a provider, its endpoint, key and model, test them with one call, and save them in your settings.\n" +
			"Nothing is saved before the last question is answered. Answers can be piped in, one per line.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
}

// Configure returns what asks the questions of agent providers setup about a provider,
// also which one if its name is empty, before an interactive session.
func Configure(s *cmdutil.IO) func(ctx context.Context, name string) error {
	return func(ctx context.Context, name string) error {
		var args []string
		if name != "" {
			args = []string{name}
		}
		return (&setupOptions{IO: s, follows: true}).run(ctx, args)
	}
}

func (o *setupOptions) run(ctx context.Context, args []string) error {
	w := &wizard{Prompter: cmdutil.NewPrompter(o.IO), candidates: setup.KnownServers(), follows: o.follows}
	if len(args) > 0 {
		set, err := setup.NewDraft(o.IO)
		if err == nil {
			w.kind, err = set.FindProvider(args[0])
		}
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := cmdutil.Interrupts(ctx, io.Discard, func() { cancel(cmdutil.ErrInterrupted) })
	err := w.run(ctx)
	if sig := stop(); sig != nil && err != nil {
		err = sig
	}
	if err != nil {
		return fmt.Errorf("%w; nothing was written", err)
	}
	return nil
}
