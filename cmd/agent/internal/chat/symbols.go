package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins/graph"
)

// symbols finds the symbols of the workspace that resemble a name.
type symbols func(ctx context.Context, name string) []graph.Node

// symbols returns those of the plugin graph.
func (c *chat) symbols(ctx context.Context, name string) []graph.Node {
	return setup.SearchSymbols(ctx, c.agent, name)
}

// mentions returns the mentions that a query may mean, PATH#NAME.
func (find symbols) mentions(ctx context.Context, query string) (names []string) {
	if find == nil {
		return nil
	}
	if _, name, ok := strings.Cut(query, "#"); ok {
		query = name
	}
	for _, n := range find(ctx, query) {
		if name := n.File + "#" + n.Name(); typeable(name) {
			names = append(names, name)
		}
	}
	return names
}

// lines returns the lines that define what is mentioned as PATH#NAME, in the form of a
// mention; empty if that is unknown.
func (find symbols) lines(ctx context.Context, mention string) string {
	file, name, ok := strings.Cut(mention, "#")
	if !ok || find == nil {
		return ""
	}
	for _, n := range find(ctx, name) {
		if n.File == file && n.Name() == name && n.Line > 0 {
			return fmt.Sprintf("%s:%d-%d", file, n.Line, max(n.Line, n.EndLine))
		}
	}
	return ""
}
