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

// offered is how many sessions are offered to resume.
const offered = 20

type resumeOptions struct {
	*run.Options
	configure Configure
}

// NewResumeCmd returns agent resume.
func NewResumeCmd(s *cmdutil.IO, configure Configure) *cobra.Command {
	o := &resumeOptions{run.NewOptions(s), configure}
	cmd := &cobra.Command{
		Use:   "resume [ID]",
		Short: "Resume an earlier session interactively",
		Long: "Resume the session with this ID or ID prefix. Without an ID, choose from the latest sessions of this\n" +
			"directory.",
		Args: cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.Flags.Register(cmd.Flags(), setup.SessionFlags)
	o.RegisterVerbose(cmd.Flags())
	cmd.Flags().BoolVar(&o.Fork, "fork", false, "resume in a copy and leave the original unchanged")
	return cmd
}

func (o *resumeOptions) run(ctx context.Context, args []string) (err error) {
	switch {
	case !o.InTTY || !o.OutTTY:
		return cmdutil.Usagef("resume needs a terminal; to resume without one: agent exec --resume ID PROMPT")
	case len(args) == 1:
		o.Resume = args[0]
	default:
		err = cmdutil.Interruptible(ctx, func(ctx context.Context) error {
			o.Resume, err = pickSession(ctx, o.IO, o.Dir)
			return err
		})
	}
	if err != nil {
		return err
	}
	return Interactive(ctx, o.Options, nil, o.configure)
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
		if len(ids) == offered || !resumable(l, where) {
			continue
		}
		ids = append(ids, l.ID)
		p.Printf("%3d  %s  %6s  %s", len(ids), l.Short, cmdutil.Age(time.Since(l.Time)), display.OneLine(l.Text, 60))
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("no session to resume in %s; agent sessions list --all lists those of all directories", where)
	}
	return p.Select(ctx, "Session (number or ID)", ids, "1")
}
