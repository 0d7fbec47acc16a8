package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/skills"
)

// withSkills adds a /NAME for each skill that a person may call. What is entered
// goes to the session as it is, where the skill's text joins it.
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

// cmdSkills lists the skills as they are now.
func (c *chat) cmdSkills(context.Context, string) (string, error) {
	if c.library == nil {
		return "There are no skills: the settings or --bare leave them out.", nil
	}
	var b strings.Builder
	b.WriteString("| Skill | Scope | State | For |\n| --- | --- | --- | --- |\n")
	for _, s := range c.library.Catalog().Skills {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.Name, s.Scope, s.State, strings.ReplaceAll(display.OneLine(s.Brief, 80), "|", "/"))
	}
	return b.String(), nil
}
