package page

import (
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// remember adds a turn to the conversation that the next request contains.
func (r *record) remember(e event.Event, role model.Role, content model.Parts) {
	// The results of one answer are one turn.
	if last := len(r.parts) - 1; role != model.RoleTool || last < 0 || !strings.HasPrefix(r.parts[last].what, "results: ") {
		r.messages++
	}
	for _, p := range content {
		r.parts = append(r.parts, part{what: insight.SourceOf(role, p), tokens: model.Parts{p}.EstimateTokens(), seq: e.Seq, message: r.messages})
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
func (r *record) context() insight.Shares {
	all := insight.Shares{}
	if r.prompt != "" {
		all.Add("system prompt", len(r.prompt)/4)
	}
	for _, p := range r.parts {
		all.Add(p.what, p.tokens)
	}
	all.Sort()
	return all
}
