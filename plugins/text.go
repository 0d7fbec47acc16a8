package plugins

import (
	"strings"
	"unicode"
)

// cleanLine returns text as one line without control and format characters,
// such as bidirectional marks, which could hide or reorder it.
func cleanLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case hidden(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
}

// cleanText is cleanLine for multi-line text.
func cleanText(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

func hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// shorten truncates text to n runes.
func shorten(text string, n int) string {
	i := 0
	for at := range text {
		if i == n {
			return text[:at] + "…"
		}
		i++
	}
	return text
}
