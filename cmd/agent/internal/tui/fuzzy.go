package tui

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// match is a text that matches a query.
type match struct {
	at    int // index of the text
	score int
	on    []int // indices of the matched characters
}

// fuzzy returns the texts that match all words of a query, the best first: their
// characters occur in order. A word with a capital letter matches only that case.
func fuzzy(query string, texts []string) []match {
	words := strings.Fields(query)
	var out []match
	for i, text := range texts {
		m := match{at: i}
		runes, ok := []rune(text), true
		for _, word := range words {
			score, on := fuzzyWord([]rune(word), runes)
			if on == nil {
				ok = false
				break
			}
			m.score += score
			m.on = append(m.on, on...)
		}
		if ok {
			m.score -= len(runes) / 8 // shorter ones first
			out = append(out, m)
		}
	}
	if len(words) > 0 {
		slices.SortStableFunc(out, func(a, b match) int { return cmp.Compare(b.score, a.score) })
	}
	return out
}

// fuzzyWord matches one word: it finds the first end of a match, and from there back
// the shortest one, and does so again from each end.
func fuzzyWord(word, text []rune) (best int, on []int) {
	fold := !slices.ContainsFunc(word, unicode.IsUpper)
	same := func(a, b rune) bool { return a == b || fold && unicode.ToLower(b) == a }
	for from := 0; from < len(text); {
		next, i := 0, from
		for ; i < len(text) && next < len(word); i++ {
			if same(word[next], text[i]) {
				next++
			}
		}
		if next < len(word) {
			break
		}
		at := make([]int, len(word))
		for j, k := i-1, len(word)-1; k >= 0; j-- {
			if same(word[k], text[j]) {
				at[k] = j
				k--
			}
		}
		if score := fuzzyScore(at, text); on == nil || score > best {
			best, on = score, at
		}
		from = at[0] + 1
	}
	return best, on
}

// fuzzyScore rates a match: characters in a row and at the beginning of words count
// more, gaps less.
func fuzzyScore(at []int, text []rune) int {
	score := 0
	for i, j := range at {
		score += 16
		switch {
		case i > 0 && at[i-1] == j-1:
			score += 12
		case j == 0:
			score += 10
		case strings.ContainsRune("/\\", text[j-1]):
			score += 9
		case !unicode.IsLetter(text[j-1]) && !unicode.IsDigit(text[j-1]), unicode.IsLower(text[j-1]) && unicode.IsUpper(text[j]):
			score += 8
		}
		if i > 0 {
			score -= min(10, j-at[i-1]-1)
		}
	}
	if base := slices.Index(at, slices.Max(at)); base >= 0 && !slices.Contains(text[at[0]:], '/') {
		score += 8 // in the last element of a path
	}
	return score
}
