package jsonpos

import "strings"

// Nearest returns the candidate that a misspelt word most likely means, or "" if
// none is close. Of several equally close ones it returns the first.
func Nearest(word string, candidates []string) string {
	const longest = 64
	if len(word) > longest {
		return ""
	}
	best, limit := "", max(len(word)/3, 1)+1
	for _, c := range candidates {
		if strings.EqualFold(c, word) {
			return c
		}
		if d := distance([]rune(strings.ToLower(word)), []rune(strings.ToLower(c))); d < limit && d < len(c) {
			best, limit = c, d
		}
	}
	return best
}

// distance returns the number of insertions, deletions, substitutions and swaps
// of adjacent characters that turn a into b.
func distance(a, b []rune) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
