package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// part is a part of the status line. Parts with a low rank get room first.
type part struct {
	text string
	rank int
}

// fitted joins the parts that have room in width columns with dots.
func fitted(parts []part, width int) string {
	byRank := slices.SortedStableFunc(slices.Values(parts), func(a, b part) int { return a.rank - b.rank })
	used := -ansi.StringWidth(dot)
	var texts []string
	room := map[part]bool{}
	for i, p := range byRank {
		if w := ansi.StringWidth(p.text) + ansi.StringWidth(dot); p.text != "" && (i == 0 || used+w <= width) {
			used += w
			room[p] = true
		}
	}
	for _, p := range parts {
		if room[p] {
			texts = append(texts, p.text)
		}
	}
	return strings.Join(texts, dot)
}

const dot = " · "

// statusRow returns the status line.
func (l *lineScreen) statusRow() string {
	spin := l.scene.paint(cyan, spinner[l.spin%len(spinner)]) + " "
	room := l.screen.width
	switch {
	case l.work.busy && l.work.stopped > 1:
		return spin + l.scene.paint(yellow, "aborting")
	case l.work.busy && l.work.stopped == 1:
		return spin + l.scene.paint(yellow, "stopping after the current step · Ctrl-C again aborts")
	case l.work.busy:
		parts := []part{{l.elapsed(l.work.since), 0}, {l.scene.wait.Text(l.scene.now()), 3}, {l.scene.stepNow(), 7}}
		parts = append(parts, l.statusParts()...)
		return spin + l.scene.paint(dim, fitted(append(parts, part{"Ctrl-C stops", 2}, l.moreHint()), room-2))
	case len(l.jobs) > 0:
		return spin + l.scene.paint(dim, "running · Ctrl-C stops")
	case l.escArmed:
		return l.scene.paint(yellow, "Esc again goes back to before an input")
	case l.quitArmed:
		return l.scene.paint(yellow, "Ctrl-C again quits")
	}
	parts := l.statusParts()
	if l.editor.commanding() {
		parts = append([]part{{"normal mode", 1}}, parts...)
	}
	return l.scene.paint(dim, fitted(append(parts, l.moreHint()), room))
}

// moreHint is the hint that there is truncated text.
func (l *lineScreen) moreHint() part {
	if l.scene.more == nil {
		return part{}
	}
	return part{"Ctrl-O expands", 8}
}

// statusParts describes the session.
func (d *driver) statusParts() []part {
	st := Status{}
	if d.Status != nil {
		st = d.Status()
	}
	if st.Tokens == 0 {
		st.Tokens = d.scene.tokens
	}
	if st.Line != "" {
		return []part{{display.Printable(st.Mode), 1}, {d.workStatus(), 2}, {display.OneLine(st.Line, max(10, d.scene.width-30)), 3}}
	}
	if st.Dirty && st.Branch != "" {
		st.Branch += "*"
	}
	parts := []part{{display.Printable(st.Model), 4}, {display.Printable(st.Effort), 8}, {display.Printable(st.Mode), 1}, {display.OneLine(st.Branch, 40), 6}}
	parts = append(parts, part{d.workStatus(), 2})
	if st.Used > 0 {
		parts = append(parts, part{fmt.Sprintf("context %d %%", st.Used), 4})
	}
	if st.Tokens > 0 {
		parts = append(parts, part{display.Count(st.Tokens) + " tokens", 6})
	}
	if st.Priced && st.Cost > 0 {
		parts = append(parts, part{fmt.Sprintf("$%.4f", st.Cost), 5})
	}
	return parts
}
