package pdftext

import (
	"math"
	"strings"
)

// placed is a character on the page.
type placed struct {
	text       string
	x, y       float64
	endX, endY float64 // where the next one would be
	size       float64
	angle      float64 // of its line
	guessed    bool    // its width is not known
	jumped     bool    // it was placed independently of the one before
}

// writer puts characters into lines, in the order in which they are drawn: mostly
// that of reading, also in columns.
type writer struct {
	b     strings.Builder
	last  placed
	drawn int // since the last jump
}

// Distances, as fractions of the font's size.
const (
	sameLine  = 0.5  // at most, across
	wordGap   = 0.15 // at least, between words
	columnGap = 2.0  // the same between columns
	paragraph = 1.8  // between lines of different paragraphs
	back      = -0.5 // at most, to be the same line
)

// add adds a character.
func (w *writer) add(g placed) {
	if g.size == 0 || g.text == "" {
		return
	}
	if g.text == w.last.text && math.Hypot(g.x-w.last.x, g.y-w.last.y) < 0.1*g.size {
		return // drawn twice, to make it bold
	}
	if w.b.Len() > maxPage {
		panic(errFull)
	}
	along, across := w.distance(g)
	switch size := max(g.size, w.last.size); {
	case w.b.Len() == 0:
	case g.angle != w.last.angle && math.Abs(g.angle-w.last.angle) > 0.01, math.Abs(across) > sameLine*size, along < back*size && !w.guessed(g):
		w.end(math.Abs(across) > paragraph*size)
	case along > columnGap*size:
		w.space("  ")
	case along > wordGap*size, w.guessed(g):
		w.space(" ")
	}
	if g.jumped {
		w.drawn = 0
	}
	w.drawn++
	w.b.WriteString(ligatures.Replace(g.text))
	w.last = g
}

// distance returns how far a character is from the end of the one before, along its
// line and across.
func (w *writer) distance(g placed) (along, across float64) {
	dx, dy := g.x-w.last.endX, g.y-w.last.endY
	sin, cos := math.Sincos(g.angle)
	return dx*cos + dy*sin, dy*cos - dx*sin
}

// guessed reports whether a character is in another place than the end of a longer
// piece of text, of which only the beginning is known exactly.
func (w *writer) guessed(g placed) bool { return g.jumped && w.last.guessed && w.drawn > 3 }

// space separates words, unless there is white space.
func (w *writer) space(s string) {
	if last := w.last.text; !strings.HasSuffix(last, " ") && !strings.HasSuffix(last, "\u00a0") {
		w.b.WriteString(s)
	}
}

func (w *writer) end(paragraph bool) {
	w.b.WriteByte('\n')
	if paragraph {
		w.b.WriteByte('\n')
	}
}

// ligatures are characters that stand for several, and white space.
var ligatures = strings.NewReplacer("\ufb00", "ff", "\ufb01", "fi", "\ufb02", "fl", "\ufb03", "ffi", "\ufb04", "ffl", "\u00a0", " ", "\u00ad", "-", "\r", "", "\n", "", "\x00", "")

// String returns the text, without white space at the ends of lines.
func (w *writer) String() string {
	lines := strings.Split(strings.TrimSpace(w.b.String()), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.Join(lines, "\n")
}
