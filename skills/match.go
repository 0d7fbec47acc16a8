package skills

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/rank"
)

// By says what called for a skill, the most binding first.
type By string

// What calls for a skill.
const (
	ByName    By = "name"         // the person named it: /name, $name, or its exact name
	ByPhrase  By = "phrase"       // a phrase of two or more words, or a name of code
	ByPattern By = "pattern"      // a regular expression
	ByPair    By = "keyword+verb" // a single word, and a verb near it
	ByText    By = "text"         // its own text, for a skill without triggers
	ByRank    By = "rank"         // its words; it is listed, not disclosed
)

var byOrder = []By{ByName, ByPhrase, ByPattern, ByPair, ByText, ByRank}

// Match is a skill that has to do with an input.
type Match struct {
	Skill   *Skill
	By      By
	Trigger string  // what matched, as the author wrote it
	Score   float64 // of its words; comparable within one result
	Args    string  // what stands behind /name
	Held    string  // why it is not disclosed although something called for it
	weight  int     // words of the trigger
}

// Result is what an input calls for.
type Result struct {
	Activated []Match // to be disclosed, the best first
	Held      []Match // called for, and held back
	Shortlist []Match // the best by their words, the activated ones included
	Asked     bool    // the input asks which skills there are
}

// MatchOptions bound a result. The zero value has the defaults.
type MatchOptions struct {
	Max       int // skills to disclose; 0 = DefaultMax, below 0 = none but named ones
	Shortlist int // its length; 0 = DefaultShortlist
	// Used tells when a skill was used last. It only breaks ties. May be nil.
	Used func(name string) time.Time
	// About reports whether the files in play are some that a skill with Paths
	// is about. Nil means that they are.
	About func(*Skill) bool
}

// away reports whether a skill is about files that are not in play.
func (o *MatchOptions) away(s *Skill) bool {
	return len(s.Paths) > 0 && o.About != nil && !o.About(s)
}

// The defaults of MatchOptions.
const (
	DefaultMax       = 3
	DefaultShortlist = 12
)

// maxDemoted is the part of the calibration inputs that a trigger may fire on.
const maxDemoted = 0.02

// Matcher finds the skills that an input calls for. It is made of a set of
// skills once, and safe for concurrent use.
//
// Words rank well and decide badly. So a single word never discloses a skill;
// the person's naming it does, and the author's phrases, patterns and pairs of
// keyword and verb, unless they fire on more than two percent of ordinary
// inputs: then they only rank. A skill without triggers is taken by its text.
type Matcher struct {
	skills []*Skill
	byName map[string]int // by their names and full names, in lower case
	index  *rank.Index    // by their full names
	specs  []spec

	// What an input must have for a skill to be looked at: one of these words,
	// or pairs of words.
	byWord, byPair map[string][]int
	always         []int // those with patterns
	bound          []int // those with paths
}

// spec is what calls for one skill.
type spec struct {
	phrases  []phrase
	patterns []pattern
	keywords map[string]string // word to keyword
	verbs    map[string]string
	text     *evidence // nil where the author wrote triggers
	demoted  []Demoted
}

// phrase is a trigger of several words, or a name of code.
type phrase struct {
	words   []string
	written string // as the author wrote it
}

// newPhrase makes a phrase of a text, if it says enough.
func newPhrase(text string) (phrase, bool) {
	list := words(text)
	return phrase{texts(list), text}, content(list) >= 2 || len(list) == 1 && list[0].name
}

// Demoted is a trigger that only ranks, because too many inputs have it.
type Demoted struct {
	By      By
	Trigger string
	Share   float64 // of the calibration inputs, from 0 to 1
}

// NewMatcher makes a matcher of skills.
func NewMatcher(list []*Skill) *Matcher {
	m := &Matcher{
		skills: list, byName: map[string]int{}, specs: make([]spec, len(list)), byWord: map[string][]int{}, byPair: map[string][]int{},
		index: rank.New(rank.Field{Name: "name", Weight: 3}, rank.Field{Name: "description", Weight: 2}, rank.Field{Name: "triggers", Weight: 2}, rank.Field{Name: "body", Weight: 1}),
	}
	for i, s := range list {
		id := strings.ToLower(s.FullName())
		m.byName[id], m.byName[strings.ToLower(s.Name)] = i, i
		var common []*input
		if s.Scope != ScopeBundled { // a test sees to those
			common = calibration()
		}
		m.specs[i] = newSpec(&s.Manifest, common)
		m.watch(i)
		t := s.Triggers
		m.index.Put(id, s.Name, s.Description, strings.Join(slices.Concat(t.Keywords, t.Verbs, []string{s.WhenToUse}), "\n"), s.Body)
	}
	return m
}

