package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins/graph"
)

// NewCmd returns agent graph.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("graph", "Show what code depends on what, and what a change may break",
		newBuildCmd(s), newShowCmd(s), newImpactCmd(s), newTestCmd(s), newWhyCmd(s), newCheckCmd(s), newWatchCmd(s), newBenchCmd(s))
}

// options are those of all commands.
type options struct {
	*cmdutil.IO
	flags  setup.Flags
	format string
	json   bool
}

func (o *options) register(cmd *cobra.Command, formats ...string) {
	o.flags.Register(cmd.Flags(), setup.DirFlag)
	if len(formats) == 0 {
		cmdutil.JSONFlag(cmd, &o.json)
		return
	}
	cmd.Flags().StringVar(&o.format, "format", "text", "output `FORMAT`: "+strings.Join(formats, ", "))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains(formats, o.format) {
			return cmdutil.Usagef("--format %s: expected %s", o.format, strings.Join(formats, ", "))
		}
		return nil
	}
}

// with opens the index of the workspace, up to date, for a function.
func (o *options) with(ctx context.Context, do func(x *graph.Index) error) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	x, err := graph.Open(set.Dir, graph.Options{
		Cache: filepath.Join(set.Home, "plugin-data", "graph"), Languages: set.Settings.Graph.Languages, Ignore: set.Settings.Graph.Ignore,
	})
	if err != nil {
		return err
	}
	if err := x.Refresh(ctx); err != nil {
		return errors.Join(err, x.Close())
	}
	return errors.Join(do(x), x.Close())
}

// find looks up names, of which any may stand for several nodes.
func find(x *graph.Index, names []string) ([]graph.Node, error) {
	var all []graph.Node
	for _, name := range names {
		if rel, err := filepath.Rel(x.Root(), name); err == nil && filepath.IsAbs(name) {
			name = filepath.ToSlash(rel)
		}
		found, err := x.Graph().Find(name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func newBuildCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Read the code and print what the graph holds",
		Long: "Read the source files that changed and print what the graph holds. The other commands do the same first, so\n" +
			"this one is only needed to look at the figures. The graph is kept below the agent's home.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.with(cmd.Context(), func(x *graph.Index) error {
				sum := x.Summary()
				if o.json {
					return cmdutil.WriteJSON(o.Out, sum)
				}
				o.summary(sum)
				return nil
			})
		},
	}
	o.register(cmd)
	return cmd
}

func (o *options) summary(sum graph.Summary) {
	fmt.Fprintf(o.Out, "%d files, %d lines; %d files changed, in %.0f ms\n", sum.Files, sum.Lines, sum.Changed, sum.Millis)
	counts := func(title string, parts []string) {
		if len(parts) > 0 {
			fmt.Fprintf(o.Out, "%-10s %s\n", title, strings.Join(parts, ", "))
		}
	}
	var languages, nodes, edges, warnings []string
	for _, l := range slices.Sorted(maps.Keys(sum.Languages)) {
		languages = append(languages, fmt.Sprintf("%s %d", l, sum.Languages[l]))
	}
	for _, k := range slices.Sorted(maps.Keys(sum.Nodes)) {
		nodes = append(nodes, fmt.Sprintf("%s %d", k, sum.Nodes[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(sum.Edges)) {
		for _, c := range slices.Sorted(maps.Keys(sum.Edges[k])) {
			edges = append(edges, fmt.Sprintf("%s %s %d", c, k, sum.Edges[k][c]))
		}
	}
	for _, c := range slices.Sorted(maps.Keys(sum.Warnings)) {
		warnings = append(warnings, fmt.Sprintf("%s %d", c, sum.Warnings[c]))
	}
	counts("languages", languages)
	counts("nodes", nodes)
	counts("edges", edges)
	counts("warnings", warnings)
}

func newShowCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	var web, noBrowser bool
	cmd := &cobra.Command{
		Use:   "show [NAME…]",
		Short: "Show what a file or symbol is, who uses it and what it uses",
		Long: "Show what files or symbols are, who uses them and what they use. With --web, serve a page on this machine until\n" +
			"Ctrl-C, and open it: a map of all packages, what a change of a file or symbol may break, and import cycles. The\n" +
			"address contains a random token. --format html prints the page.",
		Example: "  agent graph show core/session.go\n" +
			"  agent graph show Session.Run --format mermaid\n" +
			"  agent graph show --web\n" +
			"  agent graph show --format html > graph.html",
		Args: cmdutil.Args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case web && o.format != "text":
				return cmdutil.Usagef("--web takes no --format")
			case len(args) == 0 && !web && o.format != "html":
				return cmdutil.Usagef("name files or symbols, or use --web or --format html")
			}
			return o.with(cmd.Context(), func(x *graph.Index) error {
				if web {
					return o.serve(cmd.Context(), x, args, !noBrowser)
				}
				if o.format == "html" {
					c, err := code(x, args)
					if err != nil {
						return err
					}
					return c.Export(o.Out)
				}
				nodes, err := find(x, args)
				if err != nil {
					return err
				}
				callers, callees := x.Graph().Neighbours(nodes, true), x.Graph().Neighbours(nodes, false)
				switch o.format {
				case "json":
					return cmdutil.WriteJSON(o.Out, map[string]any{"nodes": nodes, "usedBy": callers, "uses": callees})
				case "dot", "mermaid":
					return o.draw(append(callers, callees...), nodes)
				}
				for _, n := range nodes {
					o.node(n)
				}
				o.edges("Used by", callers, true)
				o.edges("Uses", callees, false)
				return nil
			})
		},
	}
	o.register(cmd, "text", "json", "dot", "mermaid", "html")
	cmd.Flags().BoolVar(&web, "web", false, "show the graph in a browser")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "with --web, print the address without opening it")
	return cmd
}

