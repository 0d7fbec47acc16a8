package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

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
			return o.run(cmd.Context(), args)
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
	return o.ServePage(ctx, page.NewServer(home, insight.Facts(setup.KnownModels(o.IO))), id, !o.noBrowser)
}

// find returns the session to show.
func (o *viewOptions) find(args []string) (home, id string, err error) {
	if len(args) > 0 {
		return setup.FindSession(o.IO, args[0])
	}
	if home, err = o.AgentHome(); err != nil {
		return "", "", err
	}
	dir := o.WorkDir(o.flags.Dir)
	latest, err := store.Latest(agent.SessionsDir(home), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("no session was started in %s: use --cd, or an ID from agent sessions list --all", dir)
	}
	return home, latest.ID, err
}
