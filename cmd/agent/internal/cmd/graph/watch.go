package graph

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/plugins/graph"
)

func newWatchCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Keep the graph up to date, and print what each change may break",
		Long: "Watch the source files until Ctrl-C. Each time some change, print them with the number of functions and tests\n" +
			"that a change of them may break, a line or with --json an object each time.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdutil.Interruptible(cmd.Context(), func(ctx context.Context) error {
				return o.with(ctx, func(x *graph.Index) error {
					fmt.Fprintf(o.Err, "Watching %s. Ctrl-C ends it.\n", display.Printable(x.Root()))
					return x.Watch(ctx, func(paths []string) { o.changed(x.Graph(), paths) })
				})
			})
		},
	}
	o.register(cmd)
	return cmd
}

// changed prints what changes of files may break.
func (o *options) changed(g *graph.Graph, paths []string) {
	if len(paths) == 0 {
		return
	}
	var ids []string
	for _, name := range paths {
		if nodes := g.InFile(name); len(nodes) > 0 {
			ids = append(ids, nodes[0].ID)
		}
	}
	r := g.Impact(ids...)
	if o.json {
		_ = cmdutil.WriteJSON(o.Out, map[string]any{"files": paths, "functions": len(r.Functions), "tests": len(r.Tests), "complete": r.Complete})
		return
	}
	fmt.Fprintf(o.Out, "%s: may break %s, %s\n", display.OneLine(strings.Join(paths, " "), 300), display.Plural(len(r.Functions), "function"), display.Plural(len(r.Tests), "test"))
}
