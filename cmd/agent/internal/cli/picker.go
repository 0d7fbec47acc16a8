package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// offered is how many sessions a person is shown to choose from.
const offered = 20

func newResume(s *streams) *cobra.Command {
	o := &execOptions{streams: s, shared: &shared{}}
	cmd := &cobra.Command{
		Use:   "resume [ID]",
		Short: "Go on with an earlier session at the terminal",
		Long: "resume goes on with the session of this id, or whose id begins so. Without an id it shows the last\n" +
			"sessions of this directory to choose from.",
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !s.inTTY || !s.outTTY {
				return &usageError{errors.New("resume needs a terminal; without one: agent exec --resume ID PROMPT")}
			}
			if len(args) == 1 {
				o.resume = args[0]
			} else {
				id, err := s.pickSession(cmd.Context(), o.dir)
				if err != nil {
					return err
				}
				o.resume = id
			}
			return o.interactive(cmd.Context(), nil)
		},
	}
	o.shared.register(cmd.Flags())
	cmd.Flags().BoolVar(&o.fork, "fork", false, "go on in a copy, and leave the session as it is")
	return cmd
}

// pickSession lets the person choose one of a directory's sessions.
func (s *streams) pickSession(ctx context.Context, dir string) (string, error) {
	home, err := s.agentHome()
	if err != nil {
		return "", err
	}
	all, err := store.List(agent.SessionsDir(home))
	if err != nil && len(all) == 0 {
		return "", err
	}
	where := s.place(dir)
	p := newPrompter(s)
	var ids []string
	for _, l := range all {
		if l.Cwd != where || l.Parent != "" || len(ids) == offered {
			continue
		}
		ids = append(ids, l.ID)
		p.say("%3d  %s  %6s  %s", len(ids), l.Short, age(time.Since(l.Time)), display.OneLine(l.Text, 60))
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("there is no session of %s to go on with; `agent sessions list --all` lists those of all directories", where)
	}
	return p.option(ctx, "Which one", ids, "1")
}
