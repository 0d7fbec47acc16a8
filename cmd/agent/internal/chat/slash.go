package chat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/facts"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// allCommands are all /commands besides those of the terminal itself, as they
// are now: skills, plugins and servers come and go. Of two
// with one name the first has it, the other its full name.
func (c *chat) allCommands() []tui.Command {
	commands := withCustom(c.commands(), c.custom)
	commands = withSkills(commands, c.library)
	commands = withPluginCommands(commands, c.agent, c.session)
	return append(commands, c.promptCommands()...)
}

// withCommand adds a command of a scope. Where its name is taken, by another one
// or by the terminal, it has its full name, SCOPE:NAME.
func withCommand(commands []tui.Command, scope string, c tui.Command) []tui.Command {
	if c.Name == "help" || c.Name == "quit" || slices.ContainsFunc(commands, func(o tui.Command) bool { return o.Name == c.Name }) {
		c.Name = scope + ":" + c.Name
	}
	return append(commands, c)
}

// commands are the session's own /commands besides those of the terminal itself.
func (c *chat) commands() []tui.Command {
	say := func(f func(ctx context.Context, args string) (string, error)) func(context.Context, string) (tui.Result, error) {
		return func(ctx context.Context, args string) (tui.Result, error) {
			text, err := f(ctx, args)
			return tui.Result{Text: text}, err
		}
	}
	return []tui.Command{
		{Name: "model", Args: "[[PROVIDER/]MODEL]", Summary: "show the model, or use another from the next call on", Run: say(c.cmdModel)},
		{Name: "tools", Summary: "list the tools", Run: say(c.cmdTools)},
		{Name: "mcp", Args: "[NAME]", Summary: "show the MCP servers, or one of them", Run: say(c.cmdMCP)},
		{Name: "skills", Summary: "list the skills; /NAME uses one", Run: say(c.cmdSkills)},
		{Name: "plugins", Summary: "list the plugins and what they may do", Run: say(c.cmdPlugins)},
		{Name: "permissions", Summary: "show the mode and the rules", Run: say(c.cmdPermissions)},
		{Name: "config", Summary: "show the settings that are not at their default", Run: say(c.cmdConfig)},
		{Name: "session", Summary: "show this session's id and record", Run: say(c.cmdSession)},
		{Name: "context", Summary: "show what fills the model's context", Run: say(c.cmdContext)},
		{Name: "compact", Args: "[WORDS]", Summary: "summarise the conversation; words say what to heed", Run: say(c.cmdCompact)},
		{Name: "cost", Summary: "show the tokens used and what they cost", Run: say(c.cmdCost)},
		{Name: "resume", Args: "[ID]", Summary: "list this directory's sessions, or go on with one", Run: c.cmdResume},
		{Name: "clear", Summary: "begin a new session", Run: func(context.Context, string) (tui.Result, error) {
			return tui.Result{Next: &tui.Next{Kind: tui.NextNew}}, nil
		}},
	}
}

func (c *chat) cmdModel(ctx context.Context, args string) (string, error) {
	name := strings.TrimSpace(args)
	if name == "" {
		return "The model is `" + c.modelName() + "`. `/model NAME` uses another; `agent models` lists what the endpoint has.", nil
	}
	if strings.ContainsAny(name, " \t\n") {
		return "", fmt.Errorf("%q is no model's name: it has spaces in it", name)
	}
	c.mu.Lock()
	using := c.opts.Provider.Info().Name
	c.mu.Unlock()
	var p model.Provider
	if first, rest, ok := strings.Cut(name, "/"); ok && first != using && slices.Contains(setup.ProviderNames(), first) {
		k, err := setup.FindProvider(first)
		if err != nil {
			return "", err
		}
		if p, err = c.set.Open(ctx, k, rest); err != nil {
			return "", err
		}
		name = rest
	}
	if p != nil {
		using = p.Info().Name
	}
	prof, err := c.set.Profile(using, name)
	if err != nil {
		return "", err
	}
	c.session.SetModel(p, name)
	c.session.SetProfile(prof)
	c.mu.Lock()
	c.model, c.opts.Profile = name, prof
	if p != nil {
		c.opts.Provider = p
	}
	c.mu.Unlock()
	return "From the next call on: `" + c.modelName() + "`, profile " + prof.Name + ".", nil
}

