package provider

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/chat"
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
			"Nothing is saved before the last question is answered. With NAME, also that of a new provider, the answers\n" +
			"can be piped in, one per line.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, servers, err := o.chosen(cmd.Context(), args)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), name, servers)
		},
	}
}

// Configure returns what asks the questions of agent providers setup about a provider,
// before an interactive session.
func Configure(s *cmdutil.IO) chat.Configure {
	return func(ctx context.Context, name string) error {
		return (&setupOptions{IO: s, follows: true}).run(ctx, name, nil)
	}
}

// chosen returns the provider that the user names or picks, empty for another service,
// and the servers that were looked for.
func (o *setupOptions) chosen(ctx context.Context, args []string) (string, []setup.LocalServer, error) {
	if len(args) > 0 {
		return args[0], nil, nil
	}
	draft, err := setup.NewDraft(o.IO)
	if err != nil {
		return "", nil, err
	}
	if !o.InTTY || !o.OutTTY {
		return "", nil, cmdutil.Usagef("which provider? Pass its NAME, which without a terminal cannot be asked for: %s, or a new one", strings.Join(draft.Settings.Providers.Names(), ", "))
	}
	servers := setup.FindLocalServers(ctx, setup.KnownServers())
	name, err := chat.PickProvider(ctx, o.IO, draft, servers)
	if err != nil {
		err = fmt.Errorf("%w; nothing was written", err)
	}
	return name, servers, err
}

func (o *setupOptions) run(ctx context.Context, name string, servers []setup.LocalServer) error {
	w := &wizard{Prompter: cmdutil.NewPrompter(o.IO), candidates: setup.KnownServers(), name: name, servers: servers, follows: o.follows}
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
