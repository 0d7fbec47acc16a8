package vt

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Terminal is an emulated terminal. It is not safe for concurrent use.
type Terminal struct {
	Hidden  bool // the cursor is hidden
	Paste   bool // bracketed paste is on
	Other   bool // the alternate screen is shown
	Title   string
	Bells   int
	Notices []string // OSC 9 and OSC 777
	Asked   []string // what was asked for: OSC with "?"
	Copied  []string // OSC 52, decoded
	Styled  bool     // there was an SGR sequence
	Unknown []string // unsupported sequences

	width, height int
	scroll        [][]Cell // lines scrolled off the screen
	cells         [][]Cell
	style         string
	x, y          int
	wrapNext      bool
	rest          string // an incomplete sequence
	main          screen // while the alternate screen is shown
}

// screen is what the alternate screen hides.
type screen struct {
	cells [][]Cell
	x, y  int
}

// alternate switches to the alternate screen, or back.
func (v *Terminal) alternate(on bool) {
	switch {
	case on && !v.Other:
		v.main = screen{v.cells, v.x, v.y}
		v.cells, v.x, v.y = make([][]Cell, v.height), 0, 0
	case !on && v.Other:
		v.cells, v.x, v.y = v.main.cells, v.main.x, v.main.y
	}
	v.Other, v.wrapNext = on, false
	v.Resize(v.width, v.height)
}

// Cell is one column of a line.
type Cell struct {
	Text  string // empty in the second half of a wide character
	Style string // the parameters of the active SGR sequences, joined by ";"
}

// New returns an empty terminal.
func New(width, height int) *Terminal {
	v := &Terminal{}
	v.Resize(width, height)
	return v
}

// Resize changes the size, like a terminal that truncates long lines.
func (v *Terminal) Resize(width, height int) {
	v.width, v.height = width, height
	for len(v.cells) > height && len(v.cells)-1 > v.y && row(v.cells[len(v.cells)-1]) == "" {
		v.cells = v.cells[:len(v.cells)-1]
	}
	for len(v.cells) > height {
		v.scrollOff()
		v.cells = v.cells[1:]
		v.y--
	}
	for len(v.cells) < height {
		v.cells = append(v.cells, nil)
	}
	for i := range v.cells {
		if len(v.cells[i]) > width {
			v.cells[i] = v.cells[i][:width]
		}
	}
	v.x, v.y = min(v.x, width-1), max(0, v.y)
}

