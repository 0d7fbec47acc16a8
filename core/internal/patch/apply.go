package patch

import (
	"fmt"
	"strings"
	"unicode"
)

// Tolerance is which differences to the lines of the file were ignored.
type Tolerance int

// The tolerances, in the order in which they are tried.
const (
	Exact       Tolerance = iota
	Trailing              // white space at the ends of lines
	Surrounding           // white space around lines
	Punctuation           // and typographic quotes, dashes and spaces
)

// String describes the tolerance.
func (t Tolerance) String() string {
	switch t {
	case Trailing:
		return "matched ignoring white space at the ends of lines"
	case Surrounding:
		return "matched ignoring white space around lines"
	case Punctuation:
		return "matched ignoring white space around lines and the kind of quotes, dashes and spaces"
	}
	return "exact"
}

// Note reports a hunk that was found with some tolerance.
type Note struct {
	Line      int // of the hunk in the patch
	Tolerance Tolerance
}

// MatchError is a hunk whose lines are not in the file.
type MatchError struct {
	Path   string
	Line   int      // of the hunk in the patch
	Hint   string   // the hint that was not found; empty if the lines were not
	Wanted []string // the lines that were not found
	At     int      // number of the first of the most similar lines, from 1; 0 = none
	Found  []string // the most similar lines
}

