package graph

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/plugins/graph"
)

// mutations are what agent graph bench --mutate measures: functions of a Go module
// are broken one at a time, and all tests are run.
type mutations struct {
	Tests     int      `json:"tests"`     // that pass before
	Mutants   int      `json:"mutants"`   // functions that were broken
	Killed    int      `json:"killed"`    // of them, those that a test noticed
	Failed    int      `json:"failed"`    // tests that failed, of all mutants
	Selected  int      `json:"selected"`  // of these, those that the graph had selected
	Recall    float64  `json:"recall"`    // their share
	Selection float64  `json:"selection"` // the average share of all tests that was selected
	Missed    []string `json:"missed"`
}

// testID names a test of a package.
type testID struct{ dir, name string }

// mutator breaks functions in a copy of a module.
type mutator struct {
	dir     string
	dirs    map[string]string // directories of packages by import path
	passing map[testID]bool
}

func (o *options) mutate(ctx context.Context, n int) error {
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "agent-graph-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(filepath.Join(dir, "work"), os.DirFS(set.Dir)); err != nil {
		return err
	}
	m := &mutator{dir: filepath.Join(dir, "work"), dirs: map[string]string{}}
	x, err := graph.Open(m.dir, graph.Options{})
	if err != nil {
		return err
	}
	defer x.Close()
	if err := x.Refresh(ctx); err != nil {
		return err
	}
	result, err := m.run(ctx, x.Graph(), n)
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(o.Out).Encode(result)
	}
	for _, missed := range result.Missed {
		fmt.Fprintln(o.Out, "missed", missed)
	}
	_, err = fmt.Fprintf(o.Out, "%d functions broken, of which the %d tests noticed %d\n%d tests failed, %d of them selected: recall %.4f\n%.1f %% of all tests selected\n",
		result.Mutants, result.Tests, result.Killed, result.Failed, result.Selected, result.Recall, 100*result.Selection)
	return err
}

// run breaks up to n functions.
func (m *mutator) run(ctx context.Context, g *graph.Graph, n int) (*mutations, error) {
	list, err := m.goCommand(ctx, "list", "-f", "{{.ImportPath}} {{.Dir}}", "./...")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(list)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if rel, err := filepath.Rel(m.dir, dir); err == nil {
			m.dirs[path] = filepath.ToSlash(rel)
		}
	}
	m.passing, _ = m.test(ctx, nil, "./...")
	result := &mutations{Tests: len(m.passing), Recall: 1, Missed: []string{}}
	if len(m.passing) == 0 {
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("no test of %s passes: there is nothing to measure", m.dir))
	}
	nodes := slices.DeleteFunc(g.Nodes(), func(n graph.Node) bool {
		return n.Language() != "go" || n.Kind != graph.Function && n.Kind != graph.Method || strings.HasSuffix(n.File, "_test.go")
	})
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	share := 0.0
	for _, node := range nodes {
		if result.Mutants == n {
			break
		}
		failed, err := m.mutant(ctx, node)
		if ctx.Err() != nil {
			break // what is known by then is printed
		}
		if err != nil {
			continue // cannot be broken this way
		}
		result.Mutants++
		selected := map[testID]bool{}
		for _, t := range g.Impact(node.ID).Tests {
			if id := (testID{filepath.ToSlash(filepath.Dir(t.File)), t.Name()}); m.passing[id] {
				selected[id] = true
			}
		}
		share += float64(len(selected)) / float64(len(m.passing))
		result.Selection = share / float64(result.Mutants)
		if len(failed) > 0 {
			result.Killed++
		}
		for _, id := range failed {
			result.Failed++
			if selected[id] {
				result.Selected++
			} else {
				result.Missed = append(result.Missed, fmt.Sprintf("%s#%s: %s/%s", node.File, node.Name(), id.dir, id.name))
			}
		}
		result.Recall = float64(result.Selected) / float64(max(result.Failed, 1))
	}
	return result, nil
}

// mutant breaks a function, so that it returns zero values at once, and returns the
// tests that fail.
func (m *mutator) mutant(ctx context.Context, n graph.Node) ([]testID, error) {
	name := filepath.Join(m.dir, filepath.FromSlash(n.File))
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	broken, err := breakFunction(data, n.Line)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(name, broken, 0o600); err != nil {
		return nil, err
	}
	defer os.WriteFile(name, data, 0o600) //nolint:errcheck // the next mutant of this file would fail to build
	if _, err := m.goCommand(ctx, "build", "./..."); err != nil {
		return nil, err
	}
	failed := map[testID]bool{}
	passed, failures := m.test(ctx, nil, "./...")
	for len(failures) > 0 {
		// A panic ends all tests of a package: run the others again.
		again := map[string][]string{}
		for id := range failures {
			if failed[id] = true; !slices.Contains(again[id.dir], id.name) {
				again[id.dir] = append(again[id.dir], id.name)
			}
		}
		failures = map[testID]bool{}
		for dir := range again {
			var left []string
			for id := range m.passing {
				if id.dir == dir && !passed[id] && !failed[id] {
					left = append(left, id.name)
				}
			}
			if len(left) == 0 {
				continue
			}
			p, f := m.test(ctx, left, "./"+dir)
			for id := range p {
				passed[id] = true
			}
			for id := range f {
				failures[id] = true
			}
		}
	}
	var all []testID
	for id := range failed {
		if m.passing[id] {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, func(a, b testID) int { return strings.Compare(a.dir+"/"+a.name, b.dir+"/"+b.name) })
	return all, nil
}

var errNoBody = errors.New("no function with a body")

// breakFunction makes the function at a line return zero values.
func breakFunction(data []byte, line int) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", data, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fset.Position(fn.Pos()).Line != line || fn.Body == nil || len(fn.Body.List) == 0 {
			continue
		}
		var zeros []string
		if fn.Type.Results != nil {
			for _, r := range fn.Type.Results.List {
				if len(r.Names) > 0 {
					zeros = nil
					break // named results are zero already
				}
				zeros = append(zeros, "*new("+string(data[fset.Position(r.Type.Pos()).Offset:fset.Position(r.Type.End()).Offset])+")")
			}
		}
		at := fset.Position(fn.Body.Lbrace).Offset + 1
		return slices.Concat(data[:at], []byte(" if true { return "+strings.Join(zeros, ", ")+" };"), data[at:]), nil
	}
	return nil, errNoBody
}

func (m *mutator) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = m.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
}

// test runs tests and returns which pass and which fail, without subtests.
func (m *mutator) test(ctx context.Context, names []string, pattern string) (passed, failed map[testID]bool) {
	passed, failed = map[testID]bool{}, map[testID]bool{}
	args := []string{"test", "-json", "-vet=off", "-count=1", "-timeout=60s"}
	if len(names) > 0 {
		args = append(args, "-run", "^("+strings.Join(names, "|")+")$")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pattern)...)
	cmd.Dir = m.dir
	out, _ := cmd.Output() // its exit code says that tests fail: the events say which
	events := bufio.NewReader(bytes.NewReader(out))
	for {
		line, err := events.ReadBytes('\n')
		var e struct{ Action, Package, Test string }
		if json.Unmarshal(line, &e) == nil && e.Test != "" && !strings.Contains(e.Test, "/") {
			switch id := (testID{m.dirs[e.Package], e.Test}); e.Action {
			case "pass":
				passed[id] = true
			case "fail":
				failed[id] = true
			}
		}
		if errors.Is(err, io.EOF) {
			return passed, failed
		}
	}
}
