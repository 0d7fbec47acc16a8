package skills

import (
	_ "embed"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/rank"
)

// maxInput bounds the part of an input that is examined, in bytes.
const maxInput = 16 << 10

// input is a user's input, prepared for matching.
type input struct {
	text  string // without names and what the user does not want
	lower string // the text in lower case
	words []word
	at    map[string][]int // the positions of a word
	pairs []string         // see [pairs]
	names []mention
}

// mention is a possible skill name in the input.
type mention struct {
	name       string
	args       string // the text after a name at the beginning
	start, end int
}

var (
	mentioned = lazy.Regexp(`(?:^|[\s("'])([/$])((?:(?:project|user|bundled):)?[A-Za-z0-9][A-Za-z0-9-]*)`)
	// assigned is what follows a $variable in code.
	assigned = lazy.Regexp(`^\s*(?:[=\[(;+]|->|\.=)`)
	inPath   = lazy.Regexp(`\S*[/\\]\S*`)
	// refused is what the user does not want.
	refused = lazy.Regexp(`(?im)(?:^\W*|[.,;:!?]\s*|\b(?:please|and|but|then|so|you)\s+)(?:do not|don['’]?t|never)\b[^.,;:!?\n]*|\b(?:without|instead of|rather than|except)\b[^.,;:!?\n]*`)
)

// newInput prepares a text; of a long one, its beginning and end.
func newInput(text string) *input {
	if len(text) > maxInput {
		head, tail := text[:maxInput/2], text[len(text)-maxInput/2:]
		for !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
		text = strings.ToValidUTF8(head, "") + "\n" + tail
	}
	wanted := text
	if mayRefuse(text) {
		wanted = refused().ReplaceAllStringFunc(text, blank)
	}
	in := &input{at: map[string][]int{}}
	if strings.ContainsAny(wanted, "/$") {
		in.names = mentions(wanted, text)
	}
	text = wanted
	for _, m := range in.names {
		text = text[:m.start] + blank(text[m.start:m.end]) + text[m.end:]
	}
	in.text, in.lower, in.words = text, strings.ToLower(text), words(text)
	for i, w := range in.words {
		in.at[w.text] = append(in.at[w.text], i)
	}
	in.pairs = pairs(in.words)
	return in
}

// mayRefuse reports whether [refused] may match a text.
func mayRefuse(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"do not", "don", "never", "without", "instead of", "rather than", "except"},
		func(words string) bool { return strings.Contains(text, words) })
}

// blank returns as many spaces as the text has bytes.
func blank(text string) string { return strings.Repeat(" ", len(text)) }

// mentions returns the names in a text: /name anywhere, $name at the beginning.
// The arguments are those in full, which is as long.
func mentions(text, full string) []mention {
	var list []mention
	leading := 0 // end of the names at the beginning
	for _, found := range mentioned().FindAllStringSubmatchIndex(text, -1) {
		m := mention{name: text[found[4]:found[5]], start: found[2], end: found[5]}
		if m.end < len(text) && strings.IndexByte("/._@\\", text[m.end]) >= 0 && !endsSentence(text[m.end:]) {
			continue // a path
		}
		if strings.TrimSpace(text[leading:m.start]) == "" {
			leading = m.end
			m.args = strings.TrimSpace(full[m.end:])
		}
		if text[m.start] == '$' && (leading != m.end || assigned().MatchString(text[m.end:])) {
			continue // a variable
		}
		list = append(list, m)
	}
	return list
}

func endsSentence(rest string) bool {
	return rest[0] == '.' && (len(rest) == 1 || rest[1] == ' ' || rest[1] == '\n')
}

// has reports whether the input contains a sequence of words.
func (in *input) has(phrase []string) bool {
	for _, i := range in.at[phrase[0]] {
		j := 1
		for j < len(phrase) && i+j < len(in.words) && in.words[i+j].text == phrase[j] {
			j++
		}
		if j == len(phrase) {
			return true
		}
	}
	return false
}

var whichSkills = lazy.Regexp(`(?i)\b(what|which|list|show|name)\b[^.?!\n]{0,40}\bskills\b|\bwhat (can|could) you do\b|\bwhat are you able to do\b|\bskills do you have\b`)

// asks reports whether the input asks what skills exist.
func (in *input) asks() bool {
	return (strings.Contains(in.lower, "skills") || strings.Contains(in.lower, "what")) && whichSkills().MatchString(in.text)
}

//go:embed calibration.txt
var calibrationText string

// ordinary is a sample of inputs that are unrelated to any skill.
type ordinary struct {
	inputs []*input
	with   map[string]int // number of inputs that contain a term
}

var calibration = sync.OnceValue(func() *ordinary {
	o := &ordinary{with: map[string]int{}}
	for line := range strings.Lines(calibrationText) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			o.inputs = append(o.inputs, newInput(line))
			for term := range setOf(rank.Tokens(line)) {
				o.with[term]++
			}
		}
	}
	return o
})

// weight says how much a term tells about an input: the rarer it is in ordinary
// ones, the more. It does not depend on which skills there are.
func (o *ordinary) weight(term string) float64 {
	with := float64(o.with[term]) + 0.5
	return math.Log(1 + (float64(len(o.inputs))+1-with)/with)
}

// weight returns the weight of the input's terms, except those of paths and URLs,
// which say little of the subject.
func (in *input) weight() float64 {
	sum := 0.0
	for term := range setOf(rank.Tokens(inPath().ReplaceAllString(in.text, " "))) {
		sum += calibration().weight(term)
	}
	return sum
}
