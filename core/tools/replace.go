package tools

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

const utf8BOM = "\uFEFF"

// document is the text of a file, separate from what an edit must keep: its
// byte order mark and its line endings.
type document struct {
	bom  bool
	crlf bool // most lines end in CR LF
	text string
}

func parseDocument(data []byte) document {
	text, bom := strings.CutPrefix(string(data), utf8BOM)
	crlf := strings.Count(text, "\r\n")
	return document{bom: bom, crlf: crlf > 0 && 2*crlf >= strings.Count(text, "\n"), text: text}
}

// bytes returns the file's content with another text.
func (d document) bytes(text string) []byte {
	if d.bom {
		text = utf8BOM + text
	}
	return []byte(text)
}

// native converts text to the line endings of the document.
func (d document) native(text string) string {
	text = strings.ReplaceAll(strings.TrimPrefix(text, utf8BOM), "\r\n", "\n")
	if d.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// replacement is the outcome of a replacement.
type replacement struct {
	text      string
	lines     []int // first lines of the replaced texts, at most maxLineList
	count     int
	lastLine  int // of a single replaced text
	tolerance tolerance
}

// places describes what was replaced: "1 replacement (lines 3–5)".
func (r replacement) places() string {
	if r.count == 1 && r.lastLine > r.lines[0] {
		return fmt.Sprintf("1 replacement (lines %d–%d)", r.lines[0], r.lastLine)
	}
	return fmt.Sprintf("%s (%s)", count(r.count, "replacement"), lineList(r.lines, r.count))
}

// replace replaces oldText, which must not be empty, with newText. The error is
// for the model.
func (d document) replace(oldText, newText string, all bool) (replacement, error) {
	to := d.native(newText)
	for _, from := range []string{d.native(oldText), strings.ReplaceAll(oldText, "\r\n", "\n"), oldText} {
		lines, n := occurrences(d.text, from)
		switch {
		case n == 0:
			continue
		case n > 1 && !all:
			return replacement{}, fmt.Errorf("old_string is not unique: it occurs %d times (%s). "+
				"Add neighbouring lines to make it unique, or set replace_all", n, lineList(lines, n))
		case all:
			n = strings.Count(d.text, from) // overlapping ones do not count
		}
		last := lines[0] + strings.Count(strings.TrimSuffix(from, "\n"), "\n")
		return replacement{text: strings.ReplaceAll(d.text, from, to), lines: lines, count: n, lastLine: last}, nil
	}
	return d.replaceTolerant(oldText, newText)
}

// maxLineList is the maximum number of line numbers listed.
const maxLineList = 10

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

// tolerance is what a match of lines ignores.
type tolerance int

const (
	exact tolerance = iota
	trailingSpace
	allSpace
	punctuation
)

func (t tolerance) note() string {
	switch t {
	case trailingSpace:
		return " No exact match: replaced the only place that differs just in white space at line ends."
	case allSpace:
		return " No exact match: replaced the only place that differs just in white space, and indented new_string like it."
	case punctuation:
		return " No exact match: replaced the only place that differs just in white space and in the form of quotes, dashes or other punctuation, and indented new_string like it."
	}
	return ""
}

// normal returns the form in which two lines are compared.
func (t tolerance) normal(line string) string {
	switch t {
	case trailingSpace:
		return strings.TrimRightFunc(line, unicode.IsSpace)
	case allSpace:
		return strings.Join(strings.Fields(line), " ")
	case punctuation:
		return strings.Join(strings.Fields(plainPunctuation.Replace(line)), " ")
	}
	return line
}

// plainPunctuation replaces typographic characters with ASCII.
var plainPunctuation = strings.NewReplacer(
	"‘", "'", "’", "'", "‚", "'", "‛", "'", "′", "'", "“", `"`, "”", `"`, "„", `"`, "‟", `"`, "″", `"`, "«", `"`, "»", `"`,
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "―", "-", "−", "-", "…", "...", "•", "*",
	"\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "", utf8BOM, "",
)

// replaceTolerant replaces the only run of lines that resembles oldText.
func (d document) replaceTolerant(oldText, newText string) (replacement, error) {
	want := splitLines(strings.ReplaceAll(oldText, "\r\n", "\n"))
	lines := splitLines(d.text)
	for t := trailingSpace; t <= punctuation; t++ {
		at := findLines(lines, want, t)
		if len(at) == 0 {
			continue
		}
		if len(at) > 1 {
			return replacement{}, fmt.Errorf("no exact match of old_string, and %d places differ just in white space or punctuation (%s). "+
				"Read the file and copy the exact text, with neighbouring lines", len(at), lineList(plusOne(at), len(at)))
		}
		start, end := at[0], at[0]+len(want)
		if t != trailingSpace {
			newText = reindent(newText, want, lines[start:end])
		}
		before, after := strings.Join(lines[:start], ""), strings.Join(lines[end:], "")
		middle := d.native(newText)
		if !strings.HasSuffix(oldText, "\n") {
			middle += lineEnd(lines[end-1])
		}
		return replacement{text: before + middle + after, lines: []int{start + 1}, count: 1, lastLine: end, tolerance: t}, nil
	}
	return replacement{}, notFound(lines, want)
}

// splitLines splits a text into lines that keep their line breaks.
func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func lineEnd(line string) string {
	switch {
	case strings.HasSuffix(line, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(line, "\n"):
		return "\n"
	}
	return ""
}

func plusOne(at []int) []int {
	var out []int
	for _, i := range at[:min(len(at), maxLineList)] {
		out = append(out, i+1)
	}
	return out
}

// findLines returns where the wanted lines start in lines. Wanted lines that are
// all blank match nothing, as they would match everywhere.
func findLines(lines, want []string, t tolerance) []int {
	normal := make([]string, len(want))
	blank := true
	for i, w := range want {
		normal[i] = t.normal(w)
		blank = blank && strings.TrimSpace(normal[i]) == ""
	}
	if blank || len(want) > len(lines) {
		return nil
	}
	have := make([]string, len(lines))
	for i, l := range lines {
		have[i] = t.normal(l)
	}
	var at []int
next:
	for i := range len(have) - len(normal) + 1 {
		for j, n := range normal {
			if have[i+j] != n {
				continue next
			}
		}
		at = append(at, i)
	}
	return at
}

// reindent changes the indentation of text as that of old differs from that of
// the found lines: a line of text that is indented like a line of old gets the
// indentation that line has in the file. If old is ambiguous, text is unchanged.
func reindent(text string, old, found []string) string {
	indents := map[string]string{}
	for i, o := range old {
		if strings.TrimSpace(o) == "" {
			continue
		}
		from, to := indent(o), indent(found[i])
		if was, ok := indents[from]; ok && was != to {
			return text
		}
		indents[from] = to
	}
	lines := splitLines(text)
	for i, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		from := indent(l)
		if to, ok := indents[from]; ok {
			lines[i] = to + l[len(from):]
		} else if longest, ok := longestPrefix(indents, from); ok {
			lines[i] = indents[longest] + l[len(longest):]
		}
	}
	return strings.Join(lines, "")
}

// longestPrefix returns the longest key that is a prefix of text.
func longestPrefix(keys map[string]string, text string) (string, bool) {
	for n := len(text) - 1; n >= 0; n-- {
		if _, ok := keys[text[:n]]; ok {
			return text[:n], true
		}
	}
	return "", false
}

func indent(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

var numbered = regexp.MustCompile(`^\s*\d+ \| `)

// notFound is the error for a missing text, with the nearest lines.
func notFound(lines, old []string) error {
	const message = "old_string was not found"
	if numbered.MatchString(old[0]) {
		return fmt.Errorf("%s. It starts with a line number as shown by read_file: leave out the numbers and bars", message)
	}
	start, end, ok := nearest(lines, old)
	if !ok {
		return fmt.Errorf("%s, nor anything similar. Read the file again and copy the text exactly", message)
	}
	var shown strings.Builder
	for i := start; i < end; i++ {
		fmt.Fprintf(&shown, "\n%*d | %s", len(fmt.Sprint(end)), i+1, clip(strings.TrimRight(lines[i], "\r\n"), 0, 200))
	}
	return fmt.Errorf("%s. The nearest lines are:%s\nCopy the text exactly, without the numbers", message, shown.String())
}

const (
	maxNearestLines = 20_000 // of a file that is searched
	maxNearestShown = 12
)

// nearest returns the range of lines most similar to old, judged by its longest
// line.
func nearest(lines, old []string) (start, end int, ok bool) {
	key, keyAt := "", 0
	for i, o := range old {
		if n := allSpace.normal(o); len(n) > len(key) {
			key, keyAt = n, i
		}
	}
	if key == "" || len(key) > 2_000 || len(lines) > maxNearestLines {
		return 0, 0, false
	}
	want, best, at := newPairs(key), 0.0, 0
	for i, l := range lines {
		if score := want.similarity(allSpace.normal(l)); score > best {
			best, at = score, i
		}
	}
	if best < minSimilarity {
		return 0, 0, false
	}
	start = max(0, at-min(keyAt, maxNearestShown/2)-1)
	end = min(len(lines), start+min(len(old)+2, maxNearestShown))
	return start, max(end, at+1), true
}
