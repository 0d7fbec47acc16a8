package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/skills"
)

// share is a proportion with its 95 % interval.
type share struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Of    int     `json:"of"` // number of trials
}

// Pools are what a suite's queries are matched against.
const (
	poolOwn     = "own"     // some skills of the suite
	poolBundled = "bundled" // and the bundled ones
	poolAll     = "all"     // and those of other suites
)

var pools = []string{poolOwn, poolBundled, poolAll}

// The sizes of pools, in skills.
const (
	ownSize = 26
	allSize = 526
)

// report contains the scores of one suite in one kind of pool.
type report struct {
	Suite   string `json:"suite"`
	Pool    string `json:"pool"`
	Skills  int    `json:"skills"`  // of the largest pool
	Queries int    `json:"queries"` // with an expected skill
	Named   int    `json:"named"`   // of these, containing its name

	Hit1      share `json:"hit@1"`
	Hit3      share `json:"hit@3"`
	Shortlist share `json:"shortlist@12"`
	Precision share `json:"precision"` // share of activations that were expected
	Recall    share `json:"recall"`    // share of queries that activate the expected skill
	NamedHit1 share `json:"namedHit@1"`
	Near      share `json:"nearMisses"` // share of near misses that activate the similar skill
	Cross     share `json:"cross"`      // share of other suites' queries that activate a skill that they do not expect

	Tokens   float64       `json:"tokens"` // of full texts, average per query
	PerMatch time.Duration `json:"nanosecondsPerMatch"`
}

// sample is one query's contribution to each count: hits and trials.
type sample map[string][2]int

// score matches all queries against the skills of a suite, a part of them at a
// time.
func (d *dataset) score(suite, pool string, log io.Writer) report {
	r := report{Suite: suite, Pool: pool}
	var samples []sample
	tokens, matches := 0, 0
	start := time.Now()
	for _, part := range d.parts(suite) {
		list := d.pool(suite, part, pool)
		r.Skills = max(r.Skills, len(list))
		m := skills.NewMatcher(list)
		m.Match("warm up", skills.MatchOptions{})
		for _, q := range d.queries {
			if q.Suite == suite && !slices.ContainsFunc(part, q.about) {
				continue
			}
			result := m.Match(q.Query, skills.MatchOptions{})
			samples = append(samples, r.count(q, result, log))
			for _, a := range result.Activated {
				tokens += len(a.Skill.Body()) / 4
			}
			matches++
		}
	}
	r.PerMatch = time.Since(start) / time.Duration(max(matches, 1))
	r.Tokens = float64(tokens) / float64(max(r.Queries, 1))
	for name, at := range map[string]*share{
		"hit1": &r.Hit1, "hit3": &r.Hit3, "short": &r.Shortlist, "precision": &r.Precision, "recall": &r.Recall,
		"named": &r.NamedHit1, "near": &r.Near, "cross": &r.Cross,
	} {
		*at = bootstrap(samples, name)
	}
	return r
}

// parts divides a suite into equal parts of about 26 skills, at random but always
// the same.
func (d *dataset) parts(suite string) [][]*skills.Skill {
	list := slices.Clone(d.skills[suite])
	shuffle(list)
	n := max(1, (len(list)+ownSize/2)/ownSize)
	parts := make([][]*skills.Skill, n)
	for i := range parts {
		parts[i] = list[i*len(list)/n : (i+1)*len(list)/n]
	}
	return parts
}

// pool adds to a part of a suite what else is in its pool. Of equal names the
// first counts.
func (d *dataset) pool(suite string, part []*skills.Skill, pool string) []*skills.Skill {
	list := slices.Clone(part)
	if pool != poolOwn {
		list = append(list, d.bundled...)
	}
	if pool == poolAll {
		var others []*skills.Skill
		for _, name := range d.suites() {
			if name != suite {
				others = append(others, d.skills[name]...)
			}
		}
		shuffle(others)
		list = append(list, others[:min(len(others), allSize-len(list))]...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s *skills.Skill) bool {
		again := seen[s.Name]
		seen[s.Name] = true
		return again
	})
}

