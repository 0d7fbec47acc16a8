package patch

import (
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/core/internal/textedit"
)

// Note reports a hunk that was not found exactly, or in several places.
type Note struct {
	Line      int // of the hunk in the patch
	Tolerance textedit.Tolerance
	Places    int // where its lines occur
	At        int // number of the file's line where it was applied
	Indented  bool
}

// String describes how the hunk was applied.
func (n Note) String() string {
	var parts []string
	if n.Tolerance > textedit.Exact {
		parts = append(parts, "matched ignoring differences in "+n.Tolerance.String())
	}
	if n.Indented {
		parts = append(parts, "changed the indentation of the added lines to the file's")
	}
	if n.Places > 1 {
		parts = append(parts, fmt.Sprintf("its lines occur in %d places, changed the one at line %d of the file", n.Places, n.At))
	}
	return strings.Join(parts, "; ")
}

// MatchError is a hunk whose lines are not in the file.
type MatchError struct {
	Path   string
	Line   int      // of the hunk in the patch
	Hint   string   // the hint that was not found; empty if the lines were not
	Wanted []string // the lines that were not found
	At     int      // number of the first of the most similar lines, from 1; 0 = none
	Found  []string // the most similar lines
	Cause  error    // why lines that were found cannot be changed
}

// Error shows the wanted lines and the most similar ones.
func (e *MatchError) Error() string {
	var b strings.Builder
	if e.Cause != nil {
		return fmt.Sprintf("%s: change at line %d of the patch: %v", e.Path, e.Line, e.Cause)
	}
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

// Apply applies an update to the content of a file. Each hunk is searched after
// the one before. Unchanged lines keep their line ending; so do a byte order
// mark, and whether the last line has a line ending. The error is a
// *[MatchError]; notes report hunks that were not found exactly or not in one
// place only.
func (f File) Apply(before string) (after string, notes []Note, err error) {
	t := textedit.Parse(before)
	e := t.Edit()
	for _, h := range f.Hunks {
		at, note, err := f.find(t, e, h)
		if err != nil {
			return "", nil, err
		}
		ops := make([]textedit.Op, len(h.Lines))
		for i, l := range h.Lines {
			ops[i] = textedit.Op{Kind: l.Kind, Line: textedit.Line{Text: l.Text, End: "\n"}}
		}
		if err := e.Change(at, ops, note.Tolerance); err != nil {
			return "", nil, &MatchError{Path: f.Path, Line: h.Line, Cause: err}
		}
		for i, l := range h.Lines {
			note.Indented = note.Indented || ops[i].Line.Text != l.Text
		}
		if note.Tolerance > textedit.Exact || note.Places > 1 {
			notes = append(notes, note)
		}
	}
	return e.String(), notes, nil
}

// find returns the index at which a hunk's lines begin. What a unified diff says
// after its line numbers is a hint that may be wrong.
func (f File) find(t *textedit.Text, e *textedit.Edit, h Hunk) (int, Note, error) {
	if h.Section != "" {
		if i := findLine(t, h.Section, e.Next()); i >= 0 {
			if at, note, err := f.findFrom(t, e, h, i); err == nil {
				return at, note, nil
			}
		}
	}
	at := e.Next()
	for _, hint := range h.Hints {
		i := findLine(t, hint, at)
		if i < 0 {
			near, found := t.Nearest([]string{hint})
			return 0, Note{}, &MatchError{Path: f.Path, Line: h.Line, Hint: hint, At: near, Found: found}
		}
		at = i
	}
	return f.findFrom(t, e, h, at)
}

// findFrom looks for the lines of a hunk from an index on.
func (f File) findFrom(t *textedit.Text, e *textedit.Edit, h Hunk, from int) (int, Note, error) {
	var old []string
	for _, l := range h.Lines {
		if l.Kind != '+' {
			old = append(old, l.Text)
		}
	}
	note := Note{Line: h.Line}
	if len(old) == 0 { // nothing but new lines
		if len(h.Hints) > 0 && !h.EndOfFile {
			return from + 1, note, nil
		}
		return len(t.Lines), note, nil
	}
	if h.EndOfFile { // blank lines may follow what the patch takes for the end
		if at, tolerance := e.Find(old, max(from, len(t.Lines)-len(old))); len(at) > 0 {
			note.Tolerance = tolerance
			return at[0], note, nil
		}
	}
	all, tolerance := e.Find(old, from)
	if len(all) == 0 {
		near, found := t.Nearest(old)
		return 0, Note{}, &MatchError{Path: f.Path, Line: h.Line, Wanted: old, At: near, Found: found}
	}
	note.Tolerance, note.At = tolerance, all[0]+1
	for _, at := range all {
		if h.At > 0 && distance(at+1, h.At) < distance(note.At, h.At) {
			note.At = at + 1
		}
	}
	if len(h.Hints) == 0 && h.At == 0 {
		note.Places = len(all)
	}
	return note.At - 1, note, nil
}

func distance(a, b int) int { return max(a-b, b-a) }

// findLine looks for a hint: a line that equals it, or else begins with it, or
// contains it.
func findLine(t *textedit.Text, hint string, from int) int {
	want := textedit.Punctuation.Normal(hint)
	for _, same := range []func(line string) bool{
		func(l string) bool { return l == want },
		func(l string) bool { return strings.HasPrefix(l, want) },
		func(l string) bool { return strings.Contains(l, want) },
	} {
		for i := from; i < len(t.Lines); i++ {
			if same(textedit.Punctuation.Normal(t.Lines[i].Text)) {
				return i
			}
		}
	}
	return -1
}
