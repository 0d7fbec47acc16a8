package output

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limit limits the text of a result for the model. The zero value means 30,000
// characters, head and tail, any number of lines.
type Limit struct {
	MaxChars int // characters (runes), 0 = 30,000
	MaxLines int // applied after MaxChars; 0 = any
	Mode     Mode
}

// Mode is which end of a long text is kept.
type Mode uint8

// The modes.
const (
	HeadTail Mode = iota
	Tail
	Head
)

const defaultMaxChars = 30_000

// withDefaults sets the defaults.
func (l Limit) withDefaults() Limit {
	if l.MaxChars <= 0 {
		l.MaxChars = defaultMaxChars
	}
	return l
}

// Truncate cuts text to the limit: characters first, then lines, so that a text
// of few very long lines is cut too. It reports whether it cut.
func Truncate(text string, limit Limit) (string, bool) {
	limit = limit.withDefaults()
	cut := false
	if len(text) > limit.MaxChars { // otherwise it has no more characters, either
		if n := utf8.RuneCountInString(text); n > limit.MaxChars {
			text, cut = truncateChars(text, text, n, limit), true
		}
	}
	lined, cutLines := truncateLines(text, limit)
	return lined, cut || cutLines
}

// What the marker says of the full output.
const (
	fullAvailable = "The full output is available in the event stream."
	fullLost      = "The full output was too long to be kept."
)

// truncateChars joins the kept ends of a text of n characters: head has at least
// the kept beginning and tail the kept end.
func truncateChars(head, tail string, n int, limit Limit) string {
	removed := n - limit.MaxChars
	switch limit.Mode {
	case Tail:
		return fmt.Sprintf("[WARNING: Tool output was truncated. First %d characters were removed. "+
			"%s]\n\n", removed, fullAvailable) + lastRunes(tail, limit.MaxChars)
	case Head:
		return firstRunes(head, limit.MaxChars) + fmt.Sprintf("\n\n[WARNING: Tool output was truncated. Last %d characters were removed. "+
			"%s]", removed, fullAvailable)
	}
	half := limit.MaxChars / 2
	return firstRunes(head, half) + fmt.Sprintf("\n\n[WARNING: Tool output was truncated. %d characters were removed from the middle. "+
		fullAvailable+" "+
		"If you need to see specific parts, re-run the tool with more targeted parameters.]\n\n", removed) +
		lastRunes(tail, limit.MaxChars-half)
}

func truncateLines(text string, limit Limit) (string, bool) {
	if limit.MaxLines <= 0 || strings.Count(text, "\n") < limit.MaxLines {
		return text, false
	}
	lines := strings.Split(text, "\n")
	head := limit.MaxLines / 2
	if limit.Mode == Head {
		head = limit.MaxLines
	}
	tail := limit.MaxLines - head
	out := strings.Join(lines[:head], "\n") + fmt.Sprintf("\n[... %d lines omitted ...]\n", len(lines)-head-tail) +
		strings.Join(lines[len(lines)-tail:], "\n")
	return out, true
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func lastRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}
