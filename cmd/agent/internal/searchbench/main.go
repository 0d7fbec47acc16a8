package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/bench/page"
)

// goal is how many times the rival's time a search may take.
const goal = 1.3

// errMissed is returned if a goal was missed under -check.
var errMissed = errors.New("goals missed")

// options are the command's flags.
type options struct {
	runs       int
	only, page string
	check      bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "searchbench:", err)
		os.Exit(1)
	}
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("searchbench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.runs, "runs", 7, "runs of each search")
	flags.StringVar(&o.only, "only", "", "only searches whose tree and name, such as \"go: literal\", contain this `text`")
	flags.BoolVar(&o.check, "check", false, "fail if a goal is missed")
	flags.StringVar(&o.page, "page", "", "write the table into this `file`, docs/performance.md")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: see -help for the flags", flags.Arg(0))
	case o.runs < 1:
		return o, fmt.Errorf("-runs %d: at least one run is needed", o.runs)
	case o.page != "" && o.only != "":
		return o, errors.New("-page needs all rows: leave out -only")
	}
	return o, nil
}

// run measures what args ask for and prints the table to stdout.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	programs := findRivals()
	if missing := programs.missing(); missing != "" {
		return fmt.Errorf("%s is not installed: install it, since there is nothing to compare with", missing)
	}
	temp, err := os.MkdirTemp("", "agent-searchbench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	trees, err := corpora(ctx)
	if err != nil {
		return err
	}
	for _, c := range trees {
		if err := c.prepare(temp); err != nil {
			return err
		}
	}
	machine := fmt.Sprintf("%s %s/%s, %d cores%s, %s, %s; medians of %d runs", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), page.Load(), version(ctx, programs.ripgrep), version(ctx, programs.fd), opts.runs)
	fmt.Fprintf(stdout, "%s\n\n", machine)
	var results []*result
	for _, q := range queries() {
		if !strings.Contains(q.corpus+": "+q.name, opts.only) {
			continue
		}
		tree := trees[slices.IndexFunc(trees, func(c *corpus) bool { return c.name == q.corpus })]
		r, err := measure(ctx, q, tree, programs, opts.runs)
		if err != nil {
			return err
		}
		fmt.Fprintln(stderr, strings.Join(r.cells(), "  "))
		results = append(results, r)
	}
	if len(results) == 0 {
		return fmt.Errorf("-only %q matches no search", opts.only)
	}
	if err := printTable(stdout, results); err != nil {
		return err
	}
	if opts.page != "" {
		if err := writePage(opts.page, machine, trees, results); err != nil {
			return err
		}
	}
	if opts.check && slices.ContainsFunc(results, (*result).missed) {
		return errMissed
	}
	return nil
}

// version returns the first line that a program prints about itself.
func version(ctx context.Context, path string) string {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return path
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

func wall(c cost) time.Duration { return c.wall }

func cpu(c cost) time.Duration { return c.cpu }

// middle returns the median of what is measured.
func middle(costs []cost, of func(cost) time.Duration) float64 {
	values := make([]float64, len(costs))
	for i, c := range costs {
		values[i] = float64(of(c)) / float64(time.Millisecond)
	}
	return median(values)
}

// times returns the median ratio of what a and b took in the same round.
func times(a, b []cost, of func(cost) time.Duration) float64 {
	values := make([]float64, len(a))
	for i := range a {
		values[i] = float64(of(a[i])) / float64(max(of(b[i]), time.Microsecond))
	}
	return median(values)
}

func median(values []float64) float64 {
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 1 {
		return values[mid]
	}
	return (values[mid-1] + values[mid]) / 2
}

func (r *result) missed() bool { return times(r.tool, r.rival, wall) > goal }

// columns are the titles of the table.
var columns = []string{"search", "found", "tool", "rg or fd", "ratio", "ratio of CPU time", "floor", "tool's ratio to it"}

func (r *result) cells() []string {
	return []string{
		r.query.corpus + ": " + r.query.name, fmt.Sprint(r.hits),
		fmt.Sprintf("%.3g ms", middle(r.tool, wall)), fmt.Sprintf("%.3g ms", middle(r.rival, wall)),
		fmt.Sprintf("%.2f", times(r.tool, r.rival, wall)), fmt.Sprintf("%.2f", times(r.tool, r.rival, cpu)),
		fmt.Sprintf("%.3g ms", middle(r.base, wall)), fmt.Sprintf("%.2f", times(r.tool, r.base, wall)),
	}
}

func printTable(w io.Writer, results []*result) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, strings.Join(columns, "\t"))
	for _, r := range results {
		line := strings.Join(r.cells(), "\t")
		if r.missed() {
			line += "\tMISSED"
		}
		fmt.Fprintln(table, line)
	}
	return table.Flush()
}
