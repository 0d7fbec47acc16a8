package skills

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core/rank"
)

// TestLinesTell checks that lines of the shortest form tell what their skills are
// for: someone who ranks by them finds the expected skill nearly as often as with
// whole descriptions, and more often than with the first sentences.
func TestLinesTell(t *testing.T) {
	t.Parallel()
	f, err := os.Open("internal/bench/testdata/skills.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var list []Manifest
	if err := json.NewDecoder(z).Decode(&list); err != nil {
		t.Fatal(err)
	}
	indexes := map[string]*rank.Index{}
	texts := map[string]func(*Skill) string{
		"first sentences": func(s *Skill) string { return s.Brief },
		"lines":           func(s *Skill) string { return listLine(s, lastRank) },
		"descriptions":    func(s *Skill) string { return s.Description },
	}
	with, kept := 0, 0
	for name, text := range texts {
		indexes[name] = rank.New(rank.Field{Name: "text", Weight: 1})
		for i := range list {
			list[i].Brief = brief(list[i].Description)
			s := &Skill{Manifest: list[i]}
			indexes[name].Put(s.Name, s.Name+" "+text(s))
			if _, use, _ := purposes(s); name == "lines" && use != "" {
				if with++; when().MatchString(text(s)) {
					kept++
				}
			}
		}
	}
	if float64(kept) < 0.95*float64(with) {
		t.Errorf("%d of %d lines keep when to use the skill", kept, with)
	}
	hits := map[string]int{}
	queries, err := os.Open("internal/bench/testdata/queries.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer queries.Close()
	n := 0
	for lines := bufio.NewScanner(queries); lines.Scan(); n++ {
		var q struct {
			Query    string
			Expected []string
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		for name, index := range indexes {
			if slices.ContainsFunc(index.Search(q.Query, 12), func(h rank.Hit) bool { return slices.Contains(q.Expected, h.ID) }) {
				hits[name]++
			}
		}
	}
	t.Logf("hit@12 of %d queries: %v; %d of %d lines keep when to use the skill", n, hits, kept, with)
	if hits["lines"] <= hits["first sentences"] || float64(hits["lines"]) < 0.93*float64(hits["descriptions"]) {
		t.Errorf("hit@12 of %d queries: %v", n, hits)
	}
}
