package tui

import (
	"cmp"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// Sequences of the pager.
const (
	enterAlternate = "\x1b[?1049h"
	leaveAlternate = "\x1b[?1049l"
	clearScreen    = "\x1b[H\x1b[2J"
)

// pager shows a long text on the terminal's alternate screen, where it can be
// scrolled and searched. What it showed is gone when it is closed.
type pager struct {
	title  string
	render func(width int) []string
	hint   string // other keys
	// other handles keys before the pager does; it may be nil.
	other func(key string) (handled bool)
	live  bool   // the text changes; its end stays on the screen
	over  *pager // the pager to which this one returns

	lines  []string // for this width
	width  int
	height int // of the text
	top    int
	cursor int    // the highlighted line; not set if 0 or less
	note   string // what the last key did, or why nothing
	term   string // that was searched for

	prompt string // of what is being typed; empty if nothing is
	typed  string
	enter  func(text string)
}

// ask lets the user type a text at the bottom of the screen.
func (p *pager) ask(prompt string, enter func(text string)) {
	p.prompt, p.typed, p.enter = prompt, "", enter
}

// layout renders the text for a size of the screen.
func (p *pager) layout(width, height int) {
	end := p.top >= len(p.lines)-p.height
	p.height = max(1, height-2)
	if p.width != width {
		p.cursor = -1
	}
	if p.width != width || p.lines == nil || p.live {
		p.width, p.lines = width, p.render(width)
	}
	if p.live && end {
		p.top = len(p.lines)
	}
	p.scroll(0)
}

// scroll moves the text.
func (p *pager) scroll(by int) {
	p.top = max(0, min(p.top+by, len(p.lines)-p.height))
}

// rows returns the screen.
func (p *pager) rows(paint painter) []string {
	rows := []string{paint.paint(bold, display.Clip(p.title, p.width))}
	for i := range p.height {
		row := ""
		if at := p.top + i; at < len(p.lines) {
			row = display.Clip(p.lines[at], p.width)
			if p.term != "" && p.prompt == "" && p.matches(at) {
				row = paint.paint(yellow, ansi.Strip(row))
			}
			if at == p.cursor && at > 0 {
				row = paint.paint(reverse, ansi.Strip(row))
			}
		}
		rows = append(rows, row)
	}
	switch {
	case p.prompt != "":
		return append(rows, display.Clip(p.prompt+p.typed+"▏", p.width))
	case p.note != "":
		return append(rows, paint.paint(yellow, display.Clip(p.note, p.width)))
	}
	at := "all"
	if len(p.lines) > p.height {
		at = fmt.Sprintf("%d-%d of %d", p.top+1, min(len(p.lines), p.top+p.height), len(p.lines))
	}
	return append(rows, paint.paint(dim, display.Clip(fitted([]part{{at, 1}, {p.hint, 0}, {"↑↓ PgUp PgDn", 3}, {"/ search", 2}, {"q closes", 1}}, p.width), p.width)))
}

func (p *pager) matches(line int) bool {
	return strings.Contains(strings.ToLower(ansi.Strip(p.lines[line])), strings.ToLower(p.term))
}

// find goes to the next line with the term, or to the one before.
func (p *pager) find(from, step int) {
	if p.term == "" {
		return
	}
	at, wrapped := around(from, step, len(p.lines), p.matches)
	if at < 0 {
		p.note = "not found: " + p.term
		return
	}
	p.top, p.cursor, p.note = at, at, wrapNote(step, wrapped)
	p.scroll(0)
}

// here returns the highlighted line, if it is on the screen, or else the first one there.
func (p *pager) here() int {
	if p.cursor > p.top && p.cursor < p.top+p.height {
		return p.cursor
	}
	return p.top
}

// around returns the first index of n from which on, in steps of 1 or -1, is wanted, and
// whether it comes after the end; -1 if there is none.
func around(from, step, n int, wanted func(int) bool) (at int, wrapped bool) {
	for i := range n {
		to := from + i*step
		if at = ((to % n) + n) % n; wanted(at) {
			return at, at != to
		}
	}
	return -1, false
}

// wrapNote tells that something was found beyond the end.
func wrapNote(step int, wrapped bool) string {
	switch {
	case !wrapped:
		return ""
	case step > 0:
		return "continued from the top"
	}
	return "continued from the end"
}

// key handles a key. It reports whether the pager is closed.
func (p *pager) key(msg tea.KeyPressMsg) (closed bool) {
	name := msg.String()
	if p.prompt != "" {
		p.edit(msg)
		return false
	}
	p.note = ""
	if p.other != nil && p.other(name) {
		return false
	}
	switch name {
	case "q", "esc", "ctrl+c", "ctrl+o", "ctrl+t":
		return true
	case "up", "k", "ctrl+p":
		p.scroll(-1)
	case "down", "j", "ctrl+n", "enter":
		p.scroll(1)
	case "pgup", "b", "ctrl+b":
		p.scroll(-p.height)
	case "pgdown", "space", "f", "ctrl+f":
		p.scroll(p.height)
	case "home", "g":
		p.top = 0
	case "end", "G", "shift+g":
		p.scroll(len(p.lines))
	case "/":
		p.term = ""
		p.ask("/", func(text string) {
			p.term = text
			p.find(p.here(), 1)
		})
	case "n":
		p.find(p.here()+1, 1)
	case "N", "shift+n":
		p.find(p.here()-1, -1)
	}
	return false
}

// edit handles a key for what is being typed.
func (p *pager) edit(msg tea.KeyPressMsg) {
	switch msg.String() {
	case "enter":
		p.prompt = ""
		p.enter(p.typed)
	case "esc", "ctrl+c":
		p.prompt = ""
	case "backspace":
		if r := []rune(p.typed); len(r) > 0 {
			p.typed = string(r[:len(r)-1])
		}
	default:
		p.typed += display.Printable(msg.Text)
	}
}

// paste takes pasted text for what is being typed.
func (p *pager) paste(text string) (taken bool) {
	if p.prompt != "" {
		p.typed += display.OneLine(text, 1000)
	}
	return p.prompt != ""
}

// openPager shows a text on the alternate screen.
func (l *lineScreen) openPager(p *pager) {
	if l.pager == nil {
		l.draw() // so that the session's screen is complete
		l.watch.tell("alt")
		l.screen.write(hideCursor + enterAlternate)
		l.paged = nil
	}
	l.pager = p
}

// closePager returns to the session's screen.
func (l *lineScreen) closePager() {
	if l.pager == nil {
		return
	}
	if l.pager = l.pager.over; l.pager != nil {
		return
	}
	l.screen.write(leaveAlternate + showCursor)
	l.watch.tell("main")
	if l.resized != nil {
		size := *l.resized
		l.resized = nil
		l.resize(size.Width, size.Height)
	}
}

// drawPager draws the pager.
func (l *lineScreen) drawPager() {
	width, height := l.screen.width, l.screen.height
	if l.resized != nil {
		width, height = l.resized.Width, l.resized.Height
	}
	l.pager.layout(width, height)
	if l.paged == nil || l.paged.width != width || l.paged.height != height {
		l.screen.write(clearScreen)
		l.paged = &screen{out: l.screen.out, width: width, height: height, hidden: true}
	}
	l.paged.draw(nil, l.pager.rows(l.scene.painter), 0, 0)
	l.screen.err = cmp.Or(l.screen.err, l.paged.err)
}
