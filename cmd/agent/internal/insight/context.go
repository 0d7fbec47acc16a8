package insight

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// Share is what one source takes of the context window, in estimated tokens.
type Share struct {
	What   string
	Count  int
	Tokens int
}

// Shares adds up what fills the context window by source.
type Shares []Share

// Add counts one part of a source.
func (s *Shares) Add(what string, tokens int) {
	i := slices.IndexFunc(*s, func(x Share) bool { return x.What == what })
	if i < 0 {
		i = len(*s)
		*s = append(*s, Share{What: what})
	}
	(*s)[i].Count++
	(*s)[i].Tokens += tokens
}

// Sort puts the largest first; equal ones stay in the order of their first Add.
func (s Shares) Sort() {
	slices.SortStableFunc(s, func(a, b Share) int { return cmp.Compare(b.Tokens, a.Tokens) })
}

// Total returns the tokens of all sources.
func (s Shares) Total() int {
	total := 0
	for _, x := range s {
		total += x.Tokens
	}
	return total
}

// SourceOf names the source of a part of a message.
func SourceOf(role model.Role, p model.Part) string {
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
