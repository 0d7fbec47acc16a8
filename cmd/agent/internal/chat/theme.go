package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
)

// cmdTheme changes the colours, and keeps that in the user's settings.
func (c *chat) cmdTheme(ctx context.Context, args string) (tui.Result, error) {
	name, themes := strings.TrimSpace(args), tui.Themes()
	if name == "" {
		list := tui.List{Title: "Which theme?", At: slices.Index(themes, c.set.Settings.Terminal.Theme)}
		for _, t := range themes {
			list.Items = append(list.Items, tui.Item{Label: t, Detail: themeDetails[t]})
		}
		at, err := c.asker.Choose(ctx, list)
		if err != nil || at < 0 {
			return tui.Result{}, err
		}
		name = themes[at]
	}
	if !slices.Contains(themes, name) {
		return tui.Result{}, fmt.Errorf("unknown theme %q; the themes are %s", name, strings.Join(themes, ", "))
	}
	done := tui.Result{Theme: name, Text: "The theme is now **" + name + "**."}
	c.set.Settings.Terminal.Theme = name
	if c.set.Home == "" {
		return done, nil
	}
	if err := config.UserFile(c.set.Home).Set(ctx, "terminal.theme", name); err != nil {
		return done, fmt.Errorf("the theme is used for this session, but not saved: %w", err)
	}
	return done, nil
}

func completeTheme(_ context.Context, prefix string) []string {
	return slices.DeleteFunc(tui.Themes(), func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

// themeDetails says what the themes are for.
var themeDetails = map[string]string{
	"auto": "suits the terminal's background", "dark": "for dark backgrounds", "light": "for light backgrounds", "high-contrast": "no faint text",
	"colorblind": "orange and blue in place of red and green", "ansi": "the terminal's own 16 colours",
}
