package longtext

import "strings"

// Text is a text in pieces. Unlike a strings.Builder, it is not copied as it
// grows, which would take several times its size. The zero value is empty.
type Text struct {
	pieces [][]byte
	size   int
}

// Add appends to the text.
func (t *Text) Add(text string) {
	const smallest, largest = 512, 1 << 20
	for t.size += len(text); text != ""; {
		last := len(t.pieces) - 1
		if last < 0 || len(t.pieces[last]) == cap(t.pieces[last]) {
			t.pieces = append(t.pieces, make([]byte, 0, min(max(t.size, smallest), largest)))
			last++
		}
		p := t.pieces[last]
		n := min(cap(p)-len(p), len(text))
		t.pieces[last] = append(p, text[:n]...)
		text = text[n:]
	}
}

// Len returns the length in bytes.
func (t *Text) Len() int { return t.size }

// String returns the text.
func (t *Text) String() string {
	if len(t.pieces) == 1 {
		return string(t.pieces[0])
	}
	var b strings.Builder
	b.Grow(t.size)
	for _, p := range t.pieces {
		b.Write(p)
	}
	return b.String()
}
