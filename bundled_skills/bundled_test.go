package bundled_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	bundled "github.com/seed-009c0928/agent/bundled_skills"
	"github.com/seed-009c0928/agent/skills"
)

func library() *skills.Library {
	return skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Bundled: bundled.Files})})
}

// TestBundledSkillsAreClean checks that the skills pass lint and no trigger is
// demoted.
func TestBundledSkillsAreClean(t *testing.T) {
	t.Parallel()
	c := library().Catalog()
	if len(c.Active()) < 5 || len(c.Problems) > 0 {
		t.Fatalf("%d skills, problems %v", len(c.Active()), c.Problems)
	}
	for _, s := range c.Skills {
		for _, d := range s.Lint() {
			t.Errorf("%v", d)
		}
		if demoted := s.Demoted(); len(demoted) > 0 { // the matcher relies on that
			t.Errorf("%s: triggers that match ordinary inputs: %v", s.Name, demoted)
		}
		if n := len(s.Body()); n > 4500 {
			t.Errorf("%s has %d bytes: keep bundled skills short", s.Name, n)
		}
	}
}

// TestActivation scores the bundled skills on labelled inputs that were written
// before their triggers. The minimums are the measured results, to detect
// regressions.
func TestActivation(t *testing.T) {
	t.Parallel()
	t.Run("first hand", func(t *testing.T) { activation(t, "testdata/queries.jsonl", 45, 70) })
	t.Run("second hand", func(t *testing.T) { activation(t, "testdata/second-hand.jsonl", 20, 48) })
}

// TestUnrelated checks that inputs that use the skills' words for other subjects
// activate none. A larger test, with the skills and inputs of other authors, is
// in skills/internal/bench.
func TestUnrelated(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/unrelated.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := library().Catalog().Matcher()
	for line := range strings.Lines(string(text)) {
		for _, a := range m.Match(strings.TrimSpace(line), skills.MatchOptions{}).Activated {
			t.Errorf("%q activates %s by %s %q", line, a.Skill.Name, a.By, a.Trigger)
		}
	}
}

// activation scores the inputs in a file: at least minHit must activate the
// expected skill, and at least minTop must have it in the first three.
func activation(t *testing.T, file string, minHit, minTop int) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := library().Catalog().Matcher()
	type count struct{ expected, hit, wrong int }
	counts := map[string]*count{}
	none, fired, inTop := 0, 0, 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var q struct {
			ID, Query string
			Expected  []string
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		r := m.Match(q.Query, skills.MatchOptions{})
		if len(q.Expected) == 0 {
			if none++; len(r.Activated) > 0 {
				fired++
				t.Logf("%s: %q activates %s by %s %q", q.ID, q.Query, r.Activated[0].Skill.Name, r.Activated[0].By, r.Activated[0].Trigger)
			}
			continue
		}
		c := counts[q.Expected[0]]
		if c == nil {
			c = &count{}
			counts[q.Expected[0]] = c
		}
		c.expected++
		for _, a := range r.Activated {
			if slices.Contains(q.Expected, a.Skill.Name) {
				c.hit++
			} else {
				c.wrong++
				t.Logf("%s: %q activates %s by %s %q", q.ID, q.Query, a.Skill.Name, a.By, a.Trigger)
			}
		}
		if slices.ContainsFunc(r.Shortlist[:min(3, len(r.Shortlist))], func(m skills.Match) bool { return m.Skill.Name == q.Expected[0] }) {
			inTop++
		}
	}
	hit, wrong, all := 0, 0, 0
	for name, c := range counts {
		t.Logf("%s: %d of %d activate it, %d others", name, c.hit, c.expected, c.wrong)
		hit, wrong, all = hit+c.hit, wrong+c.wrong, all+c.expected
	}
	if hit < minHit || float64(hit) < 0.95*float64(hit+wrong) || inTop < minTop || fired > 0 {
		t.Error("the bundled skills are matched worse than before")
	}
	t.Logf("recall %d of %d, precision %d of %d, hit@3 %d, false on unrelated %d of %d", hit, all, hit, hit+wrong, inTop, fired, none)
}
