package skills

import (
	_ "embed"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxInput bounds the part of an input that is examined, in bytes.
const maxInput = 16 << 10

// input is a user's input, prepared for matching.
type input struct {
	text  string
	lower string // the text in lower case
	words []word
	at    map[string][]int // the positions of a word
	pairs []string         // see [pairs]
	names []mention
}

// mention is a possible skill name in the input.
type mention struct {
	name string
	args string // the text after a /name at the beginning
}

var mentioned = lazily(`(?:^|[\s("'])[/$]((?:(?:project|user|bundled):)?[A-Za-z0-9][A-Za-z0-9-]*)`)

// hyphened matches a name of several parts.
var hyphened = lazily(`[A-Za-z0-9]+(?:-[A-Za-z0-9]+)+`)

// newInput prepares a text; of a long one, its beginning and end.
func newInput(text string) *input {
	if len(text) > maxInput {
		head, tail := text[:maxInput/2], text[len(text)-maxInput/2:]
		for !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
		text = strings.ToValidUTF8(head, "") + "\n" + tail
	}
	in := &input{text: text, lower: strings.ToLower(text), words: words(text), at: map[string][]int{}}
	for i, w := range in.words {
		in.at[w.text] = append(in.at[w.text], i)
	}
	in.pairs = pairs(in.words)
	for _, found := range mentioned().FindAllStringSubmatchIndex(text, -1) {
		m := mention{name: text[found[2]:found[3]]}
		end := found[3]
		if end < len(text) && strings.IndexByte("/._@\\", text[end]) >= 0 && !endsSentence(text[end:]) {
			continue // a path
		}
		if strings.TrimSpace(text[:found[2]-1]) == "" {
			m.args = strings.TrimSpace(text[end:])
		}
		in.names = append(in.names, m)
	}
	for _, at := range hyphened().FindAllStringIndex(text, -1) {
		if alone(text, at[0], at[1]) {
			in.names = append(in.names, mention{name: text[at[0]:at[1]]})
		}
	}
	return in
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

// called reports whether the user named the skill: /name, $name, or the plain
// name if it has several parts.
func (in *input) called(s *Skill) (Match, bool) {
	for _, m := range in.names {
		if s.Called(m.name) {
			return Match{By: ByName, Trigger: m.name, Args: m.args}, true
		}
	}
	return Match{}, false
}

// alone reports whether a name is not part of a longer name, a path or a URL.
func alone(text string, from, to int) bool {
	return (from == 0 || !partOfName(text[from-1])) && (to == len(text) || !partOfName(text[to]) || endsSentence(text[to:]))
}

func partOfName(c byte) bool {
	return strings.IndexByte("-_/.\\@:$", c) >= 0 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

var whichSkills = lazily(`(?i)\b(what|which|list|show|name)\b[^.?!\n]{0,40}\bskills\b|\bwhat (can|could) you do\b|\bwhat are you able to do\b|\bskills do you have\b`)

// asks reports whether the input asks what skills exist.
func (in *input) asks() bool { return whichSkills().MatchString(in.text) }

//go:embed calibration.txt
var calibrationText string

// calibration returns ordinary inputs that are unrelated to any skill.
var calibration = sync.OnceValue(func() []*input {
	var all []*input
	for line := range strings.Lines(calibrationText) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all = append(all, newInput(line))
		}
	}
	return all
})
