package tasks

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins/graph"
)

// graphImpact implements [bead.Impact] with the graph of the workspace. Without one it
// knows nothing.
type graphImpact struct {
	set    *setup.Setup
	tokens int // of the section
	once   sync.Once
	x      *graph.Index // nil without a graph
	users  []string     // the nodes that what the task changed was used by
}

// open returns the index as it was when it was last used, or nil.
func (g *graphImpact) open() *graph.Index {
	set := g.set.Settings.Graph
	g.once.Do(func() {
		if set.Enabled == "off" {
			return
		}
		x, err := graph.Open(g.set.Dir, graph.Options{Cache: filepath.Join(g.set.Home, "plugin-data", "graph"), Languages: set.Languages, Ignore: set.Ignore})
		if err == nil {
			g.x = x
		}
	})
	return g.x
}

// current returns the index, up to date, or nil.
func (g *graphImpact) current(ctx context.Context) *graph.Index {
	x := g.open()
	if x == nil || x.Refresh(ctx) != nil {
		return nil
	}
	return x
}

func (g *graphImpact) close() {
	if g.x != nil {
		_ = g.x.Close() // what it wrote is only a cache
	}
}

// Section implements [bead.Impact].
func (g *graphImpact) Section(ctx context.Context, input string, files, errors []string) string {
	x := g.current(ctx)
	if x == nil || g.tokens == 0 {
		return ""
	}
	var paths []string
	for _, id := range nodesOf(x.Graph(), files) {
		_, name, _ := strings.Cut(id, ":")
		paths = append(paths, name)
	}
	return x.Section(graph.Focus{Input: input, Files: paths, Errors: errors, Tokens: g.tokens, Project: true})
}

// Tests implements [bead.Impact]. What used something that is gone now is only known
// from before.
func (g *graphImpact) Tests(ctx context.Context, files []string) (commands []string) {
	x := g.open()
	if x == nil {
		return nil
	}
	before := x.Graph().Impact(nodesOf(x.Graph(), files)...)
	for _, list := range [][]graph.Affected{before.Functions, before.Tests} {
		for _, a := range list {
			if !slices.Contains(g.users, a.ID) {
				g.users = append(g.users, a.ID)
			}
		}
	}
	if x = g.current(ctx); x == nil {
		return nil
	}
	for _, c := range x.Graph().Impact(append(nodesOf(x.Graph(), files), g.users...)...).Commands {
		commands = append(commands, c.String())
	}
	return commands
}

// Affected implements [bead.Impact].
func (g *graphImpact) Affected(ctx context.Context, files []string) (affected []string) {
	x := g.current(ctx)
	if x == nil {
		return nil
	}
	for _, f := range x.Graph().Impact(nodesOf(x.Graph(), files)...).Files {
		affected = append(affected, f.Path)
	}
	return affected
}

// nodesOf returns the nodes of files. A directory, or a pattern such as dir/*.go, is
// all that is in it.
func nodesOf(g *graph.Graph, files []string) (ids []string) {
	for _, name := range files {
		dir := path.Clean(name)
		if i := strings.IndexAny(name, "*?["); i >= 0 {
			dir = path.Clean(name[:strings.LastIndexByte(name[:i], '/')+1])
		} else if nodes := g.InFile(dir); len(nodes) > 0 {
			ids = append(ids, nodes[0].ID)
			continue
		}
		for _, n := range g.Nodes() {
			if n.Kind == graph.File && (dir == "." || strings.HasPrefix(n.File, dir+"/")) {
				ids = append(ids, n.ID)
			}
		}
	}
	return ids
}
