package tui

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// screen draws the region at the bottom of a terminal, and prints permanent
// lines above it. It moves the cursor only by relative steps, so it needs to
// know neither its position on the screen nor what is above. It is not safe for
// concurrent use.
type screen struct {
	out           io.Writer
	width, height int
	hidden        bool     // the cursor is not shown
	rows          []string // the drawn region
	x, y          int      // the cursor in the region; x is width behind the last column
	style         style    // of what is written next
	buf           bytes.Buffer
	err           error // of out; then nothing more is written
}

// Sequences of screen, which every terminal with cursor movement supports.
const (
	hideCursor   = "\x1b[?25l"
	showCursor   = "\x1b[?25h"
	eraseLine    = "\x1b[K"
	eraseBelow   = "\x1b[J"
	pasteOn      = "\x1b[?2004h"
	pasteOff     = "\x1b[?2004l"
	pushTitle    = "\x1b[22;0t"
	popTitle     = "\x1b[23;0t"
	resetStyle   = "\x1b[0m"
	leaveRestore = pasteOff + showCursor + resetStyle
)

// draw prints lines above the region and draws rows in it, with the cursor at
// column x of row y. The rows must fit on the screen. Lines that the region has
// shown in their place become permanent without being written again.
func (s *screen) draw(above, rows []string, x, y int) {
	if len(rows) == 0 {
		rows = []string{""}
	}
	if over := len(rows) - s.height; s.height > 0 && over > 0 {
		rows, y = rows[over:], y-over
	}
	y = min(max(y, 0), len(rows)-1)
	if slices.ContainsFunc(above, func(l string) bool { return ansi.StringWidth(l) > s.width }) {
		s.clear() // such a line takes several rows
	}
	all := append(above[:len(above):len(above)], rows...)
	hide := !s.hidden && s.changesElsewhere(all)
	if hide {
		s.buf.WriteString(hideCursor)
	}
	s.shift(all)
	s.update(all)
	s.rows = append(s.rows[:0], rows...)
	s.y -= len(above)
	s.move(min(x, max(0, s.width-1)), y)
	if hide {
		s.buf.WriteString(showCursor)
	}
	s.flush()
}

// changesElsewhere reports whether rows differ from those on the screen, other than
// the cursor's row.
func (s *screen) changesElsewhere(rows []string) bool {
	for i, r := range rows {
		if i >= len(s.rows) || i != s.y && r != s.rows[i] {
			return true
		}
	}
	return len(s.rows) > len(rows)
}

// minShift is how many rows have to move up for the terminal to move them.
const minShift = 3

// shift moves rows up, those of a text that is higher than its place and got a line:
// the first row that changed and those below it are elsewhere on the screen.
func (s *screen) shift(rows []string) {
	first, most := 0, min(len(rows), len(s.rows))
	for first < most && rows[first] == s.rows[first] {
		first++
	}
	for by := 1; first+by+minShift <= len(s.rows); by++ {
		n := 0
		for first+n < len(rows) && first+by+n < len(s.rows) && rows[first+n] == s.rows[first+by+n] {
			n++
		}
		if n < minShift {
			continue
		}
		s.move(0, first)
		s.setStyle(plain)
		s.step('M', by)
		s.move(0, first+n)
		s.step('L', by)
		moved := slices.Delete(s.rows, first, first+by)
		s.rows = slices.Insert(moved, first+n, make([]string, by)...)
		return
	}
}

// update draws the rows that changed.
func (s *screen) update(rows []string) {
	for i, r := range rows {
		switch {
		case i < len(s.rows) && r != s.rows[i]:
			s.change(i, cellsOf(s.rows[i]), cellsOf(r))
		case i == 0 && len(s.rows) == 0:
			s.move(0, 0)
			s.add(r)
		case i >= len(s.rows):
			s.move(s.x, i-1)
			s.add("\r\n" + r)
			s.y = i
		}
	}
	if len(s.rows) > len(rows) {
		s.move(s.x, len(rows)-1)
		s.add("\r\n" + eraseBelow)
		s.x, s.y = 0, len(rows)
	}
}

// add writes a new row, after which the cursor is not used before it is moved.
func (s *screen) add(row string) {
	s.setStyle(plain)
	s.buf.WriteString(row)
	s.x = s.width
}

// change draws the columns of a row that changed. Terminals differ in the width of
// some characters; the row is drawn to its end from the first one of these.
func (s *screen) change(y int, before, now []cell) {
	sure := min(sureUntil(before), sureUntil(now))
	rest := len(now)
	if sure < max(len(before), len(now)) && !slices.Equal(before[min(sure, len(before)):], now[min(sure, len(now)):]) {
		rest = min(sure, len(now))
	}
	for x, c := range now {
		if c.width == 0 || x < rest && (x < len(before) && before[x] == c || x >= len(before) && c == blank) {
			continue
		}
		s.skip(x, y, now)
		s.setStyle(c.style)
		s.buf.WriteString(c.text)
		s.x += c.width
	}
	if len(now) < s.width && (len(before) > len(now) || rest < len(now)) {
		s.move(len(now), y)
		s.setStyle(plain)
		s.buf.WriteString(eraseLine)
	}
}

