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
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/bench/page"
)

// options are the command's flags.
type options struct {
	agent     string
	skipAgent bool
	runs      int
	only      string
	check     bool
	page      string
	timeout   time.Duration
}

// errMissed is returned if a target was missed under -check.
var errMissed = errors.New("targets missed")

func main() {
	if len(os.Args) > 1 && os.Args[1] == launchCommand {
		os.Exit(launchMain(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures what args ask for and prints the table to stdout.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "agent-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)

	contestants, err := buildAll(ctx, opts, temp)
	if err != nil {
		return err
	}
	server, err := startModel()
	if err != nil {
		return err
	}
	defer server.Close()

	b := &bench{model: server, temp: temp, timeout: opts.timeout}
	machine := fmt.Sprintf("%s %s/%s, %d cores%s, median (min–max) of %d runs", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), page.Load(), opts.runs)
	fmt.Fprintf(stdout, "%s\n\n", machine)
	var rows []row
	for _, s := range scenarios() {
		if !strings.Contains(s.name, opts.only) {
			continue
		}
		fmt.Fprintf(stderr, "measuring %s …\n", s.name)
		samples, err := b.measure(ctx, s, contestants, opts.runs)
		if err != nil {
			return err
		}
		rows = append(rows, summarize(s, contestants, samples)...)
	}
	if len(rows) == 0 {
		return fmt.Errorf("-only %q matches no scenario", opts.only)
	}
	if err := printTable(stdout, contestants, rows); err != nil {
		return err
	}
	if opts.page != "" {
		if err := writePage(opts.page, machine, contestants, rows); err != nil {
			return err
		}
	}
	if opts.check && anyMissed(rows) {
		return errMissed
	}
	return nil
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.agent, "agent", "", "measure this agent `binary` instead of building one")
	flags.BoolVar(&o.skipAgent, "skip-agent", false, "measure the yardstick only")
	flags.IntVar(&o.runs, "runs", 5, "runs of each scenario")
	flags.StringVar(&o.only, "only", "", "only scenarios whose name contains this `text`")
	flags.BoolVar(&o.check, "check", false, "fail if the agent's median misses a target")
	flags.StringVar(&o.page, "page", "", "write the table into this `file`, docs/performance.md")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "time after which one run is killed")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: see -help for the flags", flags.Arg(0))
	}
	if o.runs < 1 {
		return o, fmt.Errorf("-runs %d: at least one run is needed", o.runs)
	}
	if o.page != "" && (o.only != "" || o.skipAgent) {
		return o, errors.New("-page needs all rows: leave out -only and -skip-agent")
	}
	if o.check && o.skipAgent {
		return o, errors.New("-check judges the agent: leave out -skip-agent")
	}
	return o, nil
}

// contestant is one of the programs that are measured side by side.
type contestant struct {
	name string
	path string
	// arguments returns the command line for one run against the endpoint.
	arguments func(endpoint, prompt string) []string
	judged    bool // checked against the targets
}

// buildAll returns the yardstick first, as the base of comparison.
func buildAll(ctx context.Context, opts options, dir string) ([]contestant, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	yardstick := contestant{
		name: "yardstick",
		path: filepath.Join(dir, "yardstick"+exeSuffix()),
		arguments: func(endpoint, prompt string) []string {
			return []string{endpoint, modelName, prompt}
		},
	}
	if err := build(ctx, root, "./cmd/agent/internal/bench/yardstick", yardstick.path); err != nil {
		return nil, err
	}
	if opts.skipAgent {
		return []contestant{yardstick}, nil
	}
	agent := contestant{
		name:   "agent",
		path:   opts.agent,
		judged: true,
		arguments: func(endpoint, prompt string) []string {
			return []string{
				"exec", "--provider", "local", "--model", modelName,
				"--set", "providers.local.baseUrl=" + endpoint,
				"--permission-mode", "bypass", "--max-rounds", "0", prompt,
			}
		},
	}
	if agent.path == "" {
		agent.path = filepath.Join(dir, "agent"+exeSuffix())
		return []contestant{yardstick, agent}, build(ctx, root, "./cmd/agent", agent.path)
	}
	agent.path, err = filepath.Abs(agent.path)
	return []contestant{yardstick, agent}, err
}

// build makes the stripped binary of pkg, as a release would.
func build(ctx context.Context, root, pkg, out string, flags ...string) error {
	args := slices.Concat([]string{"build", "-trimpath", "-ldflags=-s -w"}, flags, []string{"-o", out, pkg})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// moduleRoot returns the directory of the module that the command runs in.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", errors.New("run bench inside the agent's module: there is no go.mod above this directory")
	}
	return filepath.Dir(file), nil
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
