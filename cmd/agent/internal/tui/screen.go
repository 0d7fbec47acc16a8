package tui

import (
	"bytes"
	"io"
	"strconv"

	"github.com/charmbracelet/x/ansi"
)

// screen draws the region at the bottom of a terminal, and prints permanent
// lines above it. It moves the cursor only by relative steps, so it needs to
// know neither its position on the screen nor what is above. It is not safe for
// concurrent use.
type screen struct {
	out           io.Writer
	width, height int
	rows          []string // the drawn region
	x, y          int      // the cursor in the region
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
// column x of row y. The rows must fit on the screen.
func (s *screen) draw(above, rows []string, x, y int) {
	if len(rows) == 0 {
		rows = []string{""}
	}
	if over := len(rows) - s.height; s.height > 0 && over > 0 {
		rows, y = rows[over:], y-over
	}
	y = min(max(y, 0), len(rows)-1)
	if len(above) == 0 && s.same(rows) {
		if x != s.x || y != s.y {
			s.move(x, y)
			s.flush()
		}
		return
	}
	s.buf.WriteString(hideCursor)
	if len(above) > 0 {
		s.home()
		s.buf.WriteString(eraseBelow)
		s.rows = nil
		for _, l := range above {
			s.buf.WriteString(l)
			s.buf.WriteString("\r\n")
		}
	}
	s.update(rows)
	s.move(x, y)
	s.buf.WriteString(showCursor)
	s.flush()
}

func (s *screen) same(rows []string) bool {
	if len(rows) != len(s.rows) {
		return false
	}
	for i := range rows {
		if rows[i] != s.rows[i] {
			return false
		}
	}
	return true
}

// home moves the cursor to the beginning of the region.
func (s *screen) home() {
	s.buf.WriteByte('\r')
	s.step('A', s.y)
	s.x, s.y = 0, 0
}

// update draws the rows that changed.
func (s *screen) update(rows []string) {
	s.home()
	for i, r := range rows {
		if i > 0 {
			s.buf.WriteString("\r\n")
		}
		if i >= len(s.rows) || r != s.rows[i] {
			s.buf.WriteString(r)
			if ansi.StringWidth(r) < s.width { // otherwise the cursor is still on the last column
				s.buf.WriteString(eraseLine)
			}
		}
	}
	if len(s.rows) > len(rows) {
		s.buf.WriteString("\r\n" + eraseBelow)
		s.step('A', 1)
	}
	s.rows = append(s.rows[:0], rows...)
	s.y = len(rows) - 1
}

// move moves the cursor within the region.
func (s *screen) move(x, y int) {
	s.buf.WriteByte('\r')
	s.step('A', s.y-y)
	s.step('B', y-s.y)
	s.step('C', x)
	s.x, s.y = x, y
}

// step moves the cursor by n, if n is positive.
func (s *screen) step(direction byte, n int) {
	if n > 0 {
		s.buf.WriteString("\x1b[" + strconv.Itoa(n))
		s.buf.WriteByte(direction)
	}
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
	s.home()
	s.buf.WriteString(eraseBelow)
	s.rows = nil
	s.flush()
}

// write writes a sequence that does not move the cursor.
func (s *screen) write(sequence string) {
	s.buf.WriteString(sequence)
	s.flush()
}

func (s *screen) flush() {
	if s.err == nil {
		_, s.err = s.out.Write(s.buf.Bytes())
	}
	s.buf.Reset()
}
