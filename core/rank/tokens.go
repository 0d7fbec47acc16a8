package rank

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is the longest word in bytes: longer ones are hashes and encoded data,
// which are not searched for.
const maxWord = 64

// Tokens returns the terms of a text in order, with repetitions. Terms are in
// lower case and stemmed. Identifiers are split: createPullRequest and
// create_pull_request give creat, pull and request; without separators, as in
// createPullRequest, GitHub or oauth2, the whole identifier is a term as well.
// Scripts without spaces give pairs of characters. Words like "the" and "how"
// give nothing.
func Tokens(text string) []string {
	var terms []string
	for word := range strings.FieldsFuncSeq(text, divides) {
		if len(word) <= maxWord {
			terms = appendWord(terms, word)
		}
	}
	return terms
}

// divides reports whether a character separates words.
func divides(r rune) bool {
	if r < utf8.RuneSelf { // most are
		return !isLower(byte(r|0x20)) && (r < '0' || r > '9')
	}
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) || r == utf8.RuneError
}

// appendWord appends the terms of a run of letters and digits.
func appendWord(terms []string, word string) []string {
	parts := 0
	start := 0
	for end := range word {
		if end > 0 && partEnds(word, end) {
			terms = appendPart(terms, word[start:end])
			start = end
			parts++
		}
	}
	if parts == 0 {
		return appendTerm(terms, word)
	}
	return appendTerm(appendPart(terms, word[start:]), word)
}

// partEnds reports whether a part of an identifier ends before the character at
// i: a capital after a lower-case letter, the last of several capitals before a
// lower-case letter, a digit next to a letter, a change of script.
func partEnds(word string, i int) bool {
	if isLower(word[i-1]) && isLower(word[i]) {
		return false // the common case
	}
	before, _ := utf8.DecodeLastRuneInString(word[:i])
	here, size := utf8.DecodeRuneInString(word[i:])
	after, _ := utf8.DecodeRuneInString(word[i+size:])
	switch {
	case unicode.IsMark(here):
		return false
	case unicode.IsDigit(before) != unicode.IsDigit(here), ideographic(before) != ideographic(here):
		return true
	case unicode.IsUpper(here):
		return !unicode.IsUpper(before) || unicode.IsLower(after) && !plural(word[i+size:])
	}
	return false
}

// isLower reports whether a byte is a lower-case ASCII letter.
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// plural reports whether what follows capitals is only a plural s: URLs.
func plural(rest string) bool {
	return rest == "s" || strings.HasPrefix(rest, "s") && len(rest) > 1 && unicode.IsUpper(rune(rest[1]))
}

// appendPart appends a part of an identifier, unless it is a single letter or
// digit, which means nothing without the rest.
func appendPart(terms []string, part string) []string {
	if len(part) == 1 {
		return terms
	}
	return appendTerm(terms, part)
}

func appendTerm(terms []string, word string) []string {
	first, size := utf8.DecodeRuneInString(word)
	if ideographic(first) && len(word) > size {
		return appendPairs(terms, word)
	}
	word = strings.ToLower(word)
	if stopWords[word] {
		return terms
	}
	return append(terms, stem(word))
}

// appendPairs appends each pair of adjacent characters.
func appendPairs(terms []string, word string) []string {
	last := -1
	for i, r := range word {
		if last >= 0 {
			terms = append(terms, word[last:i+utf8.RuneLen(r)])
		}
		last = i
	}
	return terms
}

// ideographic reports whether a character belongs to a script without spaces
// between words.
func ideographic(r rune) bool {
	return r >= 0x2e80 && (r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana))
}

// stopWords say nothing about a text, though in a small index they are rare
// enough to look significant.
var stopWords = setOf(`a an and any are as at be but by can could did do does
	for from had has have how i if in into is it its just me my of on or our
	please should so some than that the their them then there these they this
	those to us want was we were what when where which while who why will with
	would you your`)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// stem removes the most common endings of English words, so that create,
// creates, created, creating and creation are one term. Other words than ASCII
// are unchanged. A stem need not be a word.
func stem(word string) string {
	if len(word) < 4 || strings.ContainsFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return word
	}
	word = singular(word)
	for _, ending := range [...]string{"ing", "ed", "ion"} {
		base, ok := strings.CutSuffix(word, ending)
		if !ok || len(base) < 3 || !strings.ContainsAny(base, "aeiouy") {
			continue
		}
		last := base[len(base)-1]
		if ending == "ion" && last != 't' && last != 's' {
			break // million, region
		}
		if ending != "ion" && last == base[len(base)-2] && !strings.ContainsRune("aeilos", rune(last)) {
			base = base[:len(base)-1] // running; but calling, passing, seeing
		}
		word = base
		break
	}
	if base, ok := strings.CutSuffix(word, "er"); ok && len(base) > 4 {
		word = base // reviewer
	}
	if base, ok := strings.CutSuffix(word, "e"); ok && len(base) > 2 {
		word = base
	}
	if base, ok := strings.CutSuffix(word, "y"); ok && len(base) > 2 && !strings.ContainsRune("aeiou", rune(base[len(base)-1])) {
		word = base + "i" // queries, queried and query
	}
	return word
}

// singular removes a plural's ending.
func singular(word string) string {
	switch {
	case strings.HasSuffix(word, "ies") && len(word) > 4:
		return word[:len(word)-3] + "y"
	case hasAnySuffix(word, "sses", "xes", "ches", "shes", "zzes"):
		return word[:len(word)-2]
	case strings.HasSuffix(word, "s") && !hasAnySuffix(word, "ss", "us", "is"):
		return word[:len(word)-1]
	}
	return word
}

func hasAnySuffix(word string, endings ...string) bool {
	for _, ending := range endings {
		if strings.HasSuffix(word, ending) {
			return true
		}
	}
	return false
}
