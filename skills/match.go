package skills

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/rank"
)

// Reason is why a skill matched.
type Reason string

// The reasons, the strongest first.
const (
	ByName    Reason = "name"         // the user named it: /name, or $name at the beginning
	ByPhrase  Reason = "phrase"       // a phrase of two or more words, or an identifier
	ByPattern Reason = "pattern"      // a regular expression
	ByPair    Reason = "keyword+verb" // a keyword with a verb near it
	ByText    Reason = "text"         // the words of its text
	ByRank    Reason = "rank"         // full-text rank; it is listed, not disclosed
)

// Match is a skill that matches an input.
type Match struct {
	Skill    *Skill
	By       Reason
	Trigger  string  // what matched, as the author wrote it
	Score    float64 // full-text rank; comparable within one result
	Args     string  // the text after /name
	HeldBack string  // why it is not activated although it matched
}

// Result is the outcome of matching an input.
type Result struct {
	Activated []Match // to be disclosed, the best first
	HeldBack  []Match // matched, but held back
	Shortlist []Match // the highest ranked, including the activated ones
	Asked     bool    // the input asks what skills exist
}

// MatchOptions configure a match. The zero value means the defaults.
type MatchOptions struct {
	Max       int // activated skills besides those named; 0 = 3, negative = none
	Shortlist int // length of the shortlist; 0 = 12
	// Used returns when a skill was last used, to order equally ranked ones. May be
	// nil.
	Used func(name string) time.Time
	// About reports whether a file of the conversation matches the Paths of a
	// skill. Nil means that one does.
	About func(*Skill) bool
}

// unrelated reports whether no file of the conversation matches the skill's
// Paths.
func (o *MatchOptions) unrelated(s *Skill) bool {
	return len(s.Paths) > 0 && o.About != nil && !o.About(s)
}

// The defaults of MatchOptions.
const (
	defaultMax       = 3
	defaultShortlist = 12
)

// maxDemoted is the share of the calibration inputs that a trigger may match.
const maxDemoted = 0.02

// Matcher finds the skills that match an input. It is built for a fixed set of
// skills and safe for concurrent use.
//
// What the user names is activated: /name anywhere, $name at the beginning. Of
// the others at most one is, under one rule: it ranks first, ahead of the next by
// a margin, and enough speaks for it, see support. Words alone rank
// well but decide badly: they also occur in inputs about something else.
type Matcher struct {
	skills    []*Skill
	byName    map[string]int // by name and full name, in lower case
	index     *rank.Index    // by full name
	specs     []lazySpec     // of the skills
	withPaths int            // number of skills with Paths
}

// spec is what a skill's author says of its use, compiled.
type spec struct {
	phrases  []phrase
	patterns []pattern
	keywords map[string]string // word to keyword
	verbs    map[string]string
	pairs    map[string]bool // adjacent words of the description
	name     map[string]bool // terms of the name
}

// phrase is a trigger of several words, or an identifier.
type phrase struct {
	words   []string
	written string // as the author wrote it
}

func (p phrase) matches(in *input) bool { return in.has(p.words) }

// newPhrase turns a text into a phrase; ok reports whether it is specific enough.
func newPhrase(text string) (p phrase, ok bool) {
	list := words(text)
	return phrase{texts(list), text}, content(list) >= 2 || len(list) == 1 && list[0].name
}

// Demoted is a trigger that only ranks because it matches too many inputs.
type Demoted struct {
	By      Reason
	Trigger string
	Share   float64 // of the calibration inputs, from 0 to 1
}

// NewMatcher builds a matcher for skills.
func NewMatcher(list []*Skill) *Matcher { return newMatcher(list, nil) }

// rankFields are the fields of the index of skills.
var rankFields = []rank.Field{{Name: "name", Weight: 1}, {Name: "description", Weight: 1}, {Name: "triggers", Weight: 1}, {Name: "body", Weight: 0.1}}

// indexed returns the texts of a skill that are indexed, by field.
func indexed(s *Skill) []string {
	t := s.Triggers
	return []string{s.Name, positive(s.Description), strings.Join(slices.Concat(t.Keywords, t.Verbs, literals(t.Patterns), []string{positive(s.WhenToUse)}), "\n"), s.Body()}
}

