package session

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/dashboard"
	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/cmd/agent/internal/page"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// NewDashboardCmd returns the hidden command that serves the page of all sessions in the
// background.
func NewDashboardCmd(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use:    dashboard.Command,
		Hidden: true,
		Args:   cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			home, err := s.AgentHome()
			if err != nil {
				return err
			}
			return cmdutil.Interruptible(cmd.Context(), func(ctx context.Context) error {
				return dashboard.Serve(ctx, home, os.Stdout, page.NewServer(home, insight.Facts(setup.KnownModels(s))))
			})
		},
	}
}
