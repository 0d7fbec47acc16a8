package setup

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/plugins/graph"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// graphTools stands for the plugin graph.
type graphTools struct{ asked []string }

func (*graphTools) Name() string             { return "graph" }
func (*graphTools) Changed() <-chan struct{} { return nil }
func (*graphTools) Close() error             { return nil }

func (s *graphTools) Tools(context.Context) ([]core.Tool, error) {
	type args struct{ Query, Name string }
	return []core.Tool{core.NewTool(core.ToolDefinition{Name: "graph_query", Description: "Answers.", Scopes: []core.Scope{core.ScopePlugin}},
		func(context.Context, *core.Call, args) ([]core.Access, error) { return nil, nil },
		func(_ context.Context, call *core.Call, in args) (core.Result, error) {
			s.asked = append(s.asked, in.Query+" "+in.Name)
			data, err := json.Marshal([]graph.Node{{ID: "go:a.go#Do", File: "a.go", Line: 3}})
			return core.Result{Structured: data}, err
		})}, nil
}

// TestSearchSymbols asks for symbols with and without the plugin.
func TestSearchSymbols(t *testing.T) {
	for _, with := range []bool{true, false} {
		o, set := agent.Options{Dir: t.TempDir(), Home: t.TempDir()}, &graphTools{}
		if with {
			o.Toolsets = []core.Toolset{set}
		}
		a, err := agent.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		found := SearchSymbols(t.Context(), a, "do")
		if with != (len(found) == 1 && found[0].Name() == "Do" && found[0].Line == 3 && set.asked[0] == "symbols do") {
			t.Errorf("with the plugin %t: %+v %v", with, found, set.asked)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
