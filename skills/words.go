package skills

import (
	"strings"
	"unicode"
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

// named reports whether a word looks like an identifier.
func named(s string) bool { return humps(s) > 0 }

// humps counts the upper-case letters that follow a lower-case one.
func humps(s string) int {
	n, before := 0, ' '
	for _, r := range s {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			n++
		}
		before = r
	}
	return n
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
var fillers = setOf("a an the of to in on for and or with by at from as is are be this that these those it its my our your i we you me us do does did can could should would will please how what when where which who why not no so if then than there here any some all into about over using use used make made get set new want need help let")

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
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
