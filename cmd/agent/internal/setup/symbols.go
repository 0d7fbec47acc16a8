package setup

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/plugins/graph"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// symbolChanges returns which definitions differ in two contents of a file.
func symbolChanges(path string, before, after []byte) (list []event.SymbolChange) {
	for _, t := range graph.Touches(path, before, after) {
		list = append(list, event.SymbolChange{Name: t.Name(), Kind: string(t.Kind), Change: t.Change})
	}
	return list
}

// symbolWait is how long a completion waits for the graph, which may just be built.
const symbolWait = time.Second

// SearchSymbols asks the plugin graph for the symbols of the workspace whose names
// resemble a query, the best first. There are none if the plugin is off or still
// reads the code: ask again when the user has typed on.
func SearchSymbols(ctx context.Context, a *agent.Agent, query string) []graph.Node {
	snapshot, err := a.Tools().Snapshot(ctx)
	if err != nil || query == "" {
		return nil
	}
	args, err := json.Marshal(map[string]string{"query": "symbols", "name": query})
	if err != nil {
		return nil
	}
	for _, e := range snapshot.Entries() {
		if e.Source != "graph" || e.Tool.Definition().Name != "graph_query" {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, symbolWait)
		defer cancel()
		res, err := e.Tool.Run(ctx, &core.Call{
			ID: "symbols", Name: e.ModelName, Args: args, Session: core.SessionInfo{Dir: a.Env().Info().Dir},
			Env: core.Restrict(a.Env(), nil, nil), Output: io.Discard, Progress: func(core.Progress) {},
			Ask: func(context.Context, core.Question) (core.Answer, error) {
				return core.Answer{}, core.ErrNonInteractive
			},
		})
		var found []graph.Node
		if err == nil && res.Code == "" && json.Unmarshal(res.Structured, &found) == nil {
			return found
		}
	}
	return nil
}
