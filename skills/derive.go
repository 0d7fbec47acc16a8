package skills

import (
	"slices"
	"strings"
)

// What a skill without triggers is about is derived from its own text. Such
// evidence is not taken at its word: phrases of a text fit its relatives as
// well, so that it counts only where the skill is also the best by its words,
// by a margin. The numbers were tuned on one suite of labelled inputs and
// checked on another, see docs/skills.md.
const (
	derivedMargin = 1.3 // over the next best skill's score
	derivedPairs  = 2   // different pairs of words of the description
	derivedName   = 0.6 // part of the words of the name, if it has two at least
	longName      = 2   // capitals within a name of code that stands for itself
)

// evidence is what is derived from a skill's text.
type evidence struct {
	phrases []phrase        // what is quoted as a trigger, and long names of code
	pairs   map[string]bool // of neighbouring words in the description
	name    []string        // the words of the name
}

var (
	quoted  = lazily(`"([^"\n]{2,60})"|“([^”\n]{2,60})”|` + "`([^`\n]{2,60})`" + `|(?:^|[\s(,:])'([^'\n]{2,60})'`)
	negates = lazily(`(?i)\b(do not use|don't use|do not activate|not for|not use|never use|skip (?:this|if|for)|avoid|except)\b`)
	asks    = lazily(`(?i)\b(triggers?|use for|when)\b`)
	heading = lazily(`(?m)^# +(.+)$`)
)

// derive reads what a skill's text says of when to use it.
func derive(m *Manifest) evidence {
	e := evidence{pairs: map[string]bool{}}
	add := func(s string) {
		p, ok := newPhrase(strings.TrimSpace(s))
		if len(p.words) == 1 && humps(p.written) < longName {
			return // GitHub, OpenAPI: many have to do with these
		}
		if ok && !slices.ContainsFunc(e.phrases, func(o phrase) bool { return slices.Equal(o.words, p.words) }) {
			e.phrases = append(e.phrases, p)
		}
	}
	for _, text := range []string{m.Description, m.WhenToUse} {
		text = positive(text)
		if asks().MatchString(text) {
			for _, found := range quoted().FindAllStringSubmatch(text, -1) {
				add(strings.Join(found[1:], ""))
			}
		}
		for name := range strings.FieldsSeq(text) {
			if name = strings.Trim(name, ".,;:!?()[]\"'`“”"); named(name) {
				add(name)
			}
		}
		for _, pair := range pairs(words(text)) {
			e.pairs[pair] = true
		}
	}
	add(strings.ReplaceAll(m.Name, "-", " "))
	if title := heading().FindStringSubmatch(m.Body); title != nil {
		add(title[1])
	}
	e.name = texts(words(strings.ReplaceAll(m.Name, "-", " ")))
	return e
}

// pairs returns the different pairs of neighbouring words that both say
// something.
func pairs(list []word) []string {
	var out []string
	seen := map[string]bool{}
	for i := 0; i+1 < len(list); i++ {
		pair := list[i].text + " " + list[i+1].text
		if !fillers[list[i].text] && !fillers[list[i+1].text] && !seen[pair] {
			seen[pair] = true
			out = append(out, pair)
		}
	}
	return out
}

// positive cuts from a text what it says not to be used for: from there to the
// end of the sentence or line.
func positive(text string) string {
	for {
		at := negates().FindStringIndex(text)
		if at == nil {
			return text
		}
		end := strings.IndexAny(text[at[1]:], ".\n;")
		if end < 0 {
			return text[:at[0]]
		}
		text = text[:at[0]] + text[at[1]+end:]
	}
}

// supports says what of an input speaks for the skill, or "".
func (e evidence) supports(in *input) string {
	for _, p := range e.phrases {
		if in.has(p.words) {
			return "\"" + p.written + "\" of its text"
		}
	}
	if n := len(e.name); n >= 2 {
		hits := 0
		for _, w := range e.name {
			if len(in.at[w]) > 0 {
				hits++
			}
		}
		if hits >= 2 && float64(hits) >= derivedName*float64(n) {
			return "words of its name"
		}
	}
	var hits []string
	for _, pair := range in.pairs {
		if e.pairs[pair] {
			if hits = append(hits, pair); len(hits) == derivedPairs {
				return "\"" + strings.Join(hits, "\", \"") + "\" of its description"
			}
		}
	}
	return ""
}
