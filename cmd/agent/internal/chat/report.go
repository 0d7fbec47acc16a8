package chat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// cmdInsights shows what the sessions of the last 30 days add up to.
func (c *chat) cmdInsights(ctx context.Context, _ string) (string, error) {
	const days = 30
	report, err := insight.Read(ctx, agent.SessionsDir(c.set.Home), days, time.Now(), insight.Facts(setup.KnownModels(c.IO)))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s; `agent insights --days N` for another time.\n", report.Period())
	for _, t := range report.Tables() {
		if len(t.Rows) == 0 {
			continue
		}
		for _, row := range t.Rows {
			row[0] = display.PathTail(cmdutil.Tilde(row[0], c.set.UserHome), 40)
		}
		fmt.Fprintf(&b, "\n**%s**\n\n%s", t.Title, markdownTable(t.Head, t.Rows))
	}
	return b.String(), nil
}

// cmdHooks lists the hooks, and what cannot be used.
func (c *chat) cmdHooks(ctx context.Context, _ string) (string, error) {
	defs, problems := c.set.Hooks()
	more, wrong := c.set.FrontHooks()
	defs, problems = append(defs[:len(defs):len(defs)], more...), append(problems[:len(problems):len(problems)], wrong...)
	if host := c.agent.Plugins(); host != nil {
		for _, e := range hooks.Events() {
			served, wrong := agent.PluginHooks(ctx, host, e)
			defs, problems = append(defs, served...), append(problems, wrong...)
		}
	}
	return hooksPage(defs, problems), nil
}

func hooksPage(defs []hooks.Definition, problems []hooks.Problem) string {
	if len(defs)+len(problems) == 0 {
		return "No hooks. Add them to `hooks` in settings.json."
	}
	var b strings.Builder
	if len(defs) > 0 {
		var rows [][]string
		for _, d := range defs {
			rows = append(rows, []string{string(d.Event), d.Matcher, string(d.Handler.Type), d.Title(), d.Source.Name})
		}
		b.WriteString(markdownTable([]string{"Event", "Matcher", "Kind", "Hook", "Source"}, rows))
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "\n- not used: %s", display.OneLine(p.String(), 300))
	}
	return b.String()
}

// markdownTable returns a table of texts, which may contain anything.
func markdownTable(head []string, rows [][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	for _, cells := range rows {
		for _, cell := range cells {
			if text := strings.NewReplacer("`", "'", "|", "/").Replace(display.OneLine(cell, 60)); text != "" {
				fmt.Fprintf(&b, "| `%s` ", text)
			} else {
				b.WriteString("| ")
			}
		}
		b.WriteString("|\n")
	}
	return b.String()
}