func shuffle(list []*skills.Skill) {
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// count adds up the result of one query.
func (r *report) count(q query, result skills.Result, log io.Writer) sample {
	s := sample{}
	wrong := slices.DeleteFunc(slices.Clone(result.Activated), q.expects)
	for _, a := range wrong {
		fmt.Fprintf(log, "%s, %s: %s: expected %v, activates %s by %s %s\n", r.Suite, r.Pool, q.ID, q.Expected, a.Skill.Name, a.By, a.Trigger)
	}
	switch {
	case q.Suite != r.Suite:
		s.count("cross", len(wrong) > 0)
		return s
	case len(q.Expected) == 0:
		s.count("near", slices.ContainsFunc(result.Activated, func(a skills.Match) bool { return a.Skill.Name == q.NegOf }))
	default:
		r.Queries++
		if named(q) {
			r.Named++
			s.count("named", slices.ContainsFunc(first(result.Shortlist, 1), q.expects))
		} else {
			s.count("hit1", slices.ContainsFunc(first(result.Shortlist, 1), q.expects))
			s.count("hit3", slices.ContainsFunc(first(result.Shortlist, 3), q.expects))
			s.count("short", slices.ContainsFunc(result.Shortlist, q.expects))
			s.count("recall", slices.ContainsFunc(result.Activated, q.expects))
		}
	}
	for _, a := range result.Activated {
		s.count("precision", q.expects(a))
	}
	return s
}

// about reports whether a query was written for a skill.
func (q query) about(s *skills.Skill) bool {
	return slices.Contains(q.Expected, s.Name) || q.NegOf == s.Name
}

func (q query) expects(m skills.Match) bool { return slices.Contains(q.Expected, m.Skill.Name) }

// named reports whether a query contains the name of an expected skill.
func named(q query) bool {
	return slices.ContainsFunc(q.Expected, func(name string) bool {
		return strings.Contains(strings.ToLower(q.Query), strings.ToLower(name))
	})
}

func first(list []skills.Match, n int) []skills.Match { return list[:min(len(list), n)] }

func (s sample) count(name string, hit bool) {
	c := s[name]
	if c[1]++; hit {
		c[0]++
	}
	s[name] = c
}

// resamples is the number of bootstrap samples.
const resamples = 1000

// bootstrap returns a ratio with its interval over resampled queries.
func bootstrap(samples []sample, name string) share {
	var counted [][2]int
	for _, s := range samples {
		if c := s[name]; c[1] > 0 {
			counted = append(counted, c)
		}
	}
	value, of := ratio(counted)
	r := share{Value: value, Low: value, High: value, Of: of}
	if of == 0 {
		return r
	}
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, resamples)
	drawn := make([][2]int, len(counted))
	for i := range values {
		for j := range drawn {
			drawn[j] = counted[random.IntN(len(counted))]
		}
		values[i], _ = ratio(drawn)
	}
	slices.Sort(values)
	r.Low, r.High = values[resamples*25/1000], values[resamples*975/1000-1]
	return r
}

func ratio(counts [][2]int) (float64, int) {
	hits, of := 0, 0
	for _, c := range counts {
		hits, of = hits+c[0], of+c[1]
	}
	return float64(hits) / float64(max(of, 1)), of
}

func (r report) print(out io.Writer) {
	fmt.Fprintf(out, "%s, pool %s: %d skills, %d queries with an expected skill (%d contain its name)\n", r.Suite, r.Pool, r.Skills, r.Queries, r.Named)
	for _, line := range []struct {
		name string
		share
	}{
		{"hit@1", r.Hit1},
		{"hit@3", r.Hit3},
		{"shortlist@12", r.Shortlist},
		{"activation precision", r.Precision},
		{"activation recall", r.Recall},
		{"hit@1, named", r.NamedHit1},
		{"false on near misses", r.Near},
		{"false on other suites", r.Cross},
	} {
		fmt.Fprintf(out, "  %-22s %5.1f %%  (%.1f to %.1f, of %d)\n", line.name, 100*line.Value, 100*line.Low, 100*line.High, line.Of)
	}
	fmt.Fprintf(out, "  %-22s %5.0f tokens of full texts per query\n", "cost", r.Tokens)
	fmt.Fprintf(out, "  %-22s %5.2f ms per query\n", "time", float64(r.PerMatch)/float64(time.Millisecond))
}
