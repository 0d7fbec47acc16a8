package tui

import (
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/preview"
)

// hunkReview opens the choice of hunks.
const hunkReview = "hunks"

// hunksOf returns the hunks of changes, file by file; nil if there are fewer than two,
// or one file cannot be taken apart.
func hunksOf(changes []preview.Change) (all [][]preview.Hunk) {
	n := 0
	for _, c := range changes {
		hunks := c.Hunks()
		if len(hunks) == 0 {
			return nil
		}
		all, n = append(all, hunks), n+len(hunks)
	}
	if n < 2 {
		return nil
	}
	return all
}

// hunkView lets the user take some hunks of a review.
type hunkView struct {
	*lineScreen
	*pager
	of      *pending
	changes []preview.Change
	hunks   [][]preview.Hunk
	taken   [][]bool
	at      int   // of all hunks
	lineOf  []int // where each begins
}

// openHunks shows the hunks of the question's review.
func (l *lineScreen) openHunks() {
	v := &hunkView{lineScreen: l, of: l.dialog.pending, changes: l.dialog.review.Changes}
	v.hunks = hunksOf(v.changes)
	for _, hunks := range v.hunks {
		taken := make([]bool, len(hunks))
		for i := range taken {
			taken[i] = true
		}
		v.taken = append(v.taken, taken)
	}
	v.pager = &pager{title: "Take which changes?", hint: "Space takes or leaves · a all · Enter done"}
	v.pager.render, v.pager.other = v.rows, v.handle
	l.openPager(v.pager)
}

func (v *hunkView) rows(width int) []string {
	s := *v.scene
	s.width, s.full = width, true
	var rows []string
	v.lineOf = v.lineOf[:0]
	for i, hunks := range v.hunks {
		rows = append(rows, s.paint(bold, display.VisibleLine(s.relative(v.changes[i].Path), 200)))
		for j, h := range hunks {
			box, pointer, st := "[ ]", "  ", dim
			if v.taken[i][j] {
				box, st = "[x]", plain
			}
			if len(v.lineOf) == v.at {
				pointer = s.paint(cyan, "› ")
			}
			v.lineOf = append(v.lineOf, len(rows))
			rows = append(rows, pointer+s.paint(st, fmt.Sprintf("%s hunk %d of %d", box, j+1, len(hunks))))
			if head := strings.Index(h.Diff, "@@"); head >= 0 {
				rows = append(rows, s.diff(display.Visible(h.Diff[head:]), 0)...)
			}
		}
	}
	return rows
}

// handle handles a key of the choice.
func (v *hunkView) handle(key string) bool {
	switch key {
	case "up", "k":
		v.at = max(0, v.at-1)
	case "down", "j":
		v.at = min(len(v.lineOf)-1, v.at+1)
	case "space", "x":
		i, j := v.indexOf(v.at)
		v.taken[i][j] = !v.taken[i][j]
	case "a":
		want := strings.Contains(fmt.Sprint(v.taken), "false")
		for _, taken := range v.taken {
			for j := range taken {
				taken[j] = want
			}
		}
	case "enter":
		v.done()
		return true
	default:
		return false
	}
	v.lines = nil
	v.layout(v.pager.width, v.pager.height+2)
	if line := v.lineOf[v.at]; line < v.top || line >= v.top+v.pager.height-1 {
		v.top = line - 1
		v.scroll(0)
	}
	return true
}

// indexOf returns the file and the hunk of a number.
func (v *hunkView) indexOf(n int) (file, hunk int) {
	for n >= len(v.hunks[file]) {
		n -= len(v.hunks[file])
		file++
	}
	return file, n
}

// done makes the chosen hunks the change that the question is about.
func (v *hunkView) done() {
	if !strings.Contains(fmt.Sprint(v.taken), "true") {
		v.note = "nothing is taken: q goes back, where n says no"
		return
	}
	v.closePager()
	if v.dialog == nil || v.dialog.pending != v.of {
		return // the question was withdrawn
	}
	r := v.dialog.review
	for i, c := range v.changes {
		r.Changes[i] = c.Take(v.taken[i])
	}
	r.amended, r.rows = true, nil
	v.dialog.options = v.dialog.reviewOptions(v.dialog.optionsOf())
}
