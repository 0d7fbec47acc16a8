package skills

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/rank"
)

// Reason is why a skill matched.
type Reason string

// The reasons, the strongest first.
const (
	ByName    Reason = "name"         // the user named it: /name, $name, or its exact name
	ByPhrase  Reason = "phrase"       // a phrase of two or more words, or an identifier
	ByPattern Reason = "pattern"      // a regular expression
	ByPair    Reason = "keyword+verb" // a keyword with a verb near it
	ByText    Reason = "text"         // the skill's text, if it has no triggers
	ByRank    Reason = "rank"         // full-text rank; it is listed, not disclosed
)

var byOrder = []Reason{ByName, ByPhrase, ByPattern, ByPair, ByText, ByRank}

// Match is a skill that matches an input.
type Match struct {
	Skill    *Skill
	By       Reason
	Trigger  string  // what matched, as the author wrote it
	Score    float64 // full-text rank; comparable within one result
	Args     string  // the text after /name
	HeldBack string  // why it is not activated although it matched
	weight   int     // number of words that the trigger matched
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
	Max       int // activated skills; 0 = 3, negative = only named ones
	Shortlist int // length of the shortlist; 0 = 12
	// Used returns when a skill was last used, to break ties. May be nil.
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
// Single words rank well but decide badly, so one never activates a skill. What
// does is its name, and the author's phrases, patterns and keyword+verb pairs,
// unless they match more than two percent of ordinary inputs: then they only
// rank. A skill without triggers is matched by its text.
type Matcher struct {
	skills []*Skill
	byName map[string]int // by name and full name, in lower case
	index  *rank.Index    // by full name
	specs  []spec

	// A skill is only examined if the input has one of these words or word
	// pairs.
	byWord, byPair map[string][]int
	always         []int // skills with patterns
	withPaths      []int // skills with Paths
}

// spec is the compiled triggers of one skill.
type spec struct {
	phrases  []phrase
	patterns []pattern
	keywords map[string]string // word to keyword
	verbs    map[string]string
	text     *evidence // nil if the author wrote triggers
	demoted  []Demoted
}

// phrase is a trigger of several words, or an identifier.
type phrase struct {
	words   []string
	written string // as the author wrote it
}

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
var rankFields = []rank.Field{{Name: "name", Weight: 3}, {Name: "description", Weight: 2}, {Name: "triggers", Weight: 2}, {Name: "body", Weight: 1}}

// indexed returns the texts of a skill that are indexed, by field.
func indexed(s *Skill) []string {
	t := s.Triggers
	return []string{s.Name, s.Description, strings.Join(slices.Concat(t.Keywords, t.Verbs, []string{s.WhenToUse}), "\n"), s.Body}
}

// newMatcher is NewMatcher with an index from the cache, if there is one.
func newMatcher(list []*Skill, cache *diskCache) *Matcher {
	m := &Matcher{
		skills: list, byName: map[string]int{}, specs: make([]spec, len(list)), byWord: map[string][]int{}, byPair: map[string][]int{},
		index: cache.index(list),
	}
	for i, s := range list {
		id := strings.ToLower(s.FullName())
		m.byName[id], m.byName[strings.ToLower(s.Name)] = i, i
		var common []*input
		if s.Scope != ScopeBundled { // those are checked by a test
			common = calibration()
		}
		m.specs[i] = newSpec(&s.Manifest, common)
		m.watch(i)
	}
	return m
}

// watch indexes the words and pairs that make a skill a candidate.
func (m *Matcher) watch(i int) {
	put := func(in map[string][]int, key string) {
		if list := in[key]; len(list) == 0 || list[len(list)-1] != i {
			in[key] = append(list, i)
		}
	}
	sp := &m.specs[i]
	if len(m.skills[i].Paths) > 0 {
		m.withPaths = append(m.withPaths, i)
	}
	if len(sp.patterns) > 0 {
		m.always = append(m.always, i)
	}
	for word := range sp.keywords {
		put(m.byWord, word)
	}
	for _, p := range sp.phrases {
		put(m.byWord, p.words[0])
	}
	if sp.text == nil {
		return
	}
	for _, p := range sp.text.phrases {
		put(m.byWord, p.words[0])
	}
	for _, w := range sp.text.name {
		put(m.byWord, w)
	}
	for pair := range sp.text.pairs {
		put(m.byPair, pair)
	}
}

// candidates returns the skills that an input may match, in order.
func (m *Matcher) candidates(in *input) []int {
	seen := map[int]bool{}
	for _, i := range m.always {
		seen[i] = true
	}
	for _, name := range in.names {
		if i, ok := m.byName[strings.ToLower(name.name)]; ok {
			seen[i] = true
		}
	}
	for word := range in.at {
		for _, i := range m.byWord[word] {
			seen[i] = true
		}
	}
	for _, pair := range in.pairs {
		for _, i := range m.byPair[pair] {
			seen[i] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func newSpec(m *Manifest, common []*input) spec {
	sp := spec{keywords: map[string]string{}, verbs: map[string]string{}}
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
	if m.Triggers.None() {
		e := derive(m)
		sp.text = &e
	}
	sp.demote(common)
	return sp
}

// Demoted returns the triggers of a manifest that are only used for ranking.
func (m *Manifest) Demoted() []Demoted { return newSpec(m, calibration()).demoted }

// demote removes the triggers that match too many ordinary inputs.
func (sp *spec) demote(common []*input) {
	if len(common) == 0 {
		return
	}
	often := func(by Reason, trigger string, matches func(*input) bool) bool {
		n := 0
		for _, in := range common {
			if matches(in) {
				n++
			}
		}
		share := float64(n) / float64(len(common))
		if share > maxDemoted {
			sp.demoted = append(sp.demoted, Demoted{by, trigger, share})
		}
		return share > maxDemoted
	}
	sp.phrases = slices.DeleteFunc(sp.phrases, func(p phrase) bool {
		return often(ByPhrase, p.written, func(in *input) bool { return in.has(p.words) })
	})
	sp.patterns = slices.DeleteFunc(sp.patterns, func(p pattern) bool {
		return often(ByPattern, p.written, func(in *input) bool { return p.find(in) != "" })
	})
	for _, word := range slices.Sorted(maps.Keys(sp.keywords)) {
		keyword := sp.keywords[word]
		one := spec{keywords: map[string]string{word: keyword}, verbs: sp.verbs}
		if often(ByPair, keyword, func(in *input) bool { return one.pair(in) != "" }) {
			delete(sp.keywords, word)
		}
	}
}

// match matches an input against the triggers, the strongest kind first.
func (sp *spec) match(in *input) (Match, bool) {
	best := -1
	for i, p := range sp.phrases {
		if (best < 0 || len(p.words) > len(sp.phrases[best].words)) && in.has(p.words) {
			best = i
		}
	}
	if best >= 0 {
		p := sp.phrases[best]
		return Match{By: ByPhrase, Trigger: p.written, weight: len(p.words)}, true
	}
	for _, p := range sp.patterns {
		if at := p.find(in); at != "" {
			return Match{By: ByPattern, Trigger: p.written, weight: len(strings.Fields(at))}, true
		}
	}
	if trigger := sp.pair(in); trigger != "" {
		return Match{By: ByPair, Trigger: trigger}, true
	}
	if sp.text != nil {
		if why := sp.text.supports(in); why != "" {
			return Match{By: ByText, Trigger: why}, true
		}
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
		for _, i := range in.at[word] {
			if i >= first {
				break
			}
			for j := max(0, i-pairDistance); j < min(len(in.words), i+pairDistance+1); j++ {
				if verb, ok := sp.verb(in.words[j].text); ok && j != i {
					first, found = i, verb+" + "+keyword
					break
				}
			}
		}
	}
	return found
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
	hits, unrelated := m.search(in, &o)
	var matches []Match
	for _, i := range m.candidates(in) {
		s := m.skills[i]
		c, ok := in.called(s)
		if !ok {
			c, ok = m.specs[i].match(in)
		}
		if !ok {
			continue
		}
		c.Skill, c.Score = s, m.score(hits, i)
		c.HeldBack = m.heldBack(&c, hits, unrelated)
		matches = append(matches, c)
	}
	m.settle(&r, matches, o)
	m.shortlist(&r, hits, unrelated, o)
	return r
}

// search ranks the skills by the input's words, except those whose paths match
// no file of the conversation, which it returns separately.
func (m *Matcher) search(in *input, o *MatchOptions) (hits []rank.Hit, unrelated map[*Skill]bool) {
	unrelated = map[*Skill]bool{}
	for _, i := range m.withPaths {
		if o.unrelated(m.skills[i]) {
			unrelated[m.skills[i]] = true
		}
	}
	hits = m.index.Search(in.text, max(o.Shortlist, 2)+len(in.names)+len(unrelated))
	return slices.DeleteFunc(hits, func(h rank.Hit) bool { return unrelated[m.skills[m.byName[h.ID]]] }), unrelated
}

// score returns a skill's score, 0 if it is not among the hits.
func (m *Matcher) score(hits []rank.Hit, i int) float64 {
	for _, h := range hits {
		if m.byName[h.ID] == i {
			return h.Score
		}
	}
	return 0
}

// heldBack says why a matching skill is not activated; "" if it is.
func (m *Matcher) heldBack(c *Match, hits []rank.Hit, unrelated map[*Skill]bool) string {
	switch {
	case c.By == ByName:
	case c.Skill.NoModel:
		return "only the user may activate it"
	case unrelated[c.Skill]:
		return "no file in the conversation matches its paths: " + strings.Join(c.Skill.Paths, ", ")
	case c.By == ByText && !m.ahead(c, hits):
		return "it has no triggers, and other skills rank as high"
	}
	return ""
}

// ahead reports whether a skill ranks first by a margin.
func (m *Matcher) ahead(c *Match, hits []rank.Hit) bool {
	if len(hits) == 0 || m.skills[m.byName[hits[0].ID]] != c.Skill {
		return false
	}
	return len(hits) == 1 || hits[0].Score >= derivedMargin*hits[1].Score
}

// settle sorts the matches and holds back those over the limit.
func (m *Matcher) settle(r *Result, matches []Match, o MatchOptions) {
	used := func(s *Skill) int64 {
		if o.Used == nil {
			return 0
		}
		return o.Used(s.Name).UnixNano()
	}
	slices.SortStableFunc(matches, func(a, b Match) int {
		return cmp.Or(
			cmp.Compare(slices.Index(byOrder, a.By), slices.Index(byOrder, b.By)),
			cmp.Compare(b.weight, a.weight),
			cmp.Compare(b.Score, a.Score),
			cmp.Compare(used(b.Skill), used(a.Skill)),
			cmp.Compare(a.Skill.Name, b.Skill.Name),
		)
	})
	for _, c := range matches {
		if c.HeldBack == "" && c.By != ByName && len(r.Activated) >= o.Max {
			c.HeldBack = "the maximum number of skills is reached"
		}
		if c.HeldBack == "" {
			r.Activated = append(r.Activated, c)
		} else {
			r.HeldBack = append(r.HeldBack, c)
		}
	}
}

// shortlist adds the highest ranked skills.
func (m *Matcher) shortlist(r *Result, hits []rank.Hit, unrelated map[*Skill]bool, o MatchOptions) {
	r.Shortlist = slices.Clone(r.Activated)
	add := func(c Match) {
		taken := slices.ContainsFunc(r.Shortlist, func(o Match) bool { return o.Skill == c.Skill })
		if !taken && len(r.Shortlist) < o.Shortlist && !c.Skill.NoModel && !unrelated[c.Skill] {
			r.Shortlist = append(r.Shortlist, c)
		}
	}
	for _, c := range r.HeldBack {
		if c.By != ByText {
			add(c)
		}
	}
	for _, h := range hits {
		var terms []string
		for _, t := range h.Terms[:min(len(h.Terms), 5)] {
			terms = append(terms, t.Text)
		}
		add(Match{Skill: m.skills[m.byName[h.ID]], By: ByRank, Score: h.Score, Trigger: strings.Join(terms, ", ")})
	}
}