// Error shows the wanted lines and the most similar ones.
func (e *MatchError) Error() string {
	var b strings.Builder
	if e.Hint != "" {
		fmt.Fprintf(&b, "%s: no line matches the hint %q (line %d of the patch)", e.Path, e.Hint, e.Line)
	} else {
		fmt.Fprintf(&b, "%s: these lines of the change at line %d of the patch are not in the file, or not after the previous change:\n", e.Path, e.Line)
		for i, l := range e.Wanted {
			if i == 8 {
				fmt.Fprintf(&b, "  … %d more\n", len(e.Wanted)-i)
				break
			}
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
	if e.At > 0 {
		b.WriteString("\nMost similar lines in the file:\n")
		for i, l := range e.Found {
			fmt.Fprintf(&b, "  %d | %s\n", e.At+i, l)
		}
	}
	return strings.TrimSpace(b.String())
}

// text is a file's content as lines, and how to join them.
type text struct {
	bom   string
	crlf  bool
	final bool // the last line has a line end
	lines []string
}

func parseText(s string) text {
	var t text
	if rest, ok := strings.CutPrefix(s, "\ufeff"); ok {
		t.bom, s = "\ufeff", rest
	}
	if n := strings.Count(s, "\n"); n > 0 && 2*strings.Count(s, "\r\n") > n {
		t.crlf = true
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	if s == "" {
		t.final = true // added lines have line ends
		return t
	}
	s, t.final = strings.CutSuffix(s, "\n")
	t.lines = strings.Split(s, "\n")
	return t
}

func (t text) String() string {
	if len(t.lines) == 0 {
		return t.bom
	}
	s := strings.Join(t.lines, "\n")
	if t.final {
		s += "\n"
	}
	if t.crlf {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	return t.bom + s
}

// Apply applies an update to the content of a file. Each hunk is searched after
// the one before. Line ends, a byte order mark, and whether the last line has a
// line end, are preserved. The error is a *[MatchError]; notes report hunks that
// were not found exactly.
func (f File) Apply(before string) (after string, notes []Note, err error) {
	t := parseText(before)
	at := 0
	var out []string
	for _, h := range f.Hunks {
		place, tolerance, err := f.find(t.lines, h, at)
		if err != nil {
			return "", nil, err
		}
		if tolerance != Exact {
			notes = append(notes, Note{h.Line, tolerance})
		}
		out = append(out, t.lines[at:place]...)
		at = place
		for _, l := range h.Lines {
			switch l.Kind {
			case ' ':
				out = append(out, t.lines[at]) // of the file, which may differ from the patch
				at++
			case '-':
				at++
			case '+':
				out = append(out, l.Text)
			}
		}
	}
	t.lines = append(out, t.lines[at:]...)
	return t.String(), notes, nil
}

// find returns the index at which a hunk's lines begin.
func (f File) find(lines []string, h Hunk, from int) (int, Tolerance, error) {
	at := from
	for _, hint := range h.Hints {
		i := findLine(lines, hint, at)
		if i < 0 {
			near, found := nearest(lines, []string{hint})
			return 0, 0, &MatchError{Path: f.Path, Line: h.Line, Hint: hint, At: near, Found: found}
		}
		at = i
	}
	var old []string
	for _, l := range h.Lines {
		if l.Kind != '+' {
			old = append(old, l.Text)
		}
	}
	if len(old) == 0 { // nothing but new lines
		if len(h.Hints) > 0 && !h.EndOfFile {
			return at + 1, Exact, nil
		}
		return len(lines), Exact, nil
	}
	for _, atEnd := range []bool{true, false} { // blank lines may follow what the patch takes for the end
		for tolerance := Exact; tolerance <= Punctuation && (h.EndOfFile || !atEnd); tolerance++ {
			if i := findLines(lines, old, at, atEnd, tolerance); i >= 0 {
				return i, tolerance, nil
			}
		}
	}
	near, found := nearest(lines, old)
	return 0, 0, &MatchError{Path: f.Path, Line: h.Line, Wanted: old, At: near, Found: found}
}

// findLine looks for a hint: a line that equals it, or else begins with it, or
// contains it.
func findLine(lines []string, hint string, from int) int {
	want := normal(hint, Punctuation)
	for _, same := range []func(line string) bool{
		func(l string) bool { return l == want },
		func(l string) bool { return strings.HasPrefix(l, want) },
		func(l string) bool { return strings.Contains(l, want) },
	} {
		for i := from; i < len(lines); i++ {
			if same(normal(lines[i], Punctuation)) {
				return i
			}
		}
	}
	return -1
}

// findLines looks for consecutive lines, only at the end of the file with atEnd.
func findLines(lines, old []string, from int, atEnd bool, tolerance Tolerance) int {
	last := len(lines) - len(old)
	if atEnd && last >= from {
		from = last
	}
	want := make([]string, len(old))
	for i, l := range old {
		want[i] = normal(l, tolerance)
	}
	for i := from; i <= last; i++ {
		n := 0
		for n < len(want) && normal(lines[i+n], tolerance) == want[n] {
			n++
		}
		if n == len(want) {
			return i
		}
	}
	return -1
}

// normal returns a line without what a tolerance ignores.
func normal(line string, tolerance Tolerance) string {
	switch tolerance {
	case Exact:
		return line
	case Trailing:
		return strings.TrimRightFunc(line, unicode.IsSpace)
	case Surrounding:
		return strings.TrimSpace(line)
	}
	return strings.TrimSpace(strings.Map(plain, line))
}

// plain returns the ASCII equivalent of a typographic character.
func plain(c rune) rune {
	switch {
	case c >= 0x2010 && c <= 0x2015, c == 0x2212:
		return '-'
	case c >= 0x2018 && c <= 0x201b:
		return '\''
	case c >= 0x201c && c <= 0x201f:
		return '"'
	case c == 0xa0, c >= 0x2000 && c <= 0x200a, c == 0x202f, c == 0x205f, c == 0x3000:
		return ' '
	}
	return c
}

// nearest returns the number of the line where the most similar lines begin, and
// those lines with some context.
func nearest(lines, wanted []string) (at int, found []string) {
	const most = 5_000_000 // comparisons; more would take too long
	if len(lines)*len(wanted) > most {
		return 0, nil
	}
	have, want := make([]string, len(lines)), make([]string, len(wanted))
	for i, l := range lines {
		have[i] = normal(l, Punctuation)
	}
	for i, l := range wanted {
		want[i] = normal(l, Punctuation)
	}
	best := 0
	for i := range have {
		score := 0
		for j := range want {
			if i+j < len(have) {
				score += alike(have[i+j], want[j])
			}
		}
		if score > best {
			best, at = score, i+1
		}
	}
	if at == 0 {
		return 0, nil
	}
	from, to := max(0, at-2), min(len(lines), at+len(wanted)+1)
	if to-from > 12 {
		to = from + 12
	}
	return from + 1, lines[from:to]
}

// alike scores the similarity of two lines: 4 if they are equal, less for a
// common prefix and suffix.
func alike(a, b string) int {
	switch {
	case a == "" || b == "":
		return 0
	case a == b:
		return 4
	}
	n, least := 0, min(len(a), len(b))
	for n < least && a[n] == b[n] {
		n++
	}
	for end := 1; n < least && end <= least && a[len(a)-end] == b[len(b)-end]; end++ {
		n++
	}
	switch longest := max(len(a), len(b)); {
	case 4*n >= 3*longest:
		return 3
	case 2*n >= longest:
		return 2
	case n >= 8:
		return 1
	}
	return 0
}
