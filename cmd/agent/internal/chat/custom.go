package chat

import (
	"context"
	"slices"

	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
)

// withCustom adds the custom commands to the built-in ones.
func withCustom(builtin []tui.Command, custom []setup.CustomCommand) []tui.Command {
	out := slices.Clone(builtin)
	for _, c := range custom {
		out = withCommand(out, c.Scope, tui.Command{
			Name: c.Name, Args: c.Hint, Summary: c.Summary + " (" + c.Scope + ")",
			Run: func(_ context.Context, args string) (tui.Result, error) {
				return tui.Result{Prompt: c.Prompt(args)}, nil
			},
		})
	}
	return out
}
