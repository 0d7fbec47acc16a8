package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// share is what one source takes of the context, in estimated tokens.
type share struct {
	What   string
	Count  int
	Tokens int
}

// remember adds a turn to the conversation that the next request contains.
func (r *record) remember(e event.Event, role model.Role, content model.Parts) {
	// The results of one answer are one turn.
	if last := len(r.parts) - 1; role != model.RoleTool || last < 0 || !strings.HasPrefix(r.parts[last].what, "results: ") {
		r.messages++
	}
	for _, p := range content {
		r.parts = append(r.parts, part{what: sourceOf(role, p), tokens: model.Parts{p}.EstimateTokens(), seq: e.Seq, message: r.messages})
	}
}

// compacted replaces all but the kept turns by the summary.
func (r *record) compacted(e event.Event, b event.Compacted) {
	first := r.messages - b.Kept + 1
	kept := slices.DeleteFunc(slices.Clone(r.parts), func(p part) bool { return p.message < first })
	r.parts = nil
	for _, p := range b.Content {
		r.parts = append(r.parts, part{what: "summary", tokens: model.Parts{p}.EstimateTokens(), seq: e.Seq, message: first - 1})
	}
	r.parts = append(r.parts, kept...)
}

// context returns what the next request contains by source, the largest first.
// The record does not have the definitions of the tools.
func (r *record) context() []share {
	all := []share{}
	add := func(what string, tokens int) {
		i := slices.IndexFunc(all, func(s share) bool { return s.What == what })
		if i < 0 {
			i = len(all)
			all = append(all, share{What: what})
		}
		all[i].Count++
		all[i].Tokens += tokens
	}
	if r.prompt != "" {
		add("system prompt", len(r.prompt)/4)
	}
	for _, p := range r.parts {
		add(p.what, p.tokens)
	}
	slices.SortStableFunc(all, func(a, b share) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return all
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
