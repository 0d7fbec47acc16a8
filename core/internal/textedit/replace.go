package textedit

import (
	"fmt"
	"sort"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// Options of [Text.Replace].
type Options struct {
	All bool // replace every occurrence
	// Offside is set for languages in which indentation has a meaning: further
	// lines of a text that replaces an indented one are indented as well.
	Offside bool
	// Blocks is set if a line that ends in a colon needs a deeper one.
	Blocks bool
}

// Replacement is the outcome of a replacement.
type Replacement struct {
	Text      string // the file's new content
	Count     int
	lines     []int // first lines of the replaced texts, at most maxLineList
	lastLine  int   // of a single replaced text
	tolerance Tolerance
	indented  bool
}

// maxLineList is the maximum number of line numbers listed.
const maxLineList = 10

// String describes what was replaced, and what was not exact:
// "1 replacement (lines 3–5)."
func (r Replacement) String() string {
	noun := "replacements"
	if r.Count == 1 {
		noun = "replacement"
	}
	where := lineList(r.lines, r.Count)
	if r.Count == 1 && r.lastLine > r.lines[0] {
		where = fmt.Sprintf("lines %d–%d", r.lines[0], r.lastLine)
	}
	text := fmt.Sprintf("%d %s (%s).", r.Count, noun, where)
	if r.tolerance > Exact {
		text += " No exact match: replaced the only place that differs just in " + r.tolerance.String()
		if r.indented {
			text += ", and changed the indentation of new_string to the file's"
		}
		return text + "."
	}
	if r.indented {
		text += " The further lines of new_string were indented like the line that they follow."
	}
	return text
}

// Replace replaces oldText, which must not be empty, by newText. If it does not
// occur exactly, the only lines that differ in white space or punctuation are
// replaced. The error is for the model.
func (t *Text) Replace(oldText, newText string, opts Options) (Replacement, error) {
	from, to := t.unified(oldText), t.unified(newText)
	content := join(t.Lines)
	lines, n := occurrences(content, from)
	switch {
	case n == 0:
		return t.replaceTolerant(from, to)
	case n > 1 && !opts.All:
		return Replacement{}, fmt.Errorf("old_string is not unique: it occurs %d times (%s). "+
			"Add neighbouring lines to make it unique, or set replace_all", n, lineList(lines, n))
	}
	var starts []int // overlapping ones do not count
	for pos := 0; ; {
		i := strings.Index(content[pos:], from)
		if i < 0 {
			break
		}
		starts = append(starts, pos+i)
		pos += i + len(from)
	}
	r := Replacement{Count: len(starts), lines: lines, lastLine: lines[0] + strings.Count(strings.TrimSuffix(from, "\n"), "\n")}
	r.Text = t.replaceAt(content, starts, from, func(before string) string {
		if opts.Offside && !strings.Contains(from, "\n") {
			indented, ok := follow(before, to, opts.Blocks)
			r.indented = r.indented || ok
			return indented
		}
		return to
	})
	return r, nil
}

// replaceAt replaces the texts at the given places of content, the file with LF
// as line ending. Only the lines that this changes get another line ending.
func (t *Text) replaceAt(content string, starts []int, from string, to func(before string) string) string {
	begin := make([]int, 1, len(t.Lines)+1) // of each line
	for _, l := range t.Lines {
		n := len(l.Text)
		if l.End != "" {
			n++
		}
		begin = append(begin, begin[len(begin)-1]+n)
	}
	lineAt := func(pos int) int { return sort.SearchInts(begin, pos+1) - 1 }
	e := t.Edit()
	for len(starts) > 0 {
		first := lineAt(starts[0])
		last, pos := first, begin[first]
		var text strings.Builder
		for {
			for len(starts) > 0 && starts[0] < begin[last+1] {
				text.WriteString(content[pos:starts[0]])
				text.WriteString(to(content[begin[lineAt(starts[0])]:starts[0]]))
				pos, starts = starts[0]+len(from), starts[1:]
				last = lineAt(pos - 1)
			}
			all := text.String() + content[pos:begin[last+1]]
			if all == "" || strings.HasSuffix(all, "\n") || last == len(t.Lines)-1 {
				_ = e.Change(first, compareExact(t.Lines[first:last+1], split(all, "\n")), Exact) // exact ones cannot fail
				break
			}
			last++ // the replaced text ends in the middle of the next line
		}
	}
	return e.finish()
}

// compareExact compares with trailing white space.
func compareExact(old, added []Line) []Op {
	ops := compare(old, added)
	next := 0
	var out []Op
	for _, o := range ops {
		if o.Kind == '-' {
			out = append(out, o)
			continue
		}
		l := added[next]
		next++
		if o.Kind == ' ' && l.Text != o.Line.Text {
			out = append(out, Op{'-', o.Line}, Op{'+', l})
			continue
		}
		out = append(out, o)
	}
	return out
}

// follow indents the further lines of a text that is put behind white space, if
// they are indented less than it; a definition at the left margin after a blank
// line stays there.
func follow(before, text string, blocks bool) (string, bool) {
	first, rest, more := strings.Cut(text, "\n")
	if !more || before == "" || strings.Trim(before, " \t") != "" || strings.TrimLeft(first, " \t") != first {
		return text, false
	}
	lines := strings.Split(rest, "\n")
	less := blocks && strings.HasSuffix(first, ":") && indent(lines[0]) == before && strings.TrimSpace(lines[0]) != ""
	for i, l := range lines {
		if strings.TrimSpace(l) == "" || strings.HasPrefix(l, before) {
			continue
		}
		if indent(l) == "" && i > 0 && strings.TrimSpace(lines[i-1]) == "" && topLevel().MatchString(l) {
			return text, false
		}
		less = true
	}
	if !less {
		return text, false
	}
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			lines[i] = before + l
		}
	}
	return first + "\n" + strings.Join(lines, "\n"), true
}