// watch notes what makes a skill worth a look.
func (m *Matcher) watch(i int) {
	put := func(in map[string][]int, key string) {
		if list := in[key]; len(list) == 0 || list[len(list)-1] != i {
			in[key] = append(list, i)
		}
	}
	sp := &m.specs[i]
	if len(m.skills[i].Paths) > 0 {
		m.bound = append(m.bound, i)
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

// candidates are the skills that an input may call for, in their order.
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

// Demoted returns the triggers of a manifest that only rank.
func (m *Manifest) Demoted() []Demoted { return newSpec(m, calibration()).demoted }

// demote takes out what fires on too many ordinary inputs.
func (sp *spec) demote(common []*input) {
	if len(common) == 0 {
		return
	}
	often := func(by By, trigger string, fires func(*input) bool) bool {
		n := 0
		for _, in := range common {
			if fires(in) {
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

// call says what of an input calls for the skill.
func (sp *spec) call(in *input) (Match, bool) {
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

// pairDistance is how many words a verb may be away from its keyword.
const pairDistance = 8

// pair looks for a keyword with a verb near it; of several the first in the
// input counts.
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

// verb finds a verb by one of its regular forms.
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

// Match returns what an input calls for.
func (m *Matcher) Match(text string, o MatchOptions) Result {
	o.Max, o.Shortlist = cmp.Or(o.Max, DefaultMax), cmp.Or(o.Shortlist, DefaultShortlist)
	in := newInput(text)
	r := Result{Asked: in.asks()}
	if len(m.skills) == 0 {
		return r
	}
	hits, away := m.search(in, &o)
	var calls []Match
	for _, i := range m.candidates(in) {
		s := m.skills[i]
		c, ok := in.called(s)
		if !ok {
			c, ok = m.specs[i].call(in)
		}
		if !ok {
			continue
		}
		c.Skill, c.Held = s, ""
		c.Score = m.score(hits, i)
		m.hold(&c, hits, away)
		calls = append(calls, c)
	}
	m.settle(&r, calls, o)
	m.shortlist(&r, hits, away, o)
	return r
}

// search ranks the skills by the input's words. Those whose files are not in
// play are left out of it, and returned.
func (m *Matcher) search(in *input, o *MatchOptions) (hits []rank.Hit, away map[*Skill]bool) {
	away = map[*Skill]bool{}
	for _, i := range m.bound {
		if o.away(m.skills[i]) {
			away[m.skills[i]] = true
		}
	}
	hits = m.index.Search(in.text, max(o.Shortlist, 2)+len(in.names)+len(away))
	return slices.DeleteFunc(hits, func(h rank.Hit) bool { return away[m.skills[m.byName[h.ID]]] }), away
}

// score is a skill's among the hits, 0 if it is not.
func (m *Matcher) score(hits []rank.Hit, i int) float64 {
	for _, h := range hits {
		if m.byName[h.ID] == i {
			return h.Score
		}
	}
	return 0
}

// hold says why something that calls for a skill does not disclose it.
func (m *Matcher) hold(c *Match, hits []rank.Hit, away map[*Skill]bool) {
	switch {
	case c.By == ByName:
	case c.Skill.NoModel:
		c.Held = "only the person may activate it"
	case away[c.Skill]:
		c.Held = "no file that it is about is in play: " + strings.Join(c.Skill.Paths, ", ")
	case c.By == ByText && !m.ahead(c, hits):
		c.Held = "it has no triggers of its own, and other skills are as near by their words"
	}
}

// ahead reports whether a skill is the best by its words, by a margin.
func (m *Matcher) ahead(c *Match, hits []rank.Hit) bool {
	if len(hits) == 0 || m.skills[m.byName[hits[0].ID]] != c.Skill {
		return false
	}
	return len(hits) == 1 || hits[0].Score >= derivedMargin*hits[1].Score
}

// settle sorts what was called for and cuts it at the greatest number.
func (m *Matcher) settle(r *Result, calls []Match, o MatchOptions) {
	used := func(s *Skill) int64 {
		if o.Used == nil {
			return 0
		}
		return o.Used(s.Name).UnixNano()
	}
	slices.SortStableFunc(calls, func(a, b Match) int {
		return cmp.Or(
			cmp.Compare(slices.Index(byOrder, a.By), slices.Index(byOrder, b.By)),
			cmp.Compare(b.weight, a.weight),
			cmp.Compare(b.Score, a.Score),
			cmp.Compare(used(b.Skill), used(a.Skill)),
			cmp.Compare(a.Skill.Name, b.Skill.Name),
		)
	})
	for _, c := range calls {
		if c.Held == "" && c.By != ByName && len(r.Activated) >= o.Max {
			c.Held = "other skills go before it, and there are enough of them"
		}
		if c.Held == "" {
			r.Activated = append(r.Activated, c)
		} else {
			r.Held = append(r.Held, c)
		}
	}
}

// shortlist adds the skills that fit best by their words.
func (m *Matcher) shortlist(r *Result, hits []rank.Hit, away map[*Skill]bool, o MatchOptions) {
	r.Shortlist = slices.Clone(r.Activated)
	add := func(c Match) {
		taken := slices.ContainsFunc(r.Shortlist, func(o Match) bool { return o.Skill == c.Skill })
		if !taken && len(r.Shortlist) < o.Shortlist && !c.Skill.NoModel && !away[c.Skill] {
			r.Shortlist = append(r.Shortlist, c)
		}
	}
	for _, c := range r.Held {
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
