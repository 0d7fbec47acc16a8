package skills

import (
	"strings"
	"unicode"

	"github.com/seed-009c0928/agent/core/lazy"
)

// word is a normalized word, as triggers are compared with it.
type word struct {
	text string // lower case, singular
	name bool   // an identifier, such as BlobClient
}

// maxWords bounds the words of one text.
const maxWords = maxInput / 2

// words splits a text into runs of letters and digits. An identifier is one
// word: "BlobClient" is not "blob client".
func words(text string) []word {
	var out []word
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '+' && r != '#' && r != '\'' && r != '’'
	}) {
		part = strings.TrimSuffix(strings.TrimSuffix(strings.Trim(part, "'’"), "'s"), "’s")
		if strings.Trim(part, "+#'’") == "" {
			continue
		}
		out = append(out, word{singular(strings.ToLower(part)), named(part)})
		if len(out) == maxWords {
			break
		}
	}
	return out
}

// named reports whether a word looks like an identifier: a capital follows a
// small letter.
func named(s string) bool {
	before := ' '
	for _, r := range s {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			return true
		}
		before = r
	}
	return false
}

// singular strips the ending of a regular plural.
func singular(s string) string {
	switch {
	case len(s) > 4 && strings.HasSuffix(s, "ies"):
		return s[:len(s)-3] + "y"
	case len(s) > 4 && (strings.HasSuffix(s, "sses") || strings.HasSuffix(s, "xes") || strings.HasSuffix(s, "ches") || strings.HasSuffix(s, "shes")):
		return s[:len(s)-2]
	case len(s) > 3 && strings.HasSuffix(s, "s") && !strings.HasSuffix(s, "ss") && !strings.HasSuffix(s, "us") && !strings.HasSuffix(s, "is"):
		return s[:len(s)-1]
	}
	return s
}

// fillers are words that say nothing about a text's subject.
var fillers = setOf(strings.Fields("a an the of to in on for and or with by at from as is are be this that these those it its my our your i we you me us do does did can could should would will please how what when where which who why not no so if then than there here any some all into about over using use used make made get set new want need help let"))

func setOf(list []string) map[string]bool {
	set := map[string]bool{}
	for _, w := range list {
		set[w] = true
	}
	return set
}

// content counts the words that are not fillers.
func content(list []word) int {
	n := 0
	for _, w := range list {
		if !fillers[w.text] {
			n++
		}
	}
	return n
}

// texts returns the words' texts.
func texts(list []word) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = w.text
	}
	return out
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

var negates = lazy.Regexp(`(?i)\b(do not use|don't use|do not activate|not for|not use|never use|skip (?:this|if|for)|avoid|except)\b`)

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