func (o *options) node(n graph.Node) {
	fmt.Fprintf(o.Out, "%s:%d %s %s\n", display.Printable(n.File), max(n.Line, 1), n.Kind, display.Printable(n.Name()))
	for _, text := range []string{n.Signature, n.Doc} {
		if text != "" {
			fmt.Fprintf(o.Out, "    %s\n", display.OneLine(text, 200))
		}
	}
}

// edges prints edges with the other end of each.
func (o *options) edges(title string, edges []graph.Edge, from bool) {
	if len(edges) == 0 {
		return
	}
	fmt.Fprintf(o.Out, "%s (%d):\n", title, len(edges))
	for _, e := range edges {
		other := e.To
		if from {
			other = e.From
		}
		fmt.Fprintf(o.Out, "  %s\n", display.Printable(fmt.Sprintf("%s  %s:%d %s%s", short(other), e.File, e.Line, e.Kind, confidence(e.Confidence))))
	}
}

// short returns an ID without its language.
func short(id string) string {
	_, rest, _ := strings.Cut(id, ":")
	return rest
}

func confidence(c graph.Confidence) string {
	if c == graph.High {
		return ""
	}
	return ", " + string(c) + " confidence"
}

// arrow returns how a format draws an edge, dashed if it is not sure.
func arrow(format string, sure bool) string {
	switch {
	case format == "dot" && sure:
		return "  %s -> %s;\n"
	case format == "dot":
		return "  %s -> %s [style=dashed];\n"
	case sure:
		return "  %s --> %s\n"
	}
	return "  %s -.-> %s\n"
}

