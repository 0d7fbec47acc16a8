package tui

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// vt is a small model of a terminal: what a person would see on it after the
// bytes that were written. It knows what the line session uses and counts what
// it does not know.
type vt struct {
	width, height int
	scroll        []string   // lines that left the screen at the top
	cells         [][]string // "" is the second half of a wide character
	x, y          int
	wrapNext      bool
	hidden        bool // the cursor
	paste         bool // bracketed paste
	title         string
	bells         int
	notices       []string // OSC 9
	styled        bool     // an SGR sequence came
	unknown       []string
	rest          string // an unfinished sequence
}

func newVT(width, height int) *vt {
	v := &vt{}
	v.resize(width, height)
	return v
}

func (v *vt) resize(width, height int) {
	v.width, v.height = width, height
	for len(v.cells) > height && len(v.cells)-1 > v.y && row(v.cells[len(v.cells)-1]) == "" {
		v.cells = v.cells[:len(v.cells)-1]
	}
	for len(v.cells) > height {
		v.scroll = append(v.scroll, row(v.cells[0]))
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

func row(cells []string) string { return strings.TrimRight(strings.Join(cells, ""), " ") }

// screen is what is on the screen, all is that and what scrolled away.
func (v *vt) screen() string {
	var lines []string
	for _, c := range v.cells {
		lines = append(lines, row(c))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func (v *vt) all() string {
	return strings.Join(append(v.scroll[:len(v.scroll):len(v.scroll)], v.screen()), "\n")
}

func (v *vt) write(p string) {
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

// next takes one character or sequence, and returns its length; 0 for one that
// is not whole yet.
func (v *vt) next(p string) int {
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
		v.bells++
		return 1
	case 0x1b:
		return v.escape(p)
	}
	if !utf8.FullRuneInString(p) {
		return 0
	}
	text, w := ansi.FirstGraphemeCluster(p, ansi.GraphemeWidth)
	if r, _ := utf8.DecodeRuneInString(text); r < 0x20 || r >= 0x7f && r < 0xa0 {
		v.unknown = append(v.unknown, strconv.Quote(text))
		return len(text)
	}
	v.put(text, w)
	return len(text)
}

func (v *vt) put(text string, w int) {
	if v.wrapNext || v.x+w > v.width {
		v.x, v.wrapNext = 0, false
		v.down()
	}
	line := v.cells[v.y]
	for len(line) < v.x+w {
		line = append(line, " ")
	}
	line[v.x] = text
	for i := 1; i < w; i++ {
		line[v.x+i] = ""
	}
	v.cells[v.y] = line
	if v.x += w; v.x >= v.width {
		v.x, v.wrapNext = v.width-1, true
	}
}

func (v *vt) down() {
	v.wrapNext = false
	if v.y++; v.y == v.height {
		v.y--
		v.scroll = append(v.scroll, row(v.cells[0]))
		v.cells = append(v.cells[1:], nil)
	}
}

func (v *vt) escape(p string) int {
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
			v.title = text
		case "9":
			v.notices = append(v.notices, text)
		default:
			v.unknown = append(v.unknown, strconv.Quote(p[:end]))
		}
		return end + 1
	}
	if p[1] != '[' {
		v.unknown = append(v.unknown, strconv.Quote(p[:2]))
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

func (v *vt) csi(args string, final byte) {
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
		v.styled = v.styled || args != "0"
	case 'h', 'l':
		switch args {
		case "?25":
			v.hidden = final == 'l'
		case "?2004":
			v.paste = final == 'h'
		default:
			v.unknown = append(v.unknown, "CSI "+args+string(final))
		}
	case 't':
	default:
		v.unknown = append(v.unknown, "CSI "+args+string(final))
	}
}
