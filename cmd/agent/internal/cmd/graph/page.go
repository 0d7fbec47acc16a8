package graph

import (
	"cmp"
	"context"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/page"
	"github.com/seed-009c0928/agent/plugins/graph"
)

// code returns the graph as a page shows it, with the first of some names chosen.
func code(x *graph.Index, chosen []string) (page.Code, error) {
	c := page.Code{Title: "Code of " + filepath.Base(x.Root()), Start: -1}
	at, nodes := map[string]int{}, x.Graph().Nodes()
	inside := map[string]string{} // a file of each directory, in which its package is
	for _, n := range nodes {
		if n.Kind == graph.File {
			inside[path.Dir(n.File)] = n.File
		}
	}
	for i, n := range nodes {
		at[n.ID] = i
		if n.Kind == graph.Package && !strings.Contains(n.ID, "#") {
			n.File = cmp.Or(inside[cmp.Or(n.File, ".")], n.File)
		}
		c.Symbols = append(c.Symbols, page.Symbol{Name: n.Name(), Kind: string(n.Kind), File: n.File, Line: n.Line})
	}
	confidence := map[graph.Confidence]int{graph.High: 0, graph.Medium: 1, graph.Low: 2}
	for _, e := range x.Graph().Edges() {
		sure, known := confidence[e.Confidence]
		switch {
		case e.Kind == graph.Imports:
			sure = 3
		case e.Kind == graph.Contains || !known:
			continue
		}
		c.Uses = append(c.Uses, page.Dependency{From: at[e.From], To: at[e.To], Confidence: sure})
	}
	for _, ids := range x.Graph().Cycles() {
		var files []string
		for _, id := range ids {
			if n, ok := x.Graph().Node(id); ok {
				files = append(files, n.File)
			}
		}
		c.Cycles = append(c.Cycles, files)
	}
	if len(chosen) == 0 {
		return c, nil
	}
	found, err := find(x, chosen)
	if err == nil {
		c.Start = at[found[0].ID]
	}
	return c, err
}

// serve serves the page until Ctrl-C. The code is read again whenever it is loaded.
func (o *options) serve(ctx context.Context, x *graph.Index, chosen []string, browse bool) error {
	if _, err := code(x, chosen); err != nil {
		return err
	}
	var refreshing sync.Mutex
	return o.ServePage(ctx, page.NewCodeServer(func(ctx context.Context) (page.Code, error) {
		refreshing.Lock()
		defer refreshing.Unlock()
		if err := x.Refresh(ctx); err != nil {
			return page.Code{}, err
		}
		return code(x, chosen)
	}), "", browse)
}
