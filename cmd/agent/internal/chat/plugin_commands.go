package chat

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// withPluginCommands adds the plugins' commands to the others.
func withPluginCommands(others []tui.Command, a *agent.Agent, s *agent.Session) []tui.Command {
	if a.Plugins() == nil {
		return others
	}
	out := slices.Clone(others)
	for _, c := range a.Plugins().Commands() {
		out = withCommand(out, c.Plugin, tui.Command{
			Name: c.Name, Args: c.Args, Summary: c.Summary + " (" + c.Plugin + ")",
			Run: func(ctx context.Context, args string) (tui.Result, error) {
				reply, err := c.Run(ctx, core.SessionInfo{ID: s.ID(), Dir: a.Env().Info().Dir}, strings.TrimSpace(args))
				return tui.Result{Text: reply.Text, Prompt: reply.Prompt}, err
			},
		})
	}
	return out
}
