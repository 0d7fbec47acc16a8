package chat

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// offered is how many sessions are listed to choose from.
const offered = 20

// NewResumeCmd returns agent resume.
func NewResumeCmd(s *cmdutil.IO) *cobra.Command {
	o := run.NewOptions(s)
	cmd := &cobra.Command{
		Use:   "resume [ID]",
		Short: "Resume an earlier session interactively",
		Long: "Resume the session with this ID or ID prefix. Without an ID, choose from the latest sessions of this\n" +
			"directory.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !s.InTTY || !s.OutTTY {
				return cmdutil.Usagef("resume needs a terminal; non-interactive: agent exec --resume ID PROMPT")
			}
			if len(args) == 1 {
				o.Resume = args[0]
			} else {
				id, err := pickSession(cmd.Context(), s, o.Dir)
				if err != nil {
					return err
				}
				o.Resume = id
			}
			return Interactive(cmd.Context(), o, nil)
		},
	}
	o.Flags.Register(cmd.Flags(), setup.SessionFlags)
	o.RegisterVerbose(cmd.Flags())
	cmd.Flags().BoolVar(&o.Fork, "fork", false, "resume in a copy and leave the original unchanged")
	return cmd
}

// pickSession lets the user choose one of a directory's sessions.
func pickSession(ctx context.Context, s *cmdutil.IO, dir string) (string, error) {
	home, err := s.AgentHome()
	if err != nil {
		return "", err
	}
	all, err := store.List(agent.SessionsDir(home))
	if err != nil && len(all) == 0 {
		return "", err
	}
	where := s.WorkDir(dir)
	p := cmdutil.NewPrompter(s)
	var ids []string
	for _, l := range all {
		if l.Cwd != where || l.Parent != "" || len(ids) == offered {
			continue
		}
		ids = append(ids, l.ID)
		p.Printf("%3d  %s  %6s  %s", len(ids), l.Short, cmdutil.Age(time.Since(l.Time)), display.OneLine(l.Text, 60))
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("no session to resume in %s; agent sessions list --all lists those of all directories", where)
	}
	return p.Select(ctx, "Session", ids, "1")
}