// newMatcher is NewMatcher with an index from the cache, if there is one.
func newMatcher(list []*Skill, cache *diskCache) *Matcher {
	m := &Matcher{
		skills: list, byName: make(map[string]int, 2*len(list)), specs: make([]lazySpec, len(list)), index: cache.index(list),
	}
	for i, s := range list {
		id := strings.ToLower(s.FullName())
		m.byName[id], m.byName[strings.ToLower(s.Name)] = i, i
		m.specs[i].manifest = &s.Manifest
		if len(s.Paths) > 0 {
			m.withPaths++
		}
	}
	return m
}

// nameAlone returns a pattern of a name that is not part of a path or of another
// name.
func nameAlone(name string) string {
	return `(?:^|[\s"'(])` + regexp.QuoteMeta(name) + `(?:$|[\s"'),;:?!]|\.(?:\s|$))`
}

// lazySpec is compiled when it is first needed.
type lazySpec struct {
	manifest *Manifest
	once     sync.Once
	spec     *spec
}

func (l *lazySpec) get() *spec {
	l.once.Do(func() { l.spec = newSpec(l.manifest) })
	return l.spec
}

func newSpec(m *Manifest) *spec {
	sp := &spec{keywords: map[string]string{}, verbs: map[string]string{}, pairs: map[string]bool{}, name: map[string]bool{}}
	for _, k := range m.Triggers.Keywords {
		p, ok := newPhrase(k)
		if ok {
			sp.phrases = append(sp.phrases, p)
			continue
		}
		for _, w := range p.words {
			if !fillers[w] {
				sp.keywords[w] = k
			}
		}
	}
	if p, ok := newPattern(nameAlone(m.Name)); ok && strings.Contains(m.Name, "-") && !m.Triggers.None() {
		p.written = m.Name
		sp.patterns = append(sp.patterns, p)
	}
	for _, v := range m.Triggers.Verbs {
		for _, w := range words(v) {
			sp.verbs[w.text] = v
		}
	}
	for _, p := range m.Triggers.Patterns {
		if compiled, ok := newPattern(p); ok {
			sp.patterns = append(sp.patterns, compiled)
		}
	}
	for _, pair := range slices.Concat(pairs(words(positive(m.Description))), pairs(words(positive(m.WhenToUse)))) {
		sp.pairs[pair] = true
	}
	for _, term := range rank.Tokens(m.Name) {
		sp.name[term] = true
	}
	return sp
}

// Demoted returns the triggers of a manifest that are only used for ranking.
func (m *Manifest) Demoted() []Demoted {
	sp := newSpec(m)
	var list []Demoted
	add := func(by Reason, trigger string, matches func(*input) bool) {
		if share := shareOf(matches); share > maxDemoted {
			list = append(list, Demoted{by, trigger, share})
		}
	}
	for _, p := range sp.phrases {
		add(ByPhrase, p.written, p.matches)
	}
	for _, p := range sp.patterns {
		add(ByPattern, p.written, p.matches)
	}
	for _, word := range slices.Sorted(maps.Keys(sp.keywords)) {
		add(ByPair, sp.keywords[word], sp.matches(word))
	}
	return list
}

// shareOf returns the share of the calibration inputs that a trigger matches.
func shareOf(matches func(*input) bool) float64 {
	n := 0
	for _, in := range calibration().inputs {
		if matches(in) {
			n++
		}
	}
	return float64(n) / float64(len(calibration().inputs))
}

// decides reports whether a trigger matches an input, and few ordinary ones.
// Only the triggers that match are held against those.
func decides(in *input, matches func(*input) bool) bool {
	return matches(in) && shareOf(matches) <= maxDemoted
}

// match matches an input against the triggers, the strongest kind first.
func (sp *spec) match(in *input) (Match, bool) {
	best := -1
	for i, p := range sp.phrases {
		if (best < 0 || len(p.words) > len(sp.phrases[best].words)) && decides(in, p.matches) {
			best = i
		}
	}
	if best >= 0 {
		return Match{By: ByPhrase, Trigger: sp.phrases[best].written}, true
	}
	for _, p := range sp.patterns {
		if decides(in, p.matches) {
			return Match{By: ByPattern, Trigger: p.written}, true
		}
	}
	if trigger := sp.pair(in); trigger != "" {
		return Match{By: ByPair, Trigger: trigger}, true
	}
	return Match{}, false
}

