package graph

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/plugins/graph"
)

func newBenchCmd(s *cmdutil.IO) *cobra.Command {
	o := &options{IO: s}
	var truth string
	var mutate, questions int
	cmd := &cobra.Command{
		Use:     "bench",
		Example: "  agent graph bench --mutate 50 -C ~/src/cobra",
		Short:   "Measure the graph of this workspace: time, memory and answers",
		Long: "Copy the source files to a temporary directory and measure there how long the first reading takes, a start with\n" +
			"nothing changed, an edit, and a question.\n\n" +
			"With --truth, measure how often its edges are right: FILE has the facts of a reference parser, a JSON object\n" +
			"per line. docs/graph.md tells their form, and has the figures for well-known repositories.\n\n" +
			"With --questions as well, put questions to the graph's tools and to grep (who calls X, what breaks if X changes) and\n" +
			"measure the tokens of the answers, and how much of what the reference knows they hold.\n\n" +
			"With --mutate, measure how many failing tests \"agent graph impact\" names: in a copy of a Go module, functions\n" +
			"are made to return at once, one after the other, and all tests are run.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if mutate > 0 {
				return o.mutate(cmd.Context(), mutate)
			}
			if questions > 0 && truth == "" {
				return cmdutil.Usagef("--questions: expected the facts to judge the answers by, with --truth FILE")
			}
			if truth == "" {
				return o.bench(cmd.Context())
			}
			t, err := readTruth(truth)
			if err != nil {
				return err
			}
			return o.with(cmd.Context(), func(x *graph.Index) error {
				if questions > 0 {
					return o.ask(cmd.Context(), x, t, questions)
				}
				c := compare(x.Graph(), t)
				if o.json {
					return cmdutil.WriteJSON(o.Out, c)
				}
				c.print(o.Out)
				return nil
			})
		},
	}
	o.register(cmd)
	cmd.Flags().IntVar(&mutate, "mutate", 0, "break up to `N` functions of a Go module, and run all tests for each")
	cmd.Flags().StringVar(&truth, "truth", "", "compare the edges with the facts in `FILE`")
	cmd.Flags().IntVar(&questions, "questions", 0, "with --truth: put `N` questions to the graph and to grep")
	cmd.MarkFlagsMutuallyExclusive("truth", "mutate")
	return cmd
}

// ask prints how well the graph and grep answer questions.
func (o *options) ask(ctx context.Context, x *graph.Index, t *truth, n int) error {
	ways, err := ask(ctx, x, t, n)
	if err != nil {
		return err
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, ways)
	}
	printWays(o.Out, ways)
	return nil
}

// figures are what agent graph bench measures, in milliseconds.
type figures struct {
	Files     int     `json:"files"`
	Lines     int     `json:"lines"`
	Nodes     int     `json:"nodes"`
	Edges     int     `json:"edges"`
	Cold      float64 `json:"coldMs"`
	Warm      float64 `json:"warmMs"`
	EditP50   float64 `json:"editP50Ms"`
	EditP99   float64 `json:"editP99Ms"`
	ImpactP50 float64 `json:"impactP50Ms"`
	ImpactP99 float64 `json:"impactP99Ms"`
	HeapMB    float64 `json:"heapMb"`
	CacheMB   float64 `json:"cacheMb"`
}

func (o *options) bench(ctx context.Context) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "agent-graph-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	work, cache := filepath.Join(dir, "work"), filepath.Join(dir, "cache")
	if err := copySources(ctx, set.Dir, work); err != nil {
		return err
	}
	f, err := measure(ctx, work, graph.Options{Cache: cache, Languages: set.Settings.Graph.Languages, Ignore: set.Settings.Graph.Ignore})
	if err != nil {
		return err
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, f)
	}
	_, err = fmt.Fprintf(o.Out, "%d files, %d lines, %d nodes, %d edges\n"+
		"first reading    %8.0f ms\nunchanged start  %8.0f ms\nan edit          %8.1f ms (p99 %.1f)\nan impact        %8.2f ms (p99 %.2f)\n"+
		"memory           %8.0f MB\ncache            %8.1f MB\n",
		f.Files, f.Lines, f.Nodes, f.Edges, f.Cold, f.Warm, f.EditP50, f.EditP99, f.ImpactP50, f.ImpactP99, f.HeapMB, f.CacheMB)
	return err
}

// copySources copies the source files of a directory, without links.
func copySources(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if d.IsDir() {
			if path != from && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !graph.IsSource(path) && d.Name() != ".gitignore" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil // not readable: not measured
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600)
	})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// quantile returns a quantile of times; 0 of none.
func quantile(times []float64, q float64) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[min(int(q*float64(len(times))), len(times)-1)]
}

func measure(ctx context.Context, work string, o graph.Options) (*figures, error) {
	f := &figures{}
	open := func() (*graph.Index, float64, error) {
		start := time.Now()
		x, err := graph.Open(work, o)
		if err == nil {
			err = x.Refresh(ctx)
		}
		return x, milliseconds(time.Since(start)), err
	}
	x, took, err := open()
	if err != nil {
		return nil, err
	}
	f.Cold = took
	if err := x.Close(); err != nil {
		return nil, err
	}
	if x, f.Warm, err = open(); err != nil {
		return nil, err
	}
	defer x.Close()
	sum := x.Summary()
	f.Files, f.Lines = sum.Files, sum.Lines
	f.Edges = len(x.Graph().Edges())
	nodes := x.Graph().Nodes()
	f.Nodes = len(nodes)
	random := rand.New(rand.NewPCG(1, 2))
	var impacts []float64
	for range min(500, len(nodes)) {
		n := nodes[random.IntN(len(nodes))]
		start := time.Now()
		x.Graph().Impact(n.ID)
		impacts = append(impacts, milliseconds(time.Since(start)))
	}
	edits, err := watchEdits(ctx, x, nodes, random)
	if err != nil {
		return nil, err
	}
	f.ImpactP50, f.ImpactP99 = quantile(impacts, .5), quantile(impacts, .99)
	f.EditP50, f.EditP99 = quantile(edits, .5), quantile(edits, .99)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	f.HeapMB = float64(m.HeapAlloc) / (1 << 20)
	files, err := os.ReadDir(o.Cache)
	for _, e := range files {
		if info, err := e.Info(); err == nil {
			f.CacheMB += float64(info.Size()) / (1 << 20)
		}
	}
	return f, err
}

// watchEdits measures edits while the files are watched, as in a session.
func watchEdits(ctx context.Context, x *graph.Index, nodes []graph.Node, random *rand.Rand) (times []float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- x.Watch(ctx, func(paths []string) {
			if len(paths) == 0 {
				close(ready)
			}
		})
	}()
	select {
	case <-ready:
		times, err = measureEdits(ctx, x, nodes, random)
	case err := <-done:
		return nil, err
	}
	cancel()
	return times, errors.Join(err, <-done)
}

// measureEdits appends a line to random files and times each refresh.
func measureEdits(ctx context.Context, x *graph.Index, nodes []graph.Node, random *rand.Rand) (times []float64, err error) {
	for range min(200, len(nodes)) {
		name := filepath.Join(x.Root(), filepath.FromSlash(nodes[random.IntN(len(nodes))].File))
		data, err := os.ReadFile(name)
		if err != nil {
			continue // a package
		}
		if err := os.WriteFile(name, append(data, '\n'), 0o600); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := x.Refresh(ctx); err != nil {
			return nil, err
		}
		times = append(times, milliseconds(time.Since(start)))
	}
	return times, nil
}
