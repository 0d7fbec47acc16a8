package charset

import (
	"bytes"
	"io"
	"slices"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// maxHeld is how much of a line that is not UTF-8 a [Writer] waits for.
const maxHeld = 4 << 10

// Writer decodes the output of a command and passes it on in UTF-8, as soon as it
// knows how: UTF-8 at once, other text when its line is complete. What is not
// text is passed on as it is.
type Writer struct {
	to       io.Writer
	wide     io.WriteCloser // decodes UTF-16 and UTF-32, which a stream keeps to
	encoding Encoding       // the last one found
	started  bool
	held     []byte
}

// NewWriter returns a writer. Close it at the end of the output.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Encoding returns the encoding of what was not UTF-8.
func (w *Writer) Encoding() Encoding { return w.encoding }

// Write implements [io.Writer].
func (w *Writer) Write(p []byte) (int, error) {
	if w.start(p); w.wide != nil {
		return w.wide.Write(p)
	}
	data := p
	if len(w.held) > 0 {
		data = append(w.held, p...)
		w.held = nil
	}
	ready := len(data)
	if last := bytes.LastIndexByte(data, '\n') + 1; !utf8.Valid(data[last:]) && ready-last < maxHeld {
		ready = last
		for ready < len(data) && utf8.FullRune(data[ready:]) { // show what is certain
			r, size := utf8.DecodeRune(data[ready:])
			if r == utf8.RuneError && size == 1 {
				ready = last // the whole line is needed
				break
			}
			ready += size
		}
	}
	w.held = bytes.Clone(data[ready:])
	return len(p), w.pass(data[:ready])
}

// Close passes on what was held. It does not close the destination.
func (w *Writer) Close() error {
	if w.wide != nil {
		return w.wide.Close()
	}
	held := w.held
	w.held = nil
	return w.pass(held)
}

// start looks at the first output: only there can UTF-16 begin.
func (w *Writer) start(p []byte) {
	if w.started || len(p) == 0 {
		return
	}
	w.started = true
	e, ok := marked(p)
	if !ok && bytes.IndexByte(p[:min(len(p), binaryHead)], 0) >= 0 {
		e, ok = Detect(p)
	}
	if ok && !e.UTF8() && plausible(e, p[:min(len(p), sample)]) {
		w.encoding = e
		w.wide = transform.NewWriter(w.to, transform.Chain(e.codec.NewDecoder(), withoutMark()))
	}
}

// pass passes on complete text.
func (w *Writer) pass(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if utf8.Valid(data) { // the fast path
		_, err := w.to.Write(data)
		return err
	}
	lines := slices.Collect(bytes.Lines(data))
	var other []byte
	for _, l := range lines {
		if !utf8.Valid(l) {
			other = append(other, l...)
		}
	}
	e := w.encoding
	if e.UTF8() || !clean(e, other) {
		var ok bool
		if e, ok = Detect(other); !ok || bytes.IndexByte(other, 0) >= 0 || wide(other) {
			e = Encoding{}
		}
	}
	if !e.UTF8() {
		w.encoding = e
	}
	var text []byte
	for _, l := range lines {
		if !utf8.Valid(l) {
			l = e.Decode(l)
		}
		text = append(text, l...)
	}
	_, err := w.to.Write(text)
	return err
}

// wide reports whether data looks like UTF-16, which does not begin within a
// line.
func wide(data []byte) bool {
	_, ok := marked(data)
	return ok
}

// withoutMark returns a transformer that removes the byte order mark at the
// beginning.
func withoutMark() transform.Transformer { return &unmark{} }

type unmark struct{ begun bool }

func (u *unmark) Reset() { u.begun = false }

func (u *unmark) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	const mark = "\uFEFF"
	if !u.begun {
		if len(src) < len(mark) && !atEOF {
			return 0, 0, transform.ErrShortSrc
		}
		u.begun = true
		nSrc = len(src) - len(bytes.TrimPrefix(src, []byte(mark)))
	}
	nDst = copy(dst, src[nSrc:])
	if nSrc += nDst; nSrc < len(src) {
		err = transform.ErrShortDst
	}
	return nDst, nSrc, err
}
