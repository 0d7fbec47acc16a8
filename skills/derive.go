package skills

import (
	"slices"
	"strings"
)

// The subject of a skill without triggers is derived from its text. This
// evidence is weak, as phrases of a text also fit related skills: it counts only
// if the skill also ranks first by a margin. The numbers were tuned on one suite
// of labelled inputs and checked on another, see docs/skills.md.
const (
	derivedMargin = 1.3 // over the next best skill's score
	derivedPairs  = 2   // distinct word pairs of the description
	derivedName   = 0.6 // share of the name's words, if it has at least two
	longName      = 2   // inner capitals of an identifier that is a phrase itself
)

// evidence is what is derived from a skill's text.
type evidence struct {
	phrases []phrase        // quoted as triggers, and long identifiers
	pairs   map[string]bool // adjacent words of the description
	name    []string        // the words of the name
}

var (
	quoted  = lazily(`"([^"\n]{2,60})"|“([^”\n]{2,60})”|` + "`([^`\n]{2,60})`" + `|(?:^|[\s(,:])'([^'\n]{2,60})'`)
	negates = lazily(`(?i)\b(do not use|don't use|do not activate|not for|not use|never use|skip (?:this|if|for)|avoid|except)\b`)
	asks    = lazily(`(?i)\b(triggers?|use for|when)\b`)
	heading = lazily(`(?m)^# +(.+)$`)
)

// derive extracts from a skill's text when to use it.
func derive(m *Manifest) evidence {
	e := evidence{pairs: map[string]bool{}}
	add := func(s string) {
		p, ok := newPhrase(strings.TrimSpace(s))
		if len(p.words) == 1 && humps(p.written) < longName {
			return // GitHub, OpenAPI: many skills are about these
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

// pairs returns the distinct pairs of adjacent words that are not fillers.
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

// positive removes from a text what the skill is not for: from the negation to
// the end of the sentence or line.
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

// supports describes the evidence for the skill in an input, or returns "".
func (e evidence) supports(in *input) string {
	for _, p := range e.phrases {
		if in.has(p.words) {
			return "\"" + p.written + "\" in its text"
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
			return "words in its name"
		}
	}
	var hits []string
	for _, pair := range in.pairs {
		if e.pairs[pair] {
			if hits = append(hits, pair); len(hits) == derivedPairs {
				return "\"" + strings.Join(hits, "\", \"") + "\" in its description"
			}
		}
	}
	return ""
}