func row(cells []Cell) string {
	var b strings.Builder
	for _, c := range cells {
		b.WriteString(c.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

func text(lines [][]Cell) string {
	var out []string
	for _, l := range lines {
		out = append(out, row(l))
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

// Screen returns the text on the screen.
func (v *Terminal) Screen() string { return text(v.cells) }

// All returns the text of the scrollback and the screen.
func (v *Terminal) All() string { return text(v.Lines()) }

// Lines returns the lines of the scrollback and the screen.
func (v *Terminal) Lines() [][]Cell {
	return append(v.scroll[:len(v.scroll):len(v.scroll)], v.cells...)
}

// Write processes a program's output. Sequences may be split between calls.
func (v *Terminal) Write(p string) {
	p = v.rest + p
	v.rest = ""
	for p != "" {
		n := v.next(p)
		if n == 0 {
			v.rest = p
			return
		}
		p = p[n:]
	}
}

// next processes one character or sequence and returns its length, 0 if it is
// incomplete.
func (v *Terminal) next(p string) int {
	switch p[0] {
	case '\r':
		v.x, v.wrapNext = 0, false
		return 1
	case '\n':
		v.down()
		return 1
	case '\b':
		v.x = max(0, v.x-1)
		return 1
	case '\a':
		v.Bells++
		return 1
	case 0x1b:
		return v.escape(p)
	}
	if !utf8.FullRuneInString(p) {
		return 0
	}
	text, w := ansi.FirstGraphemeCluster(p, ansi.GraphemeWidth)
	if r, _ := utf8.DecodeRuneInString(text); r < 0x20 || r >= 0x7f && r < 0xa0 {
		v.Unknown = append(v.Unknown, strconv.Quote(text))
		return len(text)
	}
	v.put(text, w)
	return len(text)
}

func (v *Terminal) put(text string, w int) {
	if v.wrapNext || v.x+w > v.width {
		v.x, v.wrapNext = 0, false
		v.down()
	}
	line := v.cells[v.y]
	for len(line) < v.x+w {
		line = append(line, Cell{Text: " "})
	}
	line[v.x] = Cell{text, v.style}
	for i := 1; i < w; i++ {
		line[v.x+i] = Cell{"", v.style}
	}
	v.cells[v.y] = line
	if v.x += w; v.x >= v.width {
		v.x, v.wrapNext = v.width-1, true
	}
}

func (v *Terminal) down() {
	v.wrapNext = false
	if v.y++; v.y == v.height {
		v.y--
		v.scrollOff()
		v.cells = append(v.cells[1:], nil)
	}
}

// scrollOff keeps the first line, unless it is of the alternate screen.
func (v *Terminal) scrollOff() {
	if !v.Other {
		v.scroll = append(v.scroll, v.cells[0])
	}
}

func (v *Terminal) escape(p string) int {
	if len(p) < 2 {
		return 0
	}
	if p[1] == ']' {
		end := strings.IndexByte(p, '\a')
		if end < 0 {
			return 0
		}
		switch kind, text, _ := strings.Cut(p[2:end], ";"); kind {
		case "0", "2":
			v.Title = text
		case "9", "777":
			v.Notices = append(v.Notices, text)
		case "11":
			v.Asked = append(v.Asked, kind)
		case "52":
			_, data, _ := strings.Cut(text, ";")
			copied, _ := base64.StdEncoding.DecodeString(data)
			v.Copied = append(v.Copied, string(copied))
		default:
			v.Unknown = append(v.Unknown, strconv.Quote(p[:end]))
		}
		return end + 1
	}
	if p[1] != '[' {
		v.Unknown = append(v.Unknown, strconv.Quote(p[:2]))
		return 2
	}
	end := strings.IndexFunc(p[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 {
		return 0
	}
	end += 2
	v.csi(p[2:end], p[end])
	return end + 1
}

func (v *Terminal) csi(args string, final byte) {
	n, err := strconv.Atoi(args)
	if err != nil {
		n = 1
	}
	switch final {
	case 'A':
		v.y, v.wrapNext = max(0, v.y-n), false
	case 'B':
		v.y, v.wrapNext = min(v.height-1, v.y+n), false
	case 'C':
		v.x, v.wrapNext = min(v.width-1, v.x+n), false
	case 'H':
		v.x, v.y, v.wrapNext = 0, 0, false
	case 'K':
		v.cells[v.y] = v.cells[v.y][:min(v.x, len(v.cells[v.y]))]
	case 'J':
		from := v.y + 1
		v.cells[v.y] = v.cells[v.y][:min(v.x, len(v.cells[v.y]))]
		if args == "2" {
			from = 0
		}
		for i := from; i < v.height; i++ {
			v.cells[i] = nil
		}
	case 'm':
		if rest, ok := strings.CutPrefix(args+";", "0;"); ok || args == "" {
			v.style, args = "", strings.TrimSuffix(rest, ";")
		}
		v.Styled = v.Styled || args != ""
		switch {
		case args == "":
		case v.style != "":
			v.style += ";" + args
		default:
			v.style = args
		}
	case 'h', 'l':
		switch args {
		case "?25":
			v.Hidden = final == 'l'
		case "?1049":
			v.alternate(final == 'h')
		case "?2004":
			v.Paste = final == 'h'
		default:
			v.Unknown = append(v.Unknown, "CSI "+args+string(final))
		}
	case 'L', 'M':
		v.shiftLines(min(n, v.height-v.y), final == 'L')
	case 't':
	default:
		v.Unknown = append(v.Unknown, "CSI "+args+string(final))
	}
}

// shiftLines inserts n empty lines at the cursor's, or deletes n from there.
func (v *Terminal) shiftLines(n int, insert bool) {
	above, below, empty := v.cells[:v.y], v.cells[v.y:], make([][]Cell, n)
	if insert {
		below = slices.Concat(empty, below[:len(below)-n])
	} else {
		below = slices.Concat(below[n:], empty)
	}
	v.cells, v.x, v.wrapNext = slices.Concat(above, below), 0, false
}

// Cursor returns the column and the line of the cursor on the screen.
func (v *Terminal) Cursor() (x, y int) { return v.x, v.y }
