package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// reportPlugins tells of the plugins that were left out.
func (s *streams) reportPlugins(a *agent.Agent) {
	for _, err := range a.PluginErrors() {
		fmt.Fprintf(s.err, "agent: %s\n", display.OneLine(err.Error(), 1000))
	}
}

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

// pluginPrompt makes the prompt of a plugin's command of one that begins with
// its /name or /PLUGIN:NAME. Any other stays as it is: it may be a path.
func pluginPrompt(ctx context.Context, a *agent.Agent, prompt string) (string, error) {
	name, args, ok := cutCommand(prompt)
	if !ok || a.Plugins() == nil {
		return prompt, nil
	}
	list := a.Plugins().Commands()
	i := slices.IndexFunc(list, func(c plugins.Command) bool { return name == c.Name || name == c.Plugin+":"+c.Name })
	if i < 0 {
		return prompt, nil
	}
	reply, err := list[i].Run(ctx, core.SessionInfo{Dir: a.Env().Info().Dir}, args)
	switch {
	case err != nil:
		return "", err
	case reply.Prompt == "":
		return "", fmt.Errorf("the command /%s answers you, not the model: enter it in an interactive session", name)
	}
	return reply.Prompt, nil
}
