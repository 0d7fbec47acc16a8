package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/skills"
)

// allCommands returns all slash commands but those of package tui, as of now:
// skills, plugins and servers come and go. Of two with the same name, the first
// has it and the other is called SCOPE:NAME.
func (c *chat) allCommands() []tui.Command {
	commands := withCustom(c.commands(), c.custom, c.set.Dir)
	commands = withSkills(commands, c.library)
	commands = withPluginCommands(commands, c.agent, c.session.ID())
	commands = withImpact(commands, c.set.GraphOff)
	return append(commands, c.promptCommands()...)
}

// withCommand adds a command, as SCOPE:NAME if its name is taken.
func withCommand(commands []tui.Command, scope string, c tui.Command) []tui.Command {
	if tui.Reserved(c.Name) || slices.ContainsFunc(commands, func(o tui.Command) bool { return o.Name == c.Name }) {
		c.Name = scope + ":" + c.Name
	}
	return append(commands, c)
}

// commands returns the built-in slash commands of a session.
func (c *chat) commands() []tui.Command {
	text := func(f func(ctx context.Context, args string) (string, error)) func(context.Context, string) (tui.Result, error) {
		return func(ctx context.Context, args string) (tui.Result, error) {
			out, err := f(ctx, args)
			return tui.Result{Text: out}, err
		}
	}
	return strict([]tui.Command{
		{Name: "model", Args: "[[PROVIDER/]MODEL]", Summary: "choose the model, or switch to the one named", Run: text(c.cmdModel), Complete: c.completeModel},
		{Name: "tools", Summary: "list tools", Run: text(c.cmdTools)},
		{Name: "mcp", Args: "[NAME]", Summary: "list MCP servers: turn them on and off, sign in; or show one", Run: text(c.cmdMCP)},
		{Name: "skills", Summary: "choose a skill; /NAME uses one", Run: c.cmdSkills},
		{Name: "plugins", Summary: "list plugins and their permissions", Run: text(c.cmdPlugins)},
		{Name: "mode", Args: "[NAME]", Summary: "show the permission mode, or switch to another", Run: text(c.cmdMode), Complete: c.completeMode},
		{Name: "permissions", Args: "[MODE]", Summary: "show the permission mode and rules, or switch the mode", Run: text(c.cmdPermissions), Complete: c.completeMode},
		{Name: "config", Summary: "show and change settings", Run: c.cmdConfig},
		{Name: "effort", Args: "[LEVEL]", Summary: "choose how much the model reasons", Run: text(c.cmdEffort), Complete: completeEffort},
		{Name: "diff", Summary: "show what this session changed in files", Run: text(c.cmdDiff)},
		{Name: "copy", Args: "[code]", Summary: "copy the last answer, or its last code block, to the clipboard", Run: c.cmdCopy},
		{Name: "theme", Args: "[NAME]", Summary: "choose the colours", Run: c.cmdTheme, Complete: completeTheme},
		{Name: "session", Summary: "show the session ID and log file", Run: text(c.cmdSession)},
		{Name: "context", Summary: "show what fills the context window", Run: text(c.cmdContext)},
		{Name: "compact", Args: "[INSTRUCTIONS]", Summary: "replace the conversation by a summary", Run: text(c.cmdCompact)},
		{Name: "goal", Args: "[TEXT]", Summary: "work until the tests prove that it is done, or continue that", Run: text(c.cmdGoal)},
		{Name: "tasks", Args: "[ID | undo ID]", Summary: "list the tasks of this directory, show the beads of one, or take back what it changed", Run: text(c.cmdTasks)},
		{Name: "undo", Args: "[--overwrite]", Summary: "take back what the last input changed in files", Run: text(c.cmdUndo)},
		{Name: "redo", Summary: "take the last undo back", Run: text(c.cmdRedo)},
		{Name: "rewind", Args: "[N [both|conversation|files]]", Summary: "go back to before an input (Esc Esc)", Run: c.cmdRewind},
		{Name: "cost", Summary: "show token usage and cost", Run: text(c.cmdCost)},
		{Name: "insights", Summary: "show where time, tokens and cost went", Run: text(c.cmdInsights)},
		{Name: "hooks", Summary: "list the hooks, and what cannot be used", Run: text(c.cmdHooks)},
		{Name: "telemetry", Summary: "show where telemetry is sent", Run: text(c.cmdTelemetry)},
		{Name: "resume", Args: "[ID]", Summary: "resume another session, which you choose if you name none", Run: c.cmdResume},
		{Name: "clear", Summary: "start a new session", Run: func(context.Context, string) (tui.Result, error) {
			return tui.Result{Next: &tui.Next{Kind: tui.NextNew}}, nil
		}},
	})
}

