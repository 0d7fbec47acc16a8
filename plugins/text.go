package plugins

import (
	"strings"

	"github.com/seed-009c0928/agent/core/invisible"
)

// cleanLine returns text as one line without control and format characters,
// such as bidirectional marks, which could hide or reorder it.
func cleanLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case invisible.Is(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
}

// cleanText is cleanLine for multi-line text.
func cleanText(text string) string {
	return invisible.Strip(strings.ToValidUTF8(text, "\uFFFD"))
}

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
