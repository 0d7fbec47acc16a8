package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	benchpage "github.com/seed-009c0928/agent/cmd/agent/internal/bench/page"
)

// TestMeasure: a search of each kind finds in a small tree what its rival does.
func TestMeasure(t *testing.T) {
	programs := findRivals()
	if missing := programs.missing(); missing != "" {
		t.Skipf("%s is not installed", missing)
	}
	tree := &corpus{name: "few", make: func(w *writer) {
		w.mkdir("sub")
		w.file("sub/a.go", "one needle\ntwo\n")
		w.file("b.go", "no\nneedle\nneedle\n")
		w.file("c.log", "needle\n")
		w.file(".gitignore", "*.log\n")
	}}
	if err := tree.prepare(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args arguments
		hits int
	}{
		{arguments{Pattern: "needle", OutputMode: "count", MaxResults: 10}, 2},
		{arguments{Pattern: "NEEDLE", CaseInsensitive: true, OutputMode: "content", MaxResults: 10, Context: 1}, 3},
		{arguments{Pattern: "needle", OutputMode: "files_with_matches", MaxResults: 10, GlobFilter: "a.*"}, 1},
		{arguments{Pattern: "needle", OutputMode: "count", MaxResults: 10, Path: "b.go"}, 1},
		{arguments{Pattern: "**/*.go"}, 2},
	} {
		got, err := measure(t.Context(), &query{name: tt.args.Pattern, corpus: tree.name, args: tt.args}, tree, programs, 1)
		if err != nil {
			t.Error(err)
			continue
		}
		if got.hits != tt.hits || len(got.tool) != 1 || len(got.cells()) != len(columns) {
			t.Errorf("%+v: %d found in %d runs, want %d in 1", tt.args, got.hits, len(got.tool), tt.hits)
		}
	}
}

// TestQueries: each search is in a tree that exists, and no two have the same name.
func TestQueries(t *testing.T) {
	trees, err := corpora(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, q := range queries() {
		name := q.corpus + ": " + q.name
		if slices.Contains(names, name) {
			t.Errorf("two searches are named %s", name)
		}
		names = append(names, name)
		if !slices.ContainsFunc(trees, func(c *corpus) bool { return c.name == q.corpus }) {
			t.Errorf("%s: there is no such tree", name)
		}
	}
	for corpus, list := range classesOf {
		for _, name := range list {
			if !slices.Contains(names, corpus+": "+name) {
				t.Errorf("%s: there is no class %q", corpus, name)
			}
		}
	}
}

// TestWritePage: the table replaces what is between the marks.
func TestWritePage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+benchpage.Start(mark)+"old\n"+benchpage.End(mark)+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := []cost{{3e6, 2e6}}
	r := &result{query: &query{name: "word", corpus: "go"}, tool: one, rival: []cost{{2e6, 2e6}}, base: one, hits: 7}
	if err := writePage(page, "a machine", []*corpus{{name: "go", about: "a tree"}}, []*result{r}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if !strings.Contains(text, "| go: word | 7 | 3 ms | 2 ms | 1.50 | 1.00 | 3 ms | 1.00 |\n"+benchpage.End(mark)+"after\n") || strings.Contains(text, "old") {
		t.Errorf("the page is\n%s", text)
	}
	if !r.missed() {
		t.Error("1.5 does not miss the goal")
	}
	if err := writePage(page+"2", "", nil, nil); err == nil {
		t.Error("a page that does not exist is no error")
	}
}