// strict makes commands without arguments refuse them.
func strict(commands []tui.Command) []tui.Command {
	for i, c := range commands {
		if c.Args != "" {
			continue
		}
		commands[i].Run = func(ctx context.Context, args string) (tui.Result, error) {
			if args != "" {
				return tui.Result{}, fmt.Errorf("this command takes no arguments, but got %q", args)
			}
			return c.Run(ctx, args)
		}
	}
	return commands
}

// withCustom adds the custom commands, for a session in dir.
func withCustom(builtin []tui.Command, custom []setup.CustomCommand, dir string) []tui.Command {
	out := slices.Clone(builtin)
	for _, c := range custom {
		out = withCommand(out, c.Scope, tui.Command{
			Name: c.Name, Args: c.Hint, Summary: c.Summary + " (" + c.Scope + ")",
			Run: func(_ context.Context, args string) (tui.Result, error) {
				return tui.Result{Prompt: c.Prompt(args, dir)}, nil
			},
		})
	}
	return out
}

// withPluginCommands adds the commands of plugins.
func withPluginCommands(others []tui.Command, a *agent.Agent, session string) []tui.Command {
	if a.Plugins() == nil {
		return others
	}
	out := slices.Clone(others)
	for _, c := range a.Plugins().Commands() {
		out = withCommand(out, c.Plugin, tui.Command{
			Name: c.Name, Args: c.Args, Summary: c.Summary + " (" + c.Plugin + ")",
			Run: func(ctx context.Context, args string) (tui.Result, error) {
				reply, err := c.Run(ctx, core.SessionInfo{ID: session, Dir: a.Env().Info().Dir}, strings.TrimSpace(args))
				return tui.Result{Text: reply.Text, Prompt: reply.Prompt}, err
			},
		})
	}
	return out
}

// withImpact adds /impact, if the plugin graph does not, to say what is missing.
func withImpact(commands []tui.Command, off func() string) []tui.Command {
	if slices.ContainsFunc(commands, func(c tui.Command) bool { return c.Name == "impact" }) {
		return commands
	}
	return append(commands, tui.Command{
		Name: "impact", Args: "NAME…", Summary: "show what changing files or symbols may break; needs the graph, which is off",
		Run: func(context.Context, string) (tui.Result, error) {
			why := off()
			if why == "" {
				why = "The plugin graph does not run; `/plugins` shows its state."
			}
			return tui.Result{Text: why + "\n\nWithout it, `agent graph impact NAME` in a shell shows the same."}, nil
		},
	})
}

// withSkills adds a /NAME for each skill that the user may call. The input goes
// to the session unchanged, which adds the skill's text.
func withSkills(commands []tui.Command, lib *skills.Library) []tui.Command {
	if lib == nil {
		return commands
	}
	out := slices.Clone(commands)
	for _, s := range lib.Catalog().Active() {
		if s.NoUser {
			continue
		}
		out = withCommand(out, string(s.Scope), tui.Command{
			Name: s.Name, Args: s.ArgumentHint, Summary: display.OneLine(s.Brief, 80) + " (skill)",
			Run: func(_ context.Context, args string) (tui.Result, error) {
				return tui.Result{Prompt: strings.TrimSpace("/" + s.FullName() + " " + args)}, nil
			},
		})
	}
	return out
}
