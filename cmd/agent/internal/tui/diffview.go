package tui

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/lazy"
)

// hunkHead is the head of a hunk, with the numbers of its first lines.
var hunkHead = lazy.Regexp(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@`)

// diffRow is a line of a diff.
type diffRow struct {
	sign   byte // '+', '-', ' ', or 0 for a head
	number int
	text   string
	from   int // the bytes from here to to differ from the line that it replaces
	to     int
	file   string
	spans  []span // the text, highlighted; nil if it is not
}

// diffRows parses a unified diff. The names of the files are heads if there are
// several.
func diffRows(diff string) []diffRow {
	var rows []diffRow
	var before, after int
	files := strings.Count("\n"+diff, "\n+++ ")
	inHunk, hunks, file := false, 0, ""
	for line := range strings.SplitSeq(strings.TrimRight(display.Printable(diff), "\n"), "\n") {
		if m := hunkHead().FindStringSubmatch(line); m != nil {
			_, _ = fmt.Sscan(m[1], &before)
			_, _ = fmt.Sscan(m[2], &after)
			if inHunk = true; hunks > 0 {
				rows = append(rows, diffRow{text: "⋯"})
			}
			hunks++
			continue
		}
		switch {
		case strings.HasPrefix(line, "diff "):
			inHunk = false
		case !inHunk && strings.HasPrefix(line, "--- "):
			file = strings.TrimPrefix(line[4:], "a/")
		case !inHunk && strings.HasPrefix(line, "+++ "):
			if hunks = 0; line != "+++ /dev/null" {
				file = strings.TrimPrefix(line[4:], "b/")
			}
			if files > 1 {
				rows = append(rows, diffRow{text: file})
			}
		case !inHunk || line == "":
		case line[0] == '+':
			rows = append(rows, diffRow{sign: '+', number: after, text: line[1:], file: file})
			after++
		case line[0] == '-':
			rows = append(rows, diffRow{sign: '-', number: before, text: line[1:], file: file})
			before++
		case line[0] == ' ':
			rows = append(rows, diffRow{sign: ' ', number: after, text: line[1:], file: file})
			before++
			after++
		}
	}
	markWords(rows)
	return rows
}

// markWords marks what differs between removed lines and the same number of lines
// that replace them.
func markWords(rows []diffRow) {
	for i := 0; i < len(rows); {
		run := func(from int, sign byte) int {
			n := 0
			for from+n < len(rows) && rows[from+n].sign == sign {
				n++
			}
			return n
		}
		removed := run(i, '-')
		added := run(i+removed, '+')
		if removed > 0 && removed == added {
			for j := range removed {
				markChange(&rows[i+j], &rows[i+removed+j])
			}
		}
		i += max(1, removed+added)
	}
}

// markChange marks what differs between two lines, if they have much in common.
func markChange(a, b *diffRow) {
	prefix := 0
	for prefix < len(a.text) && prefix < len(b.text) && a.text[prefix] == b.text[prefix] {
		prefix++
	}
	for prefix > 0 && (!utf8.RuneStart(at(a.text, prefix)) || !utf8.RuneStart(at(b.text, prefix))) {
		prefix--
	}
	suffix := 0
	for suffix < len(a.text)-prefix && suffix < len(b.text)-prefix && a.text[len(a.text)-1-suffix] == b.text[len(b.text)-1-suffix] {
		suffix++
	}
	for suffix > 0 && !utf8.RuneStart(a.text[len(a.text)-suffix]) {
		suffix--
	}
	if 3*(prefix+suffix) < max(len(a.text), len(b.text)) {
		return
	}
	a.from, a.to = prefix, len(a.text)-suffix
	b.from, b.to = prefix, len(b.text)-suffix
}

// at returns a byte of text, or 0 after its end.
func at(text string, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return 0
}

// diff formats a unified diff with numbered lines, at most the given number.
func (s *scene) diff(diff string, most int) []string {
	rows := diffRows(diff)
	digits := 2
	for _, r := range rows {
		digits = max(digits, len(fmt.Sprint(r.number)))
	}
	hidden := len(rows) - most
	if s.full || hidden < 0 {
		hidden = 0
	}
	rows = rows[:len(rows)-hidden]
	s.highlightDiff(rows)
	var out []string
	for _, r := range rows {
		if r.sign == 0 {
			out = append(out, "  "+s.paint(cyan, display.Clip(r.text, s.detailWidth())))
			continue
		}
		out = append(out, s.diffLine(r, digits)...)
	}
	if hidden > 0 {
		out = append(out, "  "+s.paint(dim, "… "+display.Plural(hidden, "more line")+" of the diff"))
	}
	return out
}

// diffLine formats a line of a diff. In full, what does not fit continues below.
func (s *scene) diffLine(r diffRow, digits int) []string {
	number, cells := fmt.Sprintf("%*d ", digits, r.number), r.cells(s.tints())
	if !s.full || s.width <= 0 {
		return []string{"  " + display.Clip(s.paint(dim, number)+s.runs(cells), s.detailWidth())}
	}
	room := max(2, s.detailWidth()-len(number))
	var lines []string
	for len(cells) > 0 {
		n, used := 0, 0
		for n < len(cells) && (n == 0 || used+cells[n].width <= room) {
			used += cells[n].width
			n++
		}
		lines, cells = append(lines, s.runs(cells[:n])), cells[n:]
		if len(lines) == 1 {
			room = max(2, room-1) // below the text, not the sign
		}
	}
	return indent(lines, "  "+s.paint(dim, number), strings.Repeat(" ", len(number)+3))
}
