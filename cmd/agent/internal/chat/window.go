package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	r, err := c.session.Run(ctx, host.Command{Type: "compact", Focus: instructions}) // an event tells the outcome
	if err == nil && r.Error != nil {
		err = errors.New(r.Error.Message)
	}
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

// share is what one source takes of the context window.
type share struct {
	what   string
	count  int
	tokens int
}

// shares adds up by source, in order of first appearance.
type shares []share

func (s *shares) add(what string, tokens int) {
	i := slices.IndexFunc(*s, func(x share) bool { return x.what == what })
	if i < 0 {
		i = len(*s)
		*s = append(*s, share{what: what})
	}
	(*s)[i].count++
	(*s)[i].tokens += tokens
}

// windowReport lists, as Markdown, what the next request contains.
func windowReport(req *model.Request, messages []model.Message, window int, last model.Usage) string {
	var all shares
	for _, part := range promptParts(req.System) {
		all.add(part.what, part.tokens)
	}
	for _, t := range req.Tools {
		all.add("tools: definitions", (len(t.Name)+len(t.Description)+len(t.Schema))/4)
	}
	for _, m := range messages {
		for _, p := range m.Parts {
			all.add(sourceOf(m.Role, p), model.Parts{p}.EstimateTokens())
		}
	}
	total := 0
	for _, s := range all {
		total += s.tokens
	}
	var b strings.Builder
	b.WriteString("| What | Count | Tokens (estimate) | Share |\n|---|---|---|---|\n")
	slices.SortStableFunc(all, func(a, b share) int { return cmp.Compare(b.tokens, a.tokens) })
	for _, s := range all {
		fmt.Fprintf(&b, "| %s | %d | %d | %d %% |\n", s.what, s.count, s.tokens, 100*s.tokens/max(1, total))
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
func promptParts(prompt string) []share {
	tags := map[string]string{"environment": "prompt: environment", "git": "prompt: repository", "project_instructions": "prompt: project documents"}
	var parts []share
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
			parts = append(parts, share{what: tags[tag], tokens: end / 4})
			rest -= end
			from += begin + end
		}
	}
	return append([]share{{what: "prompt: instructions", tokens: rest / 4}}, parts...)
}

// sourceOf names the source of a part.
func sourceOf(role model.Role, p model.Part) string {
	switch p := p.(type) {
	case model.ToolResult:
		return "results: " + p.Name
	case model.ToolCall:
		return "tool calls"
	case model.Image:
		return "images"
	case model.Reasoning, model.Opaque:
		return "reasoning"
	case model.Text:
		switch {
		case role == model.RoleAssistant:
			return "answers"
		case strings.HasPrefix(p.Text, "<summary>"):
			return "summary"
		case strings.HasPrefix(p.Text, "<context "):
			return "added context"
		}
	}
	return "your messages"
}
