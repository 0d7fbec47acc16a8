package tui

import (
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// style is the parameters of an SGR sequence.
type style string

const (
	plain     style = ""
	bold      style = "1"
	dim       style = "2"
	italic    style = "3"
	underline style = "4"
	reverse   style = "7"
	struck    style = "9"
	red       style = "31"
	green     style = "32"
	yellow    style = "33"
	magenta   style = "35"
	cyan      style = "36"
)

// and combines two styles.
func (s style) and(t style) style {
	if s == "" || t == "" {
		return s + t
	}
	return s + ";" + t
}

// painter applies styles, unless colors is false (NO_COLOR).
type painter struct {
	colors bool
	look   *look          // nil: the terminal's own colours, and no highlighting
	budget *time.Duration // that is left for highlighting; nil is no limit
}

func (p painter) paint(s style, text string) string {
	if !p.colors || s == "" || text == "" {
		return text
	}
	theme := ansiTheme
	if p.look != nil {
		theme = p.look.theme
	}
	sgr := theme.sgr(s)
	if sgr == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// span is text in one style. It may contain newlines.
type span struct {
	text  string
	style style
}

// cell is a character of one or two columns.
type cell struct {
	text  string
	width int
	style style
}

// wrap breaks spans into lines of at most width columns, between words if
// possible. Each line has its own escape sequences. With width 0, it breaks only
// at newlines.
func (p painter) wrap(spans []span, width int) []string {
	w := wrapper{painter: p, width: width, space: -1}
	for _, s := range spans {
		rest := untab(s.text)
		for rest != "" {
			text, columns := cluster(rest)
			rest = rest[len(text):]
			w.add(cell{text, columns, s.style})
		}
	}
	if len(w.line) > 0 || len(w.lines) == 0 {
		w.end(len(w.line))
	}
	return w.lines
}

// cluster returns the first grapheme cluster of text and its width.
func cluster(text string) (string, int) {
	if text[0] < 0x80 && (len(text) == 1 || text[1] < 0x80) {
		return text[:1], 1
	}
	return ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
}

// wrapper collects cells into lines.
type wrapper struct {
	painter
	width int
	lines []string
	line  []cell
	used  int  // columns of line
	space int  // index of the last space in line, or -1
	soft  bool // line follows a break that is not in the text
}

func (w *wrapper) add(c cell) {
	if c.text == "\n" {
		w.end(len(w.line))
		w.soft = false
		return
	}
	if w.width > 0 && w.used+c.width > w.width && len(w.line) > 0 {
		at := len(w.line)
		if c.text != " " && w.space > 0 {
			at = w.space
		}
		w.end(at)
		w.soft = true
	}
	if c.text == " " {
		if w.soft && len(w.line) == 0 {
			return
		}
		w.space = len(w.line)
	}
	w.line = append(w.line, c)
	w.used += c.width
}

// end ends the line before the cell at; the rest begins the next line, without
// a leading space.
func (w *wrapper) end(at int) {
	rest := w.line[at:]
	w.lines = append(w.lines, w.join(w.line[:at]))
	if len(rest) > 0 && rest[0].text == " " {
		rest = rest[1:]
	}
	w.line, w.used, w.space = append([]cell(nil), rest...), 0, -1
	for _, c := range w.line {
		w.used += c.width
	}
}

// join joins cells to a line, without spaces at its end.
func (p painter) join(cells []cell) string {
	for len(cells) > 0 && cells[len(cells)-1].text == " " {
		cells = cells[:len(cells)-1]
	}
	return p.runs(cells)
}

// runs joins cells, with one escape sequence per run of a style.
func (p painter) runs(cells []cell) string {
	var b, run strings.Builder
	for i, c := range cells {
		run.WriteString(c.text)
		if i+1 == len(cells) || cells[i+1].style != c.style {
			b.WriteString(p.paint(c.style, run.String()))
			run.Reset()
		}
	}
	return b.String()
}

// fold wraps text in one style, with a prefix for the first line and one for the
// others.
func (p painter) fold(s style, text string, width int, first, rest string) []string {
	inner := width
	if width > 0 {
		inner = max(1, width-max(ansi.StringWidth(first), ansi.StringWidth(rest)))
	}
	return indent(p.wrap([]span{{text, s}}, inner), first, rest)
}

// indent adds prefixes to lines.
func indent(lines []string, first, rest string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		prefix := rest
		if i == 0 {
			prefix = first
		}
		out[i] = strings.TrimRight(prefix+l, " ")
	}
	return out
}