// draw prints edges as a drawing in DOT or Mermaid, with some nodes marked.
func (o *options) draw(edges []graph.Edge, marked []graph.Node) error {
	names := map[string]string{}
	name := func(id string) string {
		if names[id] == "" {
			names[id] = fmt.Sprintf("n%d", len(names)+1)
		}
		return names[id]
	}
	for _, n := range marked {
		name(n.ID)
	}
	var body strings.Builder
	seen := map[string]bool{}
	for _, e := range edges {
		if key := e.From + " " + e.To; !seen[key] {
			seen[key] = true
			fmt.Fprintf(&body, arrow(o.format, e.Confidence == graph.High), name(e.From), name(e.To))
		}
	}
	ids := slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return len(names[a])*1000 + strings.Compare(names[a], names[b]) - len(names[b])*1000
	})
	label := func(id string) string {
		return strings.NewReplacer(`"`, "'", `\`, "/").Replace(display.OneLine(short(id), 120))
	}
	isMarked := func(id string) bool {
		return slices.ContainsFunc(marked, func(n graph.Node) bool { return n.ID == id })
	}
	if o.format == "dot" {
		fmt.Fprint(o.Out, "digraph {\n  rankdir=LR;\n  node [shape=box];\n")
		for _, id := range ids {
			bold := ""
			if isMarked(id) {
				bold = " style=bold"
			}
			fmt.Fprintf(o.Out, "  %s [label=\"%s\"%s];\n", names[id], label(id), bold)
		}
		_, err := fmt.Fprintf(o.Out, "%s}\n", body.String())
		return err
	}
	fmt.Fprint(o.Out, "flowchart LR\n")
	for _, id := range ids {
		open, shut := "[", "]"
		if isMarked(id) {
			open, shut = "[[", "]]"
		}
		fmt.Fprintf(o.Out, "  %s%s\"%s\"%s\n", names[id], open, label(id), shut)
	}
	_, err := fmt.Fprint(o.Out, body.String())
	return err
}

func newWhyCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	cmd := &cobra.Command{
		Use:     "why FROM TO",
		Short:   "Show how one file or symbol depends on another",
		Example: "  agent graph why main Session.Run",
		Args:    cmdutil.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd.Context(), func(x *graph.Index) error {
				from, err := find(x, args[:1])
				if err != nil {
					return err
				}
				to, err := find(x, args[1:])
				if err != nil {
					return err
				}
				steps := shortest(x.Graph(), from, to)
				switch {
				case o.format == "json":
					return cmdutil.WriteJSON(o.Out, steps)
				case o.format != "text":
					return o.draw(steps, append(from, to...))
				case len(steps) == 0:
					return fmt.Errorf("no known dependency of %s on %s", args[0], args[1])
				}
				for _, e := range steps {
					fmt.Fprintln(o.Out, display.Printable(fmt.Sprintf("%s -> %s  %s:%d %s (%s)%s", short(e.From), short(e.To), e.File, e.Line, e.Kind, e.Rule, confidence(e.Confidence))))
				}
				return nil
			})
		},
	}
	o.register(cmd, "text", "json", "dot", "mermaid")
	return cmd
}

// shortest returns the shortest path between any of some nodes.
func shortest(g *graph.Graph, from, to []graph.Node) []graph.Edge {
	best := []graph.Edge{}
	for _, a := range from {
		for _, b := range to {
			if steps := g.Why(a.ID, b.ID); steps != nil && (len(best) == 0 || len(steps) < len(best)) {
				best = steps
			}
		}
	}
	return best
}

func newCheckCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	var fail []string
	kinds := []string{"cycles", "syntax", "unsafe"}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "List import cycles, code that cannot be parsed, and calls that cannot be followed",
		Long: "List files that import each other in a circle, files that cannot be parsed, and calls whose target only shows\n" +
			"when the program runs. With --fail, exit with code 1 if there are any of a kind.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, f := range fail {
				if !slices.Contains(kinds, f) {
					return cmdutil.Usagef("--fail %s: expected %s", f, strings.Join(kinds, ", "))
				}
			}
			return o.with(cmd.Context(), func(x *graph.Index) error { return o.check(x, fail) })
		},
	}
	o.register(cmd)
	cmdutil.ListVar(cmd.Flags(), &fail, "fail", "fail if there are any of these `KINDS`: "+strings.Join(kinds, ", "))
	return cmd
}

func (o *options) check(x *graph.Index, fail []string) error {
	cycles, warnings := x.Graph().Cycles(), x.Graph().Warnings()
	found := map[string]int{"cycles": len(cycles)}
	for _, w := range warnings {
		found[w.Code]++
	}
	if o.json {
		if err := cmdutil.WriteJSON(o.Out, map[string]any{"cycles": cycles, "warnings": warnings}); err != nil {
			return err
		}
	} else {
		for _, c := range cycles {
			var names []string
			for _, id := range c {
				names = append(names, short(id))
			}
			fmt.Fprintf(o.Out, "cycle: %s\n", display.Printable(strings.Join(names, ", ")))
		}
		for _, w := range warnings {
			if w.Code == "other-platform" || w.Code == "ambiguous" {
				continue
			}
			fmt.Fprintf(o.Out, "%s: %s\n", w.Code, display.Printable(fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Text)))
		}
	}
	for _, kind := range fail {
		if found[kind] > 0 {
			return fmt.Errorf("%s: found %d", kind, found[kind])
		}
	}
	return nil
}
