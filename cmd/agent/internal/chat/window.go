package chat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/host"
)

// cmdContext reports what fills the context window.
func (c *chat) cmdContext(context.Context, string) (string, error) {
	c.mu.Lock()
	req, last := c.request, c.last
	c.mu.Unlock()
	if req == nil {
		return "No request sent yet.", nil
	}
	c.mu.Lock()
	window := c.opts.Profile.ContextWindow
	c.mu.Unlock()
	return windowReport(req, c.session.Messages(), window, last), nil
}

// cmdCompact replaces the conversation by a summary.
func (c *chat) cmdCompact(ctx context.Context, instructions string) (string, error) {
	_, err := c.session.Run(ctx, host.Command{Type: "compact", Focus: instructions}) // an event tells the outcome
	return "", err
}

// keepRequest remembers the last request, for the report.
func (c *chat) keepRequest(_ context.Context, req *model.Request) error {
	kept := *req
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request = &kept
	return nil
}

// windowReport lists, as Markdown, what the next request contains.
func windowReport(req *model.Request, messages []model.Message, window int, last model.Usage) string {
	var all insight.Shares
	for _, part := range promptParts(req.System) {
		all.Add(part.What, part.Tokens)
	}
	for _, t := range req.Tools {
		all.Add("tools: definitions", (len(t.Name)+len(t.Description)+len(t.Schema))/4)
	}
	for _, m := range messages {
		for _, p := range m.Parts {
			all.Add(insight.SourceOf(m.Role, p), model.Parts{p}.EstimateTokens())
		}
	}
	total := all.Total()
	var b strings.Builder
	b.WriteString("| What | Count | Tokens (estimate) | Share |\n|---|---|---|---|\n")
	all.Sort()
	for _, s := range all {
		fmt.Fprintf(&b, "| %s | %d | %d | %d %% |\n", s.What, s.Count, s.Tokens, 100*s.Tokens/max(1, total))
	}
	fmt.Fprintf(&b, "| **total** | | **%d** | |\n", total)
	if n := last.Total(); n > 0 {
		fmt.Fprintf(&b, "\nThe provider counted %d tokens for the last request and answer, %d of them cached.", n, last.CachedInput)
	}
	if window > 0 {
		fmt.Fprintf(&b, "\nAbout %[2]d %% of the model's %[1]d tokens are used. /compact replaces the conversation by a summary.", window, 100*max(total, last.Total())/window)
	}
	return b.String()
}

// promptParts splits a system prompt into its parts.
func promptParts(prompt string) []insight.Share {
	tags := map[string]string{"environment": "prompt: environment", "git": "prompt: repository", "project_instructions": "prompt: project documents"}
	var parts []insight.Share
	rest := len(prompt)
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		for from := 0; ; {
			begin := strings.Index(prompt[from:], "\n<"+tag)
			if begin < 0 {
				break
			}
			end := strings.Index(prompt[from+begin:], "</"+tag+">")
			if end < 0 {
				break
			}
			parts = append(parts, insight.Share{What: tags[tag], Tokens: end / 4})
			rest -= end
			from += begin + end
		}
	}
	return append([]insight.Share{{What: "prompt: instructions", Tokens: rest / 4}}, parts...)
}
