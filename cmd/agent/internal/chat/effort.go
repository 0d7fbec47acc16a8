package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// efforts are the levels of reasoning effort.
func efforts() []string {
	return []string{string(model.EffortNone), string(model.EffortLow), string(model.EffortMedium), string(model.EffortHigh), string(model.EffortXHigh)}
}

// cmdEffort changes how much the model reasons, from the next call on.
func (c *chat) cmdEffort(ctx context.Context, args string) (string, error) {
	level, levels := strings.TrimSpace(args), efforts()
	if level == "" {
		c.mu.Lock()
		list := tui.List{Title: "How much reasoning?", At: max(0, slices.Index(levels, string(c.opts.Request.Effort)))}
		c.mu.Unlock()
		for _, l := range levels {
			list.Items = append(list.Items, tui.Item{Label: l})
		}
		at, err := c.asker.Choose(ctx, list)
		if err != nil || at < 0 {
			return "", err
		}
		level = levels[at]
	}
	if !slices.Contains(levels, level) {
		return "", fmt.Errorf("unknown effort %q; the levels are %s", level, strings.Join(levels, ", "))
	}
	if err := c.change(ctx, settingEffort, level); err != nil {
		return "", err
	}
	return "The next calls use reasoning effort **" + level + "**, if the model has it.", nil
}

// useEffort changes the reasoning effort of a session.
func (c *chat) useEffort(s *agent.Session, level string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opts.Request.Effort = model.Effort(level)
	s.SetRequest(c.opts.Request)
	return nil
}

func completeEffort(_ context.Context, prefix string) []string {
	return slices.DeleteFunc(efforts(), func(l string) bool { return !strings.HasPrefix(l, prefix) })
}
