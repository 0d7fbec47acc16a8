package display

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/core/invisible"
	"github.com/seed-009c0928/agent/core/lazy"
)

// sequences are complete escape sequences: CSI (colours and others), and OSC,
// DCS and others (titles, links). An unterminated one is not removed, so that it
// cannot hide the text after it.
var sequences = lazy.Regexp(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ\\` + "`" + `a-~]`)

// Printable removes everything from the text of a model or a tool that could
// control the terminal: escape sequences, control characters, and characters
// that reorder text. Of overwritten lines (a progress bar) it keeps the last
// version.
func Printable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	if strings.IndexFunc(text, harmful) < 0 {
		return text
	}
	text = sequences().ReplaceAllString(text, "")
	if strings.Contains(text, "\r") {
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			l = strings.TrimRight(l, "\r")
			lines[i] = l[strings.LastIndexByte(l, '\r')+1:]
		}
		text = strings.Join(lines, "\n")
	}
	return strings.Map(func(c rune) rune {
		if harmful(c) {
			return -1
		}
		return c
	}, text)
}

func harmful(c rune) bool {
	return c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == '\u2029')
}

// Visible escapes all invisible characters of text that the user decides on, so
// that nothing can be hidden in it.
func Visible(text string) string {
	var b strings.Builder
	for _, c := range strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n") {
		switch {
		case c == '\n' || c == '\t':
			b.WriteRune(c)
		case invisible.Is(c) || unicode.Is(unicode.Cf, c):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// OneLine converts text to one [Printable] line of at most width columns. Unlike
// Printable, it keeps overwritten text.
func OneLine(text string, width int) string {
	if len(text) > 8*width+64 { // more than can be visible
		text = strings.ToValidUTF8(text[:8*width+64], "")
	}
	text = strings.ReplaceAll(text, "\r", "\n")
	return Clip(strings.Join(strings.Fields(Printable(text)), " "), width)
}

// VisibleLine converts text that the user decides on to one line of at most
// width columns; see [Visible].
func VisibleLine(text string, width int) string { return OneLine(Visible(text), width) }

// Clip truncates a line to width columns. It handles escape sequences.
func Clip(line string, width int) string {
	if width <= 0 {
		return ""
	}
	if len(line) <= width { // no byte takes more than a column
		return line
	}
	return ansi.Truncate(line, width, "…")
}

// PathTail makes a path one line of at most width columns. It cuts the
// beginning: the end tells directories apart.
func PathTail(path string, width int) string {
	line := OneLine(path, 4096)
	if len(line) <= width {
		return line
	}
	if over := ansi.StringWidth(line) - width; over > 0 {
		return ansi.TruncateLeft(line, over+1, "…")
	}
	return line
}