// pairDistance is the maximum distance between keyword and verb, in words.
const pairDistance = 8

// pair looks for a keyword with a verb near it, and returns the first in the
// input.
func (sp *spec) pair(in *input) string {
	if len(sp.verbs) == 0 {
		return ""
	}
	first, found := len(in.words), ""
	for word, keyword := range sp.keywords {
		if i, verb := sp.near(in, word); i < first && decides(in, sp.matches(word)) {
			first, found = i, verb+" + "+keyword
		}
	}
	return found
}

// matches returns a function that reports whether an input has a verb near the
// keyword.
func (sp *spec) matches(word string) func(*input) bool {
	return func(in *input) bool {
		i, _ := sp.near(in, word)
		return i < len(in.words)
	}
}

// near returns the first position of a keyword that has a verb near it, and the
// verb. Without one the position is behind the input's last word.
func (sp *spec) near(in *input, word string) (int, string) {
	for _, i := range in.at[word] {
		for j := max(0, i-pairDistance); j < min(len(in.words), i+pairDistance+1); j++ {
			if verb, ok := sp.verb(in.words[j].text); ok && j != i {
				return i, verb
			}
		}
	}
	return len(in.words), ""
}

// verb looks up a verb by one of its regular forms.
func (sp *spec) verb(w string) (string, bool) {
	for _, form := range verbForms(w) {
		if v, ok := sp.verbs[form]; ok {
			return v, true
		}
	}
	return "", false
}

func verbForms(w string) []string {
	forms := []string{w}
	for _, ending := range []string{"ing", "ed", "es"} {
		if stem, ok := strings.CutSuffix(w, ending); ok && len(stem) >= 2 {
			forms = append(forms, stem, stem+"e")
			if n := len(stem); n > 2 && stem[n-1] == stem[n-2] {
				forms = append(forms, stem[:n-1])
			}
		}
	}
	return forms
}

// Match matches an input against the skills.
func (m *Matcher) Match(text string, o MatchOptions) Result {
	o.Max, o.Shortlist = cmp.Or(o.Max, defaultMax), cmp.Or(o.Shortlist, defaultShortlist)
	in := newInput(text)
	r := Result{Asked: in.asks()}
	if len(m.skills) == 0 {
		return r
	}
	named := map[*Skill]bool{}
	for _, mention := range in.names {
		if i, ok := m.byName[strings.ToLower(mention.name)]; ok && !named[m.skills[i]] {
			named[m.skills[i]] = true
			r.Activated = append(r.Activated, Match{Skill: m.skills[i], By: ByName, Trigger: mention.name, Args: mention.args})
		}
	}
	ranked, unrelated := m.search(in, &o, named)
	unasked(&r, in, ranked, o)
	for _, c := range unrelated {
		if hit, ok := c.spec().match(in); ok {
			hit.Skill, hit.Score, hit.HeldBack = c.Skill, c.Score, c.HeldBack
			r.HeldBack = append(r.HeldBack, hit)
		}
	}
	r.Shortlist = slices.Clone(r.Activated)
	for _, c := range ranked {
		taken := slices.ContainsFunc(r.Activated, func(a Match) bool { return a.Skill == c.Skill })
		if !taken && !c.Skill.NoModel && len(r.Shortlist) < o.Shortlist {
			r.Shortlist = append(r.Shortlist, c.Match)
		}
	}
	return r
}

// candidate is a skill that shares words with the input.
type candidate struct {
	Match
	terms []rank.Term
	spec  func() *spec
}

// search ranks the skills by the input's words, except those that are named.
// Those whose Paths match no file of the conversation are apart.
func (m *Matcher) search(in *input, o *MatchOptions, named map[*Skill]bool) (ranked, unrelated []candidate) {
	for _, h := range m.index.Search(in.text, max(o.Shortlist, 2)+len(named)+m.withPaths) {
		i := m.byName[h.ID]
		if named[m.skills[i]] {
			continue
		}
		var terms []string
		for _, t := range h.Terms[:min(len(h.Terms), 5)] {
			terms = append(terms, t.Text)
		}
		c := candidate{Match{Skill: m.skills[i], By: ByRank, Score: h.Score, Trigger: strings.Join(terms, ", ")}, h.Terms, m.specs[i].get}
		if o.unrelated(c.Skill) {
			c.HeldBack = "no file in the conversation matches its paths: " + strings.Join(c.Skill.Paths, ", ")
			unrelated = append(unrelated, c)
			continue
		}
		ranked = append(ranked, c)
	}
	if o.Used != nil {
		slices.SortStableFunc(ranked, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), o.Used(b.Skill.Name).Compare(o.Used(a.Skill.Name)))
		})
	}
	return ranked, unrelated
}

