package skill

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/skills"
)

// evalInfo is how well the cases of skills are matched.
type evalInfo struct {
	Skills   []evalSkill   `json:"skills"`
	Total    evalScore     `json:"total"`
	Confused []evalPair    `json:"confused"`
	Failures []evalFailure `json:"failures"`
	Below    []string      `json:"below"` // the bars that are missed
}

// evalScore counts cases. A rate without cases is 1.
type evalScore struct {
	Should    int     `json:"should"`    // cases that should trigger the skill
	ShouldNot int     `json:"shouldNot"` // those that should not
	Right     int     `json:"right"`     // activated, as they should
	Wrong     int     `json:"wrong"`     // activated although they should not, or another skill instead
	Found     int     `json:"found"`     // on the shortlist, as they should
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	FoundRate float64 `json:"foundRate"`
}

type evalSkill struct {
	Name string `json:"name"`
	evalScore
	cases []evalResult
}

// evalPair is a skill that is taken for another.
type evalPair struct {
	Skill     string `json:"skill"`
	Other     string `json:"other"`
	First     int    `json:"first"`     // ranks first instead
	Activated int    `json:"activated"` // is activated instead
}

type evalFailure struct {
	Skill  string `json:"skill"`
	Query  string `json:"query"`
	File   string `json:"file"`
	Reason string `json:"reason"`
}

type evalResult struct {
	evalCase
	reason string // why it failed, or ""
}

type evalOptions struct {
	options
	minPrecision, minRecall, minFound float64
	junit                             string
}

func newEvalCmd(s *cmdutil.IO) *cobra.Command {
	o := &evalOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:   "eval [DIR]",
		Short: "Test which queries activate skills, without a model",
		Long: "Match the queries of trigger sets and evals.json in the folders of skills, and report precision, recall and confusion\n" +
			"with other skills. DIR is a skill or a folder of skills, which are matched along with the bundled ones; by default, all\n" +
			"skills are tested. The exit code is 1 below one of the minimums.",
		Example: "  agent skills eval ./skills --junit report.xml",
		Args:    cmdutil.Args(cobra.MaximumNArgs(1)),
		RunE:    func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	o.register(cmd)
	f := cmd.Flags()
	f.Float64Var(&o.minPrecision, "min-precision", 0.95, "minimum `share` of activations that are right")
	f.Float64Var(&o.minRecall, "min-recall", 0, "minimum `share` of queries that activate the skill as they should")
	f.Float64Var(&o.minFound, "min-found", 0.9, "minimum `share` of queries that have the skill on the shortlist as they should")
	f.StringVar(&o.junit, "junit", "", "write a JUnit report to `FILE`")
	return cmd
}

func (o *evalOptions) run(args []string) error {
	for name, bar := range map[string]float64{"min-precision": o.minPrecision, "min-recall": o.minRecall, "min-found": o.minFound} {
		if bar < 0 || bar > 1 {
			return cmdutil.Usagef("--%s %v: expected a number from 0 to 1", name, bar)
		}
	}
	tested, all, err := o.pool(args)
	if err != nil {
		return err
	}
	info, err := evaluate(tested, skills.NewMatcher(all))
	if err != nil {
		return err
	}
	if len(info.Skills) == 0 {
		return fmt.Errorf("no cases: put a list of {query, should_trigger} into evals/triggers.json of a skill, or evals/evals.json")
	}
	info.compare(o.minPrecision, o.minRecall, o.minFound)
	if o.junit != "" {
		if err := o.writeJUnit(info); err != nil {
			return err
		}
	}
	if err := o.print(info); err != nil {
		return err
	}
	if len(info.Below) > 0 {
		return &cmdutil.StatusError{Code: cmdutil.ExitError}
	}
	return nil
}

// pool returns the skills that are tested, and all that are matched.
func (o *evalOptions) pool(args []string) (tested, all []*skills.Skill, err error) {
	_, lib, err := o.load()
	if err != nil {
		return nil, nil, err
	}
	all = lib.Catalog().Active()
	if len(args) == 0 {
		return all, all, nil
	}
	dir := args[0]
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(o.Cwd, dir)
	}
	if tested, err = o.below(dir); err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(s *skills.Skill) bool {
		return s.Scope != skills.ScopeBundled || slices.ContainsFunc(tested, func(t *skills.Skill) bool { return t.Called(s.Name) })
	})
	return tested, append(all, tested...), nil
}

// below returns the skill in a folder, or those in its subfolders.
func (o *evalOptions) below(dir string) ([]*skills.Skill, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	if one, err := skills.ReadFolder(dir); err == nil {
		return []*skills.Skill{one}, nil
	}
	c := skills.NewLibrary(skills.LibraryOptions{Places: []skills.Place{{Scope: skills.ScopeUser, Dir: dir}}, Enable: []string{"*"}}).Catalog()
	for _, p := range c.Problems {
		fmt.Fprintf(o.Err, "agent: %s\n", display.OneLine(p.Error(), 500))
	}
	if len(c.Active()) == 0 {
		return nil, fmt.Errorf("no skills in %s: expected a folder with a SKILL.md, or with folders that have one", dir)
	}
	return c.Active(), nil
}