func (c *chat) cmdTools(ctx context.Context, _ string) (string, error) {
	c.mu.Lock()
	table := c.agent.ToolsOf(c.opts.Profile.Name)
	c.mu.Unlock()
	snapshot, err := table.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| Tool | Source | Scopes | Tokens |\n| --- | --- | --- | --- |\n")
	for _, e := range snapshot.Entries() {
		i := setup.ToolInfoOf(e)
		scopes := make([]string, len(i.Scopes))
		for j, s := range i.Scopes {
			scopes[j] = string(s)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d |\n", i.Name, i.Source, strings.Join(scopes, ", "), i.Tokens)
	}
	return b.String(), nil
}

func (c *chat) cmdPermissions(context.Context, string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Mode **%s**.", c.policy.Mode())
	rules := c.policy.Rules()
	if len(rules) == 0 {
		b.WriteString(" No rules; `--allow`, `--deny` and the settings' permissions add some.")
	}
	b.WriteString("\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "- %s `%s` (%s)\n", r.List, r.Rule, r.Where)
	}
	return b.String(), nil
}

func (c *chat) cmdConfig(context.Context, string) (string, error) {
	var b strings.Builder
	for _, f := range c.set.Files {
		fmt.Fprintf(&b, "- `%s` (%s, %s)\n", f.Path, f.Layer, f.Status)
	}
	for _, key := range slices.Sorted(maps.Keys(c.set.Sources)) {
		fmt.Fprintf(&b, "- `%s` from %s\n", key, c.set.Source(key))
	}
	return b.String(), nil
}

func (c *chat) cmdSession(context.Context, string) (string, error) {
	text := "Session `" + c.session.ID() + "`"
	if log := c.session.Log(); log != "" {
		return text + ", written to `" + log + "`. `agent -r " + c.session.ID() + "` goes on with it.", nil
	}
	return text + ", kept in memory only.", nil
}

func (c *chat) cmdCost(context.Context, string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.usage
	text := fmt.Sprintf("%s, %d tokens: %d in (%d cached), %d out (%d reasoning).", cmdutil.Plural(c.calls, "model call"), u.Total(), u.Input, u.CachedInput, u.Output, u.Reasoning)
	switch {
	case c.priced:
		return fmt.Sprintf("%s $%.4f by the prices of %s.", text, c.cost, facts.Date()), nil
	case c.cost > 0:
		return fmt.Sprintf("%s $%.4f, without the calls whose price is not known.", text, c.cost), nil
	}
	return text + " The price of this model is not known; the settings' models may say it.", nil
}

func (c *chat) cmdResume(_ context.Context, args string) (tui.Result, error) {
	dir := agent.SessionsDir(c.set.Home)
	if id := strings.TrimSpace(args); id != "" {
		found, err := store.Find(dir, id)
		if err != nil {
			return tui.Result{}, err
		}
		return tui.Result{Next: &tui.Next{Kind: tui.NextResume, Session: found}}, nil
	}
	all, err := store.List(dir)
	if err != nil && len(all) == 0 {
		return tui.Result{}, err
	}
	var b strings.Builder
	n := 0
	for _, s := range all {
		if s.Cwd != c.set.Dir || s.ID == c.session.ID() {
			continue
		}
		if n++; n > 10 {
			break
		}
		fmt.Fprintf(&b, "- `/resume %s` %s ago: %s\n", s.ID, time.Since(s.Time).Round(time.Minute), display.OneLine(s.Text, 60))
	}
	if n == 0 {
		return tui.Result{Text: "There is no other session of this directory."}, nil
	}
	return tui.Result{Text: b.String()}, nil
}