// A skill that is not named needs this ratio of its score to the next best one's,
// this weight of words that the next best one does not have, and this sum of what
// speaks for it. The numbers were fitted on some suites of labelled inputs and
// checked on others, see docs/skills.md.
const (
	minMargin = 1.4
	maxMargin = 4 // more says nothing: among few skills any word may stand alone
	minOwn    = 6.0
	enough    = 7.0

	perMargin  = 2.2 // times the logarithm of the ratio
	perName    = 0.2 // times the weight of the name's words in the input
	perShare   = 7.0 // times the weight of its words in that of all the input's words
	perPair    = 0.7 // times the number of adjacent words that its description has, too
	maxPairs   = 3
	perTrigger = 3.0 // for one of the author's triggers
	unsaid     = 12  // weight added to that of the input's words: two words are no evidence
)

// unasked activates the skill that ranks first, if it is ahead of the next one
// and enough speaks for it. It also tells why others, whose triggers match, are
// held back.
func unasked(r *Result, in *input, ranked []candidate, o MatchOptions) {
	for i, c := range ranked {
		hit, triggered := c.spec().match(in)
		hit.Skill, hit.Score = c.Skill, c.Score
		if !triggered {
			hit.By, hit.Trigger = ByText, c.Trigger
		}
		sure := i == 0 && (triggered || c.Skill.Triggers.None()) && c.support(in, ranked[1:], triggered) >= enough
		switch {
		case !triggered && !sure:
			continue
		case i > 0:
			hit.HeldBack = ranked[0].Skill.Name + " ranks higher"
		case c.Skill.NoModel:
			hit.HeldBack = "only the user may activate it"
		case !c.ahead(in, ranked[1:], triggered):
			hit.HeldBack = ranked[1].Skill.Name + " ranks almost as high"
		case !sure:
			hit.HeldBack = "too much of the input is about something else"
		case o.Max < 0:
			hit.HeldBack = "only skills that you name are activated"
		default:
			r.Activated = append(r.Activated, hit)
			continue
		}
		r.HeldBack = append(r.HeldBack, hit)
	}
}

// margin returns the ratio of the score to that of the next best skill.
func (c *candidate) margin(others []candidate) float64 {
	if len(others) == 0 {
		return maxMargin
	}
	return min(c.Score/others[0].Score, maxMargin)
}

// ahead reports whether the next best skill is no match for this one. One that
// has the same words is, however often it has them, unless a trigger decides.
func (c *candidate) ahead(in *input, others []candidate, triggered bool) bool {
	if len(others) == 0 {
		return true
	}
	own := 0.0
	if _, too := others[0].spec().match(in); triggered && !too {
		own = minOwn
	}
	for _, t := range c.terms {
		if !slices.ContainsFunc(others[0].terms, func(o rank.Term) bool { return o.Text == t.Text }) {
			own += calibration().weight(t.Text)
		}
	}
	return c.margin(others) >= minMargin && own >= minOwn
}

// support adds up what speaks for the skill that ranks first.
func (c *candidate) support(in *input, others []candidate, triggered bool) float64 {
	sp := c.spec()
	its, name := 0.0, 0.0
	for _, t := range c.terms {
		weight := calibration().weight(t.Text)
		its += weight
		if sp.name[t.Text] {
			name += weight
		}
	}
	shared := 0
	for _, pair := range in.pairs {
		if sp.pairs[pair] {
			shared++
		}
	}
	sum := perMargin*math.Log(c.margin(others)) + perName*name + perShare*min(its/(in.weight()+unsaid), 1) + perPair*float64(min(shared, maxPairs))
	if triggered {
		sum += perTrigger
	}
	return sum
}
