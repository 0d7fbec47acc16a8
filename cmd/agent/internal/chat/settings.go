package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
)

// cmdConfig shows the settings; on a screen, the user can change them.
func (c *chat) cmdConfig(ctx context.Context, _ string) (tui.Result, error) {
	if !c.asker.Listing() || c.set.Home == "" {
		return tui.Result{Text: c.configText()}, nil
	}
	values := c.set.Values()
	list := tui.List{Title: "Which setting?"}
	for _, v := range values {
		detail := valueText(v.Value)
		if v.Source.Layer > config.LayerDefault {
			detail += " · " + v.Source.String()
		}
		list.Items = append(list.Items, tui.Item{Label: v.Key, Detail: detail})
	}
	list.Preview = func(_ context.Context, at int) string { return config.Describe(values[at].Key) }
	at, err := c.asker.Choose(ctx, list)
	if err != nil || at < 0 {
		return tui.Result{}, err
	}
	return c.editSetting(ctx, values[at])
}

// valueText is a value in one line.
func valueText(value any) string {
	if value == nil {
		return "not set"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return display.OneLine(string(text), 80)
}

// configText lists the files of settings, and what differs from the defaults.
func (c *chat) configText() string {
	var b strings.Builder
	for _, f := range c.set.Files {
		fmt.Fprintf(&b, "- `%s` (%s, %s)\n", f.Path, f.Layer, f.Status)
	}
	for _, key := range slices.Sorted(maps.Keys(c.set.Sources)) {
		fmt.Fprintf(&b, "- `%s` from %s\n", key, c.set.Source(key))
	}
	return b.String()
}

// unsetValue is the choice that removes a setting.
const unsetValue = "(default)"

// editSetting asks for a value until it is valid, and saves it in the user's settings.
func (c *chat) editSetting(ctx context.Context, v config.Value) (tui.Result, error) {
	file := config.UserFile(c.set.Home)
	for why := ""; ; {
		value, ok, err := c.askValue(ctx, v, why)
		if err != nil || !ok {
			return tui.Result{}, err
		}
		if value == unsetValue {
			_, err = file.Unset(ctx, v.Key)
		} else {
			err = file.Set(ctx, v.Key, value)
		}
		if err != nil {
			why = err.Error()
			continue
		}
		done := tui.Result{Text: fmt.Sprintf("`%s` is now %s in `%s`.", v.Key, value, file.Path)}
		if v.Key == "terminal.theme" {
			if done.Theme = value; value == unsetValue {
				done.Theme = "auto"
			}
			return done, nil
		}
		done.Text += " It applies to sessions that start from now on: `/clear` starts one."
		return done, nil
	}
}

// askValue asks for the value of a setting. why is what was wrong with the last one.
func (c *chat) askValue(ctx context.Context, v config.Value, why string) (value string, ok bool, err error) {
	choices := config.Choices(v.Key)
	if _, is := v.Value.(bool); is {
		choices = []string{"true", "false"}
	}
	if len(choices) > 0 {
		list := tui.List{Title: v.Key, Items: []tui.Item{{Label: unsetValue}}}
		for _, choice := range choices {
			if fmt.Sprint(v.Value) == choice {
				list.At = len(list.Items)
			}
			list.Items = append(list.Items, tui.Item{Label: choice})
		}
		at, err := c.asker.Choose(ctx, list)
		if err != nil || at < 0 {
			return "", false, err
		}
		return list.Items[at].Label, true, nil
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{"value": map[string]any{
		"type": "string", "title": v.Key, "description": "text or JSON; empty is the default",
	}}})
	if err != nil {
		return "", false, err
	}
	q := core.Question{Kind: core.QuestionForm, Title: v.Key + " is " + valueText(v.Value), Detail: why, Schema: schema}
	answer, err := c.asker.Ask(ctx, q)
	var values struct{ Value string }
	if err != nil || answer.Choice != core.ChoiceYes || json.Unmarshal(answer.Values, &values) != nil {
		return "", false, err
	}
	if values.Value == "" {
		values.Value = unsetValue
	}
	return values.Value, true, nil
}