// skip moves the cursor to column x of row y, over unchanged cells; it writes a few
// of them if that is as short.
func (s *screen) skip(x, y int, now []cell) {
	const most = 3
	if y == s.y && s.x < x && x-s.x <= most {
		between := now[s.x:x]
		if !slices.ContainsFunc(between, func(c cell) bool { return c.style != s.style || len(c.text) != 1 }) {
			for _, c := range between {
				s.buf.WriteString(c.text)
			}
			s.x = x
			return
		}
	}
	s.move(x, y)
}

// move moves the cursor within the region. Behind the last column, where it is after
// a character there, it does not know its column.
func (s *screen) move(x, y int) {
	s.step('A', s.y-y)
	s.step('B', y-s.y)
	switch back := s.x - x; {
	case back > 0 && (back > 3 || x == 0 || s.x >= s.width):
		s.buf.WriteByte('\r')
		s.step('C', x)
	case back > 0:
		s.buf.WriteString("\b\b\b"[:back])
	default:
		s.step('C', -back)
	}
	s.x, s.y = x, y
}

// step moves the cursor by n, if n is positive.
func (s *screen) step(direction byte, n int) {
	switch {
	case n == 1:
		s.buf.WriteString("\x1b[")
	case n > 1:
		s.buf.WriteString("\x1b[" + strconv.Itoa(n))
	default:
		return
	}
	s.buf.WriteByte(direction)
}

// setStyle sets the style of what is written next.
func (s *screen) setStyle(st style) {
	switch {
	case st == s.style:
		return
	case st == plain:
		s.buf.WriteString("\x1b[m")
	case s.style == plain:
		s.buf.WriteString("\x1b[" + string(st) + "m")
	default:
		s.buf.WriteString("\x1b[0;" + string(st) + "m")
	}
	s.style = st
}

// blank is an empty column.
var blank = cell{" ", 1, plain}

// cellsOf returns the columns of a row; the second one of a wide character is empty.
// Blank ones at the end are left out.
func cellsOf(row string) []cell {
	cells := make([]cell, 0, len(row))
	st := plain
	for row != "" {
		if params, rest, ok := sgr(row); ok {
			row = rest
			if st = st.and(params); params == "" || params == "0" {
				st = plain
			}
			continue
		}
		text, columns := cluster(row)
		row = row[len(text):]
		if columns == 0 && len(cells) > 0 {
			cells[len(cells)-1].text += text
			continue
		}
		cells = append(cells, cell{text, columns, st})
		for range columns - 1 {
			cells = append(cells, cell{style: st})
		}
	}
	for len(cells) > 0 && cells[len(cells)-1] == blank {
		cells = cells[:len(cells)-1]
	}
	return cells
}

// sgr cuts an SGR sequence off the beginning of a text.
func sgr(text string) (params style, rest string, ok bool) {
	after, ok := strings.CutPrefix(text, "\x1b[")
	if !ok {
		return "", text, false
	}
	end := strings.IndexFunc(after, func(r rune) bool { return r != ';' && (r < '0' || r > '9') })
	if end < 0 || after[end] != 'm' {
		return "", text, false
	}
	return style(after[:end]), after[end+1:], true
}

// sureUntil returns how many columns have a width that all terminals agree on: those
// before the first emoji, symbol or combined character.
func sureUntil(cells []cell) int {
	for i, c := range cells {
		r, size := utf8.DecodeRuneInString(c.text)
		if size < len(c.text) || r >= 0x1f000 || r >= 0x2300 && r < 0x2400 || r >= 0x2600 && r < 0x2800 || r >= 0xe000 && r < 0xf900 {
			return i
		}
	}
	return math.MaxInt
}

// resize sets the terminal's new size. A narrower terminal has rewrapped the
// region's rows, and all of these lines are erased. Even if the size is the same
// as before, the terminal may have been narrower in between and have truncated
// the rows.
func (s *screen) resize(width, height int) {
	if width > 0 && width < s.width {
		up := s.x / width
		for _, r := range s.rows[:min(s.y, len(s.rows))] {
			up += max(1, (ansi.StringWidth(r)+width-1)/width)
		}
		s.y = up
	}
	s.width, s.height = width, height
	s.erase()
}

// erase removes the region; the next draw begins at its place.
func (s *screen) erase() {
	s.clear()
	s.flush()
}

// clear removes the region in the next write.
func (s *screen) clear() {
	s.buf.WriteByte('\r')
	s.step('A', s.y)
	s.buf.WriteString(eraseBelow)
	s.rows, s.x, s.y = nil, 0, 0
}

// write writes a sequence that does not move the cursor.
func (s *screen) write(sequence string) {
	s.buf.WriteString(sequence)
	s.flush()
}

func (s *screen) flush() {
	s.setStyle(plain)
	if s.err == nil && s.buf.Len() > 0 {
		_, s.err = s.out.Write(s.buf.Bytes())
	}
	s.buf.Reset()
}
