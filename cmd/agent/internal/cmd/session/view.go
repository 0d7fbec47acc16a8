package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/cmd/agent/internal/page"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type viewOptions struct {
	*cmdutil.IO
	flags     setup.Flags
	noBrowser bool
}

func newViewCmd(s *cmdutil.IO) *cobra.Command {
	o := &viewOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "view [ID]",
		Short: "Show a session in a browser",
		Long: "Serve a session as a web page on this machine until Ctrl-C, and open it: the conversation, a timeline, tokens,\n" +
			"cost, changes and decisions. The page follows a session that runs. Without ID, it is the session of this\n" +
			"directory that changed last. The address contains a random token, without which nothing is shown.",
		Example: "  agent sessions view\n  agent sessions view 0198a2c4 --no-browser",
		Args:    cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cmdutil.Interruptible(cmd.Context(), func(ctx context.Context) error { return o.run(ctx, args) })
			if errors.Is(err, cmdutil.ErrInterrupted) { // this is how it ends
				return nil
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "print the address without opening it")
	o.flags.Register(cmd.Flags(), setup.DirFlag)
	return cmd
}

func (o *viewOptions) run(ctx context.Context, args []string) error {
	home, id, err := o.find(args)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serve the session: %w", err)
	}
	server := page.NewServer(home, insight.Facts(setup.KnownModels(o.IO)))
	url := server.URL(l, id)
	fmt.Fprintln(o.Out, url)
	fmt.Fprintln(o.Err, "Press Ctrl-C to stop.")
	var opened sync.WaitGroup
	defer opened.Wait()
	if !o.noBrowser {
		opened.Go(func() {
			if err := cmdutil.OpenBrowser(ctx, url); err != nil {
				fmt.Fprintf(o.Err, "agent: open the address in a browser; it could not be opened: %v\n", err)
			}
		})
	}
	return server.Serve(ctx, l)
}

// find returns the session to show.
func (o *viewOptions) find(args []string) (home, id string, err error) {
	if len(args) > 0 {
		return setup.FindSession(o.IO, args[0])
	}
	if home, err = o.AgentHome(); err != nil {
		return "", "", err
	}
	latest, err := store.Latest(agent.SessionsDir(home), o.WorkDir(o.flags.Dir))
	return home, latest.ID, err
}