// evaluate matches the cases of skills.
func evaluate(tested []*skills.Skill, m *skills.Matcher) (*evalInfo, error) {
	info := &evalInfo{Skills: []evalSkill{}, Confused: []evalPair{}, Failures: []evalFailure{}, Below: []string{}}
	for _, s := range tested {
		if s.Dir == "" {
			continue // bundled: it has no folder
		}
		cases, err := readCases(s.Dir)
		if err != nil {
			return nil, err
		}
		if len(cases) == 0 {
			continue
		}
		one := evalSkill{Name: s.Name}
		for _, c := range cases {
			r := info.match(&one.evalScore, s, c, m.Match(c.Query, skills.MatchOptions{}))
			if one.cases = append(one.cases, r); r.reason != "" {
				info.Failures = append(info.Failures, evalFailure{s.Name, c.Query, c.file, r.reason})
			}
		}
		one.rate()
		info.Total.add(one.evalScore)
		info.Skills = append(info.Skills, one)
	}
	info.Total.rate()
	slices.SortStableFunc(info.Confused, func(a, b evalPair) int { return b.First + b.Activated - a.First - a.Activated })
	return info, nil
}

// match counts the result of one case.
func (i *evalInfo) match(score *evalScore, s *skills.Skill, c evalCase, r skills.Result) evalResult {
	out := evalResult{evalCase: c}
	is := func(m skills.Match) bool { return m.Skill == s }
	at := slices.IndexFunc(r.Activated, is)
	if !c.Trigger {
		if score.ShouldNot++; at >= 0 {
			score.Wrong++
			out.reason = fmt.Sprintf("activates it by %s %q, but should not", r.Activated[at].By, r.Activated[at].Trigger)
		}
		return out
	}
	score.Should++
	if at >= 0 {
		score.Right++
	}
	if slices.ContainsFunc(r.Shortlist, is) {
		score.Found++
	} else {
		out.reason = "is not on the shortlist"
	}
	for _, a := range r.Activated {
		if a.Skill != s {
			score.Wrong++
			i.confuse(s, a.Skill).Activated++
			out.reason = fmt.Sprintf("activates %s by %s %q instead", a.Skill.Name, a.By, a.Trigger)
		}
	}
	if len(r.Shortlist) > 0 && r.Shortlist[0].Skill != s {
		i.confuse(s, r.Shortlist[0].Skill).First++
	}
	return out
}

// confuse returns the entry of a skill that is taken for another.
func (i *evalInfo) confuse(s, other *skills.Skill) *evalPair {
	at := slices.IndexFunc(i.Confused, func(p evalPair) bool { return p.Skill == s.Name && p.Other == other.Name })
	if at < 0 {
		at = len(i.Confused)
		i.Confused = append(i.Confused, evalPair{Skill: s.Name, Other: other.Name})
	}
	return &i.Confused[at]
}

func (s *evalScore) add(o evalScore) {
	s.Should, s.ShouldNot, s.Right, s.Wrong, s.Found = s.Should+o.Should, s.ShouldNot+o.ShouldNot, s.Right+o.Right, s.Wrong+o.Wrong, s.Found+o.Found
}

func (s *evalScore) rate() {
	share := func(n, of int) float64 {
		if of == 0 {
			return 1
		}
		return float64(n) / float64(of)
	}
	s.Precision, s.Recall, s.FoundRate = share(s.Right, s.Right+s.Wrong), share(s.Right, s.Should), share(s.Found, s.Should)
}

// compare notes which minimums the total misses.
func (i *evalInfo) compare(precision, recall, found float64) {
	for _, bar := range []struct {
		name       string
		value, min float64
	}{{"precision", i.Total.Precision, precision}, {"recall", i.Total.Recall, recall}, {"found", i.Total.FoundRate, found}} {
		if bar.value < bar.min {
			i.Below = append(i.Below, fmt.Sprintf("%s %.3f is below %.3g", bar.name, bar.value, bar.min))
		}
	}
}

func (o *evalOptions) print(info *evalInfo) error {
	if o.json {
		return cmdutil.WriteJSON(o.Out, info)
	}
	t := cmdutil.NewTable(o.Out, "SKILL", "SHOULD", "SHOULD NOT", "PRECISION", "RECALL", "FOUND")
	row := func(name string, s evalScore) {
		t.Row(name, s.Should, s.ShouldNot, fmt.Sprintf("%.3f", s.Precision), fmt.Sprintf("%.3f", s.Recall), fmt.Sprintf("%.3f", s.FoundRate))
	}
	for _, s := range info.Skills {
		row(s.Name, s.evalScore)
	}
	if len(info.Skills) > 1 {
		row("all", info.Total)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range info.Confused {
		fmt.Fprintf(o.Out, "%s: %s ranks first for %s, and is activated for %d\n", p.Skill, p.Other, display.Plural(p.First, "case"), p.Activated)
	}
	for _, f := range info.Failures {
		fmt.Fprintf(o.Out, "%s: %q %s\n", f.Skill, display.OneLine(f.Query, 100), f.Reason)
	}
	for _, b := range info.Below {
		fmt.Fprintf(o.Err, "agent: %s\n", b)
	}
	return nil
}

// The elements of a JUnit report.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
	}
)

// writeJUnit writes a report with a test case for each query.
func (o *evalOptions) writeJUnit(info *evalInfo) error {
	report := junitSuites{}
	for _, s := range info.Skills {
		suite := junitSuite{Name: s.Name, Tests: len(s.cases)}
		for _, c := range s.cases {
			one := junitCase{Class: "skills." + s.Name, Name: c.Query}
			if c.reason != "" {
				suite.Failures++
				one.Failure = &junitFailure{c.reason}
			}
			suite.Cases = append(suite.Cases, one)
		}
		report.Suites = append(report.Suites, suite)
	}
	var b strings.Builder
	b.WriteString(xml.Header)
	enc := xml.NewEncoder(&b)
	enc.Indent("", "  ")
	if err := enc.Encode(report); err != nil {
		return err
	}
	file := o.junit
	if !filepath.IsAbs(file) {
		file = filepath.Join(o.Cwd, file)
	}
	if err := os.WriteFile(file, []byte(b.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("JUnit report: %w", err)
	}
	return nil
}
