package textedit

import "strings"

// BOM is the UTF-8 byte order mark.
const BOM = "\uFEFF"

// Line is a line of a text.
type Line struct {
	Text string
	End  string // "\n", "\r\n", "\r", or empty for an unfinished last line
}

// Text is the content of a file.
type Text struct {
	BOM   bool
	Lines []Line
	usual string // the most frequent line ending
}

// Parse splits a file into lines. A lone CR ends a line only in a file without
// LF; elsewhere it is part of the line.
func Parse(content string) *Text {
	t := &Text{usual: "\n"}
	content, t.BOM = strings.CutPrefix(content, BOM)
	if !strings.Contains(content, "\n") && strings.Contains(content, "\r") {
		t.Lines, t.usual = split(content, "\r"), "\r"
		return t
	}
	t.Lines = split(content, "\n")
	crlf := 0
	for i, l := range t.Lines {
		if text, ok := strings.CutSuffix(l.Text, "\r"); ok && l.End != "" {
			t.Lines[i] = Line{text, "\r\n"}
			crlf++
		}
	}
	if crlf > 0 && 2*crlf >= len(t.Lines) {
		t.usual = "\r\n"
	}
	return t
}

func split(content, end string) []Line {
	var lines []Line
	for content != "" {
		text, rest, found := strings.Cut(content, end)
		l := Line{Text: text}
		if found {
			l.End = end
		}
		lines, content = append(lines, l), rest
	}
	return lines
}

// Native returns text with the line endings that are most frequent in the file,
// if it has none but LF itself, and whether that changed it.
func (t *Text) Native(text string) (native string, changed bool) {
	if t.usual == "\n" || strings.Contains(text, "\r") || !strings.Contains(text, "\n") {
		return text, false
	}
	return strings.ReplaceAll(text, "\n", t.usual), true
}

// unified returns text with LF as the only line ending, as edits compare it.
func (t *Text) unified(text string) string {
	text = strings.ReplaceAll(strings.TrimPrefix(text, BOM), "\r\n", "\n")
	if t.usual == "\r" {
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return text
}

// join returns the lines with LF as the only line ending.
func join(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text)
		if l.End != "" {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// builder assembles a changed text.
type builder struct {
	of    *Text
	lines []Line
}

// keep adds lines of the file unchanged.
func (b *builder) keep(lines ...Line) { b.lines = append(b.lines, lines...) }

// replace adds lines in place of others: each takes over the line ending of the
// line it replaces, further ones that of the line before.
func (b *builder) replace(old, added []Line) {
	for i, l := range added {
		if l.End != "" {
			l.End = b.of.usual
			if i < len(old) && old[i].End != "" {
				l.End = old[i].End
			} else if n := len(b.lines); n > 0 && b.lines[n-1].End != "" {
				l.End = b.lines[n-1].End
			}
		}
		b.lines = append(b.lines, l)
	}
}

// String returns the text. Only the last line may be unfinished.
func (b *builder) String() string {
	var out strings.Builder
	if b.of.BOM {
		out.WriteString(BOM)
	}
	for i, l := range b.lines {
		if l.End == "" && i < len(b.lines)-1 {
			l.End = b.of.usual
		}
		out.WriteString(l.Text)
		out.WriteString(l.End)
	}
	return out.String()
}
