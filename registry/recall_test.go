package registry_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/registry"
)

// readLines reads a file of testdata/toolsearch.
func readLines(tb testing.TB, name string, each func(line string)) {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", "toolsearch", name))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		each(lines.Text())
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
}

// services are words in tools that name their service.
var services = regexp.MustCompile(`(?i)github|playwright|browser|grafana|kubernetes|mongodb|atlas|slack|jira|confluence|gmail|google|drive`)

// publicTools returns toolsets of the real tools, and of copies of
// them with invented service names.
func publicTools(tb testing.TB, copies int) []*toolset {
	tb.Helper()
	names := []string{"", "Nimbus", "Quarry", "Lattice", "Harbour"}
	var sets []*toolset
	for i := range copies + 1 {
		readLines(tb, "tools.jsonl", func(line string) {
			var t struct {
				Server, Name, Description string
				Parameters                map[string]string
			}
			if err := json.Unmarshal([]byte(line), &t); err != nil {
				tb.Fatal(err)
			}
			properties := map[string]any{}
			for name, text := range t.Parameters {
				properties[name] = map[string]string{"type": "string", "description": text}
			}
			schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
			if err != nil {
				tb.Fatal(err)
			}
			if i > 0 {
				t.Server = strings.ToLower(names[i]) + "-" + fmt.Sprint(len(t.Server))
				t.Name = services.ReplaceAllString(t.Name, strings.ToLower(names[i]))
				t.Description = services.ReplaceAllString(t.Description, names[i])
			}
			at := slices.IndexFunc(sets, func(s *toolset) bool { return s.name == t.Server })
			if at < 0 {
				at = len(sets)
				sets = append(sets, newToolset(t.Server))
			}
			sets[at].list = append(sets[at].list, &tool{name: t.Name, text: t.Description, schema: string(schema)})
		})
	}
	return sets
}

// newSearch returns a search over toolsets that exceed the prompt's budget.
func newSearch(tb testing.TB, native bool, sets ...*toolset) *registry.Search {
	tb.Helper()
	r := newRegistry(tb, registry.Options{})
	for _, set := range sets {
		if err := r.Add(tb.Context(), set); err != nil {
			tb.Fatal(err)
		}
	}
	s := r.NewSearch(r)
	s.SetBudget(0, native)
	return s
}

func snapshotOf(tb testing.TB, table core.ToolTable) *core.Snapshot {
	tb.Helper()
	snapshot, err := table.Snapshot(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return snapshot
}

// run runs a tool of a table.
func run(tb testing.TB, snapshot *core.Snapshot, name, args string) core.Result {
	tb.Helper()
	e, ok := snapshot.Lookup(name)
	if !ok {
		tb.Fatalf("there is no tool %q", name)
	}
	if err := e.Validate(json.RawMessage(args)); err != nil {
		tb.Fatalf("%s %s: %v", name, args, err)
	}
	res, err := e.Tool.Run(tb.Context(), &core.Call{Name: name, Args: json.RawMessage(args)})
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

// references returns the names that a result refers to.
func references(res core.Result) []string {
	var names []string
	for _, p := range res.Content {
		if ref, ok := p.(model.ToolReference); ok {
			names = append(names, ref.Name)
		}
	}
	return names
}

// score is the fractions of queries for which a right tool is among the first
// 1, 5 and 10 results, and the queries for which it is not among five.
type score struct {
	at      [3]float64
	queries float64
	misses  []string
}

func (s *score) count(query string, place int) {
	s.queries++
	for i, k := range []int{1, 5, 10} {
		if place >= 0 && place < k {
			s.at[i]++
		}
	}
	if place < 0 || place >= 5 {
		s.misses = append(s.misses, query)
	}
}

// recall scores both halves of the queries.
func recall(t *testing.T, copies int) map[string]*score {
	t.Helper()
	table := snapshotOf(t, newSearch(t, true, publicTools(t, copies)...))
	scores := map[string]*score{"tune": {}, "check": {}}
	readLines(t, "queries.tsv", func(line string) {
		half, rest, _ := strings.Cut(line, "\t")
		query, right, _ := strings.Cut(rest, "\t")
		args, err := json.Marshal(map[string]any{"query": query, "limit": 10})
		if err != nil {
			t.Fatal(err)
		}
		found := references(run(t, table, model.ToolSearch, string(args)))
		scores[half].count(rest, slices.IndexFunc(found, func(name string) bool {
			e, _ := table.Lookup(name)
			return slices.Contains(strings.Fields(right), e.Source+"/"+e.Tool.Definition().Name)
		}))
	})
	for _, s := range scores {
		for i := range s.at {
			s.at[i] /= s.queries
		}
	}
	return scores
}

// TestRecall measures the search on the labelled queries. The floors are a
// little below what docs/tool-search.md reports.
func TestRecall(t *testing.T) {
	t.Parallel()
	for copies, floors := range map[int]map[string][2]float64{
		0: {"tune": {0.81, 0.88}, "check": {0.82, 0.90}},
		3: {"tune": {0.69, 0.72}, "check": {0.66, 0.74}},
	} {
		for half, s := range recall(t, copies) {
			t.Logf("%s, %d tools: recall@1 %.3f, @5 %.3f, @10 %.3f; not among the first five:\n%s",
				half, 556*(copies+1), s.at[0], s.at[1], s.at[2], strings.Join(s.misses, "\n"))
			if want := floors[half]; s.at[1] < want[0] || s.at[2] < want[1] {
				t.Errorf("%s, %d copies: recall@5 %.3f, @10 %.3f; want at least %v", half, copies, s.at[1], s.at[2], want)
			}
		}
	}
}

func BenchmarkToolSearch(b *testing.B) {
	table := snapshotOf(b, newSearch(b, true, publicTools(b, 3)...))
	var queries []string
	readLines(b, "queries.tsv", func(line string) {
		args, err := json.Marshal(map[string]string{"query": strings.Split(line, "\t")[1]})
		if err != nil {
			b.Fatal(err)
		}
		queries = append(queries, string(args))
	})
	e, _ := table.Lookup(model.ToolSearch)
	run(b, table, model.ToolSearch, queries[0]) // makes the index
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := e.Tool.Run(b.Context(), &core.Call{Args: json.RawMessage(queries[i%len(queries)])}); err != nil {
			b.Fatal(err)
		}
	}
}