var topLevel = lazy.Regexp(`^(async def |def |class |@|if __name__|import |from |#|[\w.-]+:)`)

// occurrences counts where part occurs in text, overlaps included, and returns
// the line numbers of the first ones.
func occurrences(text, part string) (lines []int, n int) {
	if part == "" {
		return nil, 0
	}
	line, pos := 1, 0
	for {
		i := strings.Index(text[pos:], part)
		if i < 0 {
			return lines, n
		}
		n++
		if len(lines) < maxLineList {
			line += strings.Count(text[pos:pos+i], "\n")
			lines = append(lines, line)
		}
		if text[pos+i] == '\n' {
			line++
		}
		pos += i + 1
	}
}

func lineList(lines []int, n int) string {
	var b strings.Builder
	b.WriteString("line")
	if n > 1 {
		b.WriteByte('s')
	}
	for i, l := range lines {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d", l)
	}
	if n > len(lines) {
		b.WriteString(", …")
	}
	return b.String()
}

// replaceTolerant replaces the only run of lines that resembles oldText.
func (t *Text) replaceTolerant(oldText, newText string) (Replacement, error) {
	old, added := split(oldText, "\n"), split(newText, "\n")
	want := make([]string, len(old))
	for i, l := range old {
		want[i] = l.Text
	}
	var at []int
	var tolerance Tolerance
	if strings.TrimSpace(oldText) != "" { // blank lines would match everywhere
		at, tolerance = find(t.Lines, want, 0)
	}
	switch {
	case len(at) == 0:
		return Replacement{}, t.notFound(want)
	case len(at) > 1:
		lines := []int{}
		for _, i := range at[:min(len(at), maxLineList)] {
			lines = append(lines, i+1)
		}
		return Replacement{}, fmt.Errorf("no exact match of old_string, and %d places differ just in white space or punctuation (%s). "+
			"Read the file and copy the exact text, with neighbouring lines", len(at), lineList(lines, len(at)))
	}
	start, end := at[0], at[0]+len(old)
	if len(added) == 0 && !strings.HasSuffix(oldText, "\n") {
		added = []Line{{}}
	}
	if n := len(added); n > 0 && (old[len(old)-1].End == "") == (added[n-1].End == "") {
		added[n-1].End = t.Lines[end-1].End
		old[len(old)-1].End = t.Lines[end-1].End
	}
	ops := compare(old, added)
	before := join(added)
	e := t.Edit()
	if err := e.Change(start, ops, tolerance); err != nil {
		return Replacement{}, fmt.Errorf("no exact match of old_string. Lines %d to %d differ just in white space, but %w. "+
			"Copy the exact text, and indent new_string as it must be in the file", start+1, end, err)
	}
	r := Replacement{Count: 1, lines: []int{start + 1}, lastLine: end, tolerance: tolerance}
	r.indented = tolerance >= Space && before != newLines(ops)
	r.Text = e.finish()
	return r, nil
}

// newLines returns the lines after a change, with LF as line ending.
func newLines(ops []Op) string {
	var lines []Line
	for _, o := range ops {
		if o.Kind != '-' {
			lines = append(lines, o.Line)
		}
	}
	return join(lines)
}

var numbered = lazy.Regexp(`^\s*\d+ \| `)

// notFound is the error for a missing text, with the nearest lines.
func (t *Text) notFound(old []string) error {
	const message = "old_string was not found"
	if numbered().MatchString(old[0]) {
		return fmt.Errorf("%s. It starts with a line number as shown by read_file: leave out the numbers and bars", message)
	}
	at, found := t.Nearest(old)
	if at == 0 {
		return fmt.Errorf("%s, nor anything similar. Read the file again and copy the text exactly", message)
	}
	var shown strings.Builder
	for i, l := range found {
		if runes := []rune(l); len(runes) > 200 {
			l = string(runes[:200]) + "…"
		}
		fmt.Fprintf(&shown, "\n%*d | %s", len(fmt.Sprint(at+len(found)-1)), at+i, l)
	}
	return fmt.Errorf("%s. The nearest lines are:%s\nCopy the text exactly, without the numbers", message, shown.String())
}
