package graph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/plugins/graph"
)

// impactOptions are the options of agent graph impact and test.
type impactOptions struct {
	options
	diff  string
	limit int
	print bool
}

func newImpactCmd(s *cmdutil.IO) *cobra.Command {
	o := &impactOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:   "impact [NAME…]",
		Short: "Show what changing files or symbols may break",
		Long: "Show the files, functions and tests that a change may break: of the files and symbols named, or with --diff of\n" +
			"all that differ from a commit.",
		Example: "  agent graph impact core/session.go#Session.Run\n" +
			"  agent graph impact --diff main",
		Args: cmdutil.Args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.report(cmd.Context(), args, func(r *graph.Report) error {
				switch o.format {
				case "json":
					return cmdutil.WriteJSON(o.Out, r)
				case "dot", "mermaid":
					return o.cone(r)
				}
				o.changed(r)
				_, err := fmt.Fprintln(o.Out, display.Printable(r.Text(o.limit)))
				return err
			})
		},
	}
	o.register(cmd, "text", "json", "dot", "mermaid")
	cmd.Flags().StringVar(&o.diff, "diff", "", "what differs from this `COMMIT` in the working tree")
	cmd.Flags().IntVarP(&o.limit, "limit", "n", 20, "entries of each list in the text")
	return cmd
}

func newTestCmd(s *cmdutil.IO) *cobra.Command {
	o := &impactOptions{options: options{IO: s, format: "text"}}
	cmd := &cobra.Command{
		Use:   "test [NAME…]",
		Short: "Run only the tests that a change may break",
		Long: "Run the tests that may show that a change breaks something: by default of what differs from the last commit,\n" +
			"otherwise of the files and symbols named. Other tests are not run, so run all of them before you publish.",
		Args: cmdutil.Args(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && o.diff == "" {
				o.diff = "HEAD"
			}
			return o.report(cmd.Context(), args, func(r *graph.Report) error { return o.run(cmd.Context(), r) })
		},
	}
	o.flags.Register(cmd.Flags(), setup.DirFlag)
	cmd.Flags().StringVar(&o.diff, "diff", "", "what differs from this `COMMIT` in the working tree (default HEAD if nothing is named)")
	cmd.Flags().BoolVar(&o.print, "print", false, "print the commands instead of running them")
	return cmd
}

// report opens the index and reports on the nodes named, or on a diff.
func (o *impactOptions) report(ctx context.Context, args []string, do func(*graph.Report) error) error {
	if (len(args) > 0) == (o.diff != "") {
		return cmdutil.Usagef("name files or symbols, or use --diff COMMIT")
	}
	return o.with(ctx, func(x *graph.Index) error {
		if o.diff != "" {
			r, err := o.differences(ctx, x)
			if err != nil {
				return err
			}
			return do(r)
		}
		nodes, err := find(x, args)
		if err != nil {
			return err
		}
		var ids []string
		for _, n := range nodes {
			ids = append(ids, n.ID)
		}
		return do(x.Graph().Impact(ids...))
	})
}

func (o *impactOptions) changed(r *graph.Report) {
	if o.diff == "" {
		return
	}
	fmt.Fprintf(o.Out, "Changed since %s: %d symbols\n", o.diff, len(r.Changed))
	for _, name := range r.Unknown {
		fmt.Fprintf(o.Out, "  not in the graph: %s\n", display.Printable(name))
	}
}

// cone draws how the change spreads.
func (o *impactOptions) cone(r *graph.Report) error {
	var edges []graph.Edge
	for _, list := range [][]graph.Affected{r.Functions, r.Tests} {
		for _, a := range list[:min(o.limit, len(list))] {
			edges = append(edges, graph.Edge{From: a.ID, To: a.Via, Confidence: a.Confidence})
		}
	}
	return o.draw(edges, r.Changed[:min(o.limit, len(r.Changed))])
}

// run runs the commands of a report one after the other.
func (o *impactOptions) run(ctx context.Context, r *graph.Report) error {
	o.changed(r)
	if len(r.Tests) == 0 {
		fmt.Fprintln(o.Err, "No test is known to depend on it.")
		return nil
	}
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	var failed []error
	if !o.print {
		fmt.Fprintf(o.Err, "%s in %s\n", display.Plural(len(r.Tests), "test"), display.Plural(len(r.Commands), "command"))
	}
	for _, c := range r.Commands {
		if o.print {
			fmt.Fprintln(o.Out, c)
			continue
		}
		fmt.Fprintln(o.Err, display.OneLine(c.String(), 300))
		cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(set.Dir, c.Dir), o.Out, o.Err
		if err := cmd.Run(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.Args[0], err))
		}
	}
	return errors.Join(failed...)
}

// differences reports on what differs from a commit: what was there then may have
// users that are gone or broken now, so both graphs are asked.
func (o *impactOptions) differences(ctx context.Context, x *graph.Index) (*graph.Report, error) {
	git := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", x.Root(), "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"}, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("git %s: %w: %s", args[0], err, display.OneLine(stderr.String(), 300))
		}
		return out, nil
	}
	if strings.HasPrefix(o.diff, "-") {
		return nil, cmdutil.Usagef("--diff %s: expected a commit", o.diff)
	}
	names, err := git("diff", "--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z", o.diff, "--")
	if err != nil {
		return nil, err
	}
	untracked, err := git("ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	paths := strings.FieldsFunc(string(names)+string(untracked), func(r rune) bool { return r == 0 })
	old, err := o.checkout(ctx, x, git)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(old)
	before, err := graph.Open(old, graph.Options{})
	if err != nil {
		return nil, err
	}
	defer before.Close()
	if err := before.Refresh(ctx); err != nil {
		return nil, err
	}
	return graph.Diff(before.Graph(), x.Graph(), slices.Compact(slices.Sorted(slices.Values(paths)))), nil
}

// checkout writes the source files of a commit to a temporary directory.
func (o *impactOptions) checkout(ctx context.Context, x *graph.Index, git func(...string) ([]byte, error)) (string, error) {
	archive, err := git("archive", "--format=tar", o.diff, "--", ".")
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "agent-graph-")
	if err != nil {
		return "", err
	}
	if err := extract(ctx, archive, dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}
