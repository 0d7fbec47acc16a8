package tui

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// Item is an entry of a [List].
type Item struct {
	Label  string
	Detail string // beside the label
}

// List is what the user chooses from, by searching it or with the arrows.
type List struct {
	Title string
	Items []Item
	At    int // the item that is selected at first
	// Preview returns more about an item, as Markdown; nil if there is none. It is
	// called in its own goroutine.
	Preview func(ctx context.Context, at int) string
}

// picker shows a List and searches it.
type picker struct {
	List
	query    string
	matches  []match
	at, top  int // in matches
	room     int // rows of the list
	previews map[int]string
	asked    map[int]bool
}

func newPicker(l List) *picker {
	p := &picker{List: l, previews: map[int]string{}, asked: map[int]bool{}, room: 1}
	p.search("")
	for i, m := range p.matches {
		if m.at == l.At {
			p.at = i
		}
	}
	return p
}

// search shows what matches: by the label, and then by the detail as well.
func (p *picker) search(query string) {
	labels, both := make([]string, len(p.Items)), make([]string, len(p.Items))
	for i, item := range p.Items {
		labels[i], both[i] = item.Label, item.Label+"  "+item.Detail
	}
	p.query, p.matches, p.at, p.top = query, fuzzy(query, labels), 0, 0
	by := map[int]bool{}
	for _, m := range p.matches {
		by[m.at] = true
	}
	for _, m := range fuzzy(query, both) {
		if !by[m.at] {
			p.matches = append(p.matches, m)
		}
	}
}

// chosen returns the selected item, or -1.
func (p *picker) chosen() int {
	if p.at < len(p.matches) {
		return p.matches[p.at].at
	}
	return -1
}

// key handles a key. It reports whether the picker is done, and with which item, -1
// if none.
func (p *picker) key(msg tea.KeyPressMsg) (chosen int, done bool) {
	switch name := msg.String(); name {
	case "enter", "tab":
		return p.chosen(), p.chosen() >= 0
	case "esc", "ctrl+c", "ctrl+g", "ctrl+k":
		return -1, true
	case "up", "ctrl+p", "shift+tab":
		p.move(-1)
	case "down", "ctrl+n":
		p.move(1)
	case "pgup":
		p.move(-p.room)
	case "pgdown":
		p.move(p.room)
	case "home":
		p.move(-len(p.matches))
	case "end":
		p.move(len(p.matches))
	case "backspace":
		if r := []rune(p.query); len(r) > 0 {
			p.search(string(r[:len(r)-1]))
		}
	case "ctrl+u":
		p.search("")
	case "ctrl+w":
		p.search(strings.TrimRight(p.query, " ")[:strings.LastIndexByte(" "+strings.TrimRight(p.query, " "), ' ')])
	default:
		if msg.Text != "" {
			p.search(p.query + display.Printable(msg.Text))
		}
	}
	return -1, false
}

func (p *picker) move(by int) {
	p.at = max(0, min(p.at+by, len(p.matches)-1))
}

// rows returns the list for a size, and the cursor's position.
func (p *picker) rows(s *scene, width, height int) (rows []string, x, y int) {
	head := s.paint(yellow, "? ") + s.paint(bold, display.VisibleLine(p.Title, max(10, width-14)))
	rows = append(rows, head+s.paint(dim, fmt.Sprintf("  %d/%d", len(p.matches), len(p.Items))))
	rows = append(rows, s.paint(cyan, "  / ")+display.OneLine(p.query, max(4, width-6)))
	x, y = min(4+ansi.StringWidth(p.query), width-1), 1
	preview := p.previewRows(s, width, max(0, min(height/3, height-8)))
	p.room = max(1, min(max(len(p.Items), 1), height-3-len(preview)))
	p.top = max(min(p.top, p.at), p.at-p.room+1)
	label := p.labelWidth(width)
	for i := p.top; i < len(p.matches) && i < p.top+p.room; i++ {
		rows = append(rows, p.row(s, p.matches[i], i == p.at, label, width))
	}
	if len(p.matches) == 0 {
		rows = append(rows, s.paint(dim, "  nothing matches"))
	}
	rows = append(rows, preview...)
	return append(rows, s.paint(dim, fitted([]part{{"  type to search", 2}, {"↑↓ PgUp PgDn", 3}, {"Enter chooses", 0}, {"Esc: none", 1}}, width))), x, y
}

// labelWidth is the width of the column of labels.
func (p *picker) labelWidth(width int) int {
	widest := 0
	for _, item := range p.Items {
		if item.Detail != "" {
			widest = max(widest, ansi.StringWidth(item.Label))
		}
	}
	return min(widest, max(20, width*3/5))
}

// row formats an item.
func (p *picker) row(s *scene, m match, selected bool, label, width int) string {
	item := p.Items[m.at]
	pointer, st := "  ", plain
	if selected {
		pointer, st = s.paint(cyan, "› "), bold
	}
	on := map[int]bool{}
	for _, i := range m.on {
		on[i] = true
	}
	cells := func(text string, from int, st style) (out []cell) {
		for i, r := range []rune(display.VisibleLine(text, 500)) {
			own := st
			if on[from+i] {
				own = st.and(cyan).and(underline)
			}
			out = append(out, cell{string(r), 1, own})
		}
		return out
	}
	line := pointer + display.Clip(s.runs(cells(item.Label, 0, st)), max(label, width-2-len(item.Detail)-2))
	if item.Detail != "" {
		line += strings.Repeat(" ", max(2, label+4-ansi.StringWidth(line))) + s.runs(cells(item.Detail, len([]rune(item.Label))+2, dim))
	}
	return display.Clip(line, width)
}

// previewRows returns what is known about the selected item.
func (p *picker) previewRows(s *scene, width, most int) []string {
	text := p.previews[p.chosen()]
	if p.Preview == nil || most < 2 {
		return nil
	}
	lines := s.md.render(text, within(width, 4))
	if len(lines) > most-1 {
		lines = append(lines[:most-2:most-2], s.paint(dim, "…"))
	}
	rows := append([]string{s.paint(dim, "  "+strings.Repeat("─", min(40, max(0, width-4))))}, indent(lines, "  ", "  ")...)
	for len(rows) < most {
		rows = append(rows, "") // the list stays where it is
	}
	return rows
}
