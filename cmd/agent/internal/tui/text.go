package tui

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// sequences are whole escape sequences: colours and the like (CSI), and titles,
// links and the like (OSC, DCS …) up to their end. One without an end is not
// taken for one, so that it cannot swallow the text behind it.
var sequences = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ\\` + "`" + `a-~]`)

// printable is text of a model or a tool without anything that could drive the
// terminal: escape sequences, control characters, and those that reorder text.
// Lines that were written over (a progress bar) show what was written last.
func printable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	if strings.IndexFunc(text, harmful) < 0 {
		return text
	}
	text = sequences.ReplaceAllString(text, "")
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

// visible is text that the person decides upon: what cannot be seen is shown
// as its code, so that nothing hides in it.
func visible(text string) string {
	var b strings.Builder
	for _, c := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case c == '\n' || c == '\t':
			b.WriteRune(c)
		case harmful(c) || unicode.Is(unicode.Cf, c):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// oneLine makes text one line of at most width columns.
func oneLine(text string, width int) string {
	if len(text) > 8*width+64 { // no more than that can show
		text = strings.ToValidUTF8(text[:8*width+64], "")
	}
	return clip(strings.Join(strings.Fields(printable(text)), " "), width)
}

// clip cuts a line to width columns. It knows escape sequences.
func clip(line string, width int) string {
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(line, width, "…")
}

// untab puts spaces where tabs are: the width of a tab is known to the
// terminal alone.
func untab(line string) string { return strings.ReplaceAll(line, "\t", "    ") }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

// thousands is n with a comma between groups of three digits.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// compact is a number of tokens for a status line.
func compact(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// took is a duration as a person would say it.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	d = d.Round(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
}

// nearest returns the candidate that a name was probably meant to be, or "".
func nearest(name string, candidates []string) string {
	best, at := "", len(name)/2+1
	for _, c := range candidates {
		if d := distance(name, c); d < at {
			best, at = c, d
		}
	}
	return best
}

// distance counts the letters to change, add, drop or swap to get from a to b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var before []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		next := make([]int, len(y)+1)
		next[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(y)]
}
