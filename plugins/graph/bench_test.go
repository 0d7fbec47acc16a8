package graph_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/seed-009c0928/agent/plugins/graph"
)

// BenchmarkImpact asks what changes of single symbols of this module may break, and
// BenchmarkSection makes the context for them.
func BenchmarkImpact(b *testing.B) {
	x := open(b, "../..", graph.Options{})
	nodes := sample(x.Graph(), 500)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		x.Graph().Impact(nodes[i%len(nodes)].ID)
	}
}

func BenchmarkSection(b *testing.B) {
	x := open(b, "../..", graph.Options{})
	nodes := sample(x.Graph(), 100)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := nodes[i%len(nodes)]
		x.Section(graph.Focus{Input: "change `" + n.Name() + "`", Files: []string{n.File}, Tokens: 1500})
	}
}

// BenchmarkStart opens the index of this module with nothing changed.
func BenchmarkStart(b *testing.B) {
	o := graph.Options{Cache: b.TempDir()}
	open(b, "../..", o)
	b.ReportAllocs()
	for b.Loop() {
		x, err := graph.Open("../..", o)
		if err == nil {
			err = errors.Join(x.Refresh(b.Context()), x.Close())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// sample returns nodes, the same for the same graph.
func sample(g *graph.Graph, n int) []graph.Node {
	all, random := g.Nodes(), rand.New(rand.NewPCG(1, 2))
	nodes := make([]graph.Node, n)
	for i := range nodes {
		nodes[i] = all[random.IntN(len(all))]
	}
	return nodes
}
