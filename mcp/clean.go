package mcp

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/invisible"
)

// hidden reports whether a character has no honest use in a tool's description.
func hidden(r rune) bool { return r == utf8.RuneError || invisible.Is(r) }

// cleanText removes hidden characters from a text, but keeps newlines and tabs.
func cleanText(text string) string {
	if isPlain(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && hidden(r) {
			return -1
		}
		return r
	}, text)
}

// isPlain reports whether a text is printable ASCII, newlines and tabs.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// cleanLine removes hidden characters from a text and joins it to one line.
func cleanLine(text string) string {
	return strings.Join(strings.Fields(cleanText(text)), " ")
}

// cleanLines removes terminal control characters from a program's output.
func cleanLines(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r == utf8.RuneError || unicode.IsControl(r)) {
			return -1
		}
		return r
	}, text)
}

// cleanJSON removes hidden characters, literal or escaped, from the strings of a
// JSON text. Escaped newlines and tabs stay. Text without any is returned
// unchanged.
func cleanJSON(text []byte) []byte {
	var out []byte // nil until something is removed
	quoted := false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		drop := false
		switch {
		case r == '"':
			quoted = !quoted
		case quoted && r == '\\':
			r, size = decodeEscape(text[i:])
			drop = r >= 0 && hidden(r)
		case quoted:
			drop = hidden(r)
		}
		if drop && out == nil {
			out = append(make([]byte, 0, len(text)), text[:i]...)
		} else if !drop && out != nil {
			out = append(out, text[i:i+size]...)
		}
		i += size
	}
	if out == nil {
		return text
	}
	return out
}

// decodeEscape returns the character of a JSON escape, -1 for one that always
// stays, and the length of the escape.
func decodeEscape(text []byte) (rune, int) {
	unit := func(at int) rune {
		if len(text) < at+6 || text[at] != '\\' || text[at+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(text[at+2:at+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	r := unit(0)
	switch {
	case r < 0:
		return -1, min(2, len(text))
	case r == '\n' || r == '\t':
		return -1, 6
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	if both := utf16.DecodeRune(r, unit(6)); both != utf8.RuneError {
		return both, 12
	}
	return -1, 6 // an unpaired surrogate stays
}
