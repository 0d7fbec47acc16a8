package tui

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// Styles of Markdown.
const (
	codeStyle    = cyan
	headingStyle = bold + ";" + magenta
	linkStyle    = underline
)

// markdown renders Markdown as lines for a terminal.
type markdown struct {
	painter
	parser parser.Parser
}

func newMarkdown(p painter) *markdown {
	return &markdown{p, goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()}
}

// render renders complete blocks. Lines are at most width columns wide; a width of
// 0 has no limit, and no tables.
func (m *markdown) render(source string, width int) []string {
	if width > 0 {
		width = max(8, width)
	}
	src := []byte(display.Printable(source))
	return m.blocks(m.parser.Parse(text.NewReader(src)), src, width)
}

// within returns the width that is left of a width beside a prefix.
func within(width, prefix int) int {
	if width <= 0 {
		return 0
	}
	return max(4, width-prefix)
}

// blocks renders the children of a block with an empty line between them,
// except in tight lists.
func (m *markdown) blocks(parent ast.Node, src []byte, width int) []string {
	var out []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		lines := m.block(n, src, width)
		if len(out) > 0 && len(lines) > 0 && !tight(parent) {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

func tight(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.List:
		return n.IsTight
	case *ast.ListItem:
		l, ok := n.Parent().(*ast.List)
		return ok && l.IsTight
	}
	return false
}

func (m *markdown) block(n ast.Node, src []byte, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		marks := strings.Repeat("#", n.Level) + " "
		return m.wrap(append([]span{{marks, headingStyle}}, m.inline(n, src, headingStyle)...), width)
	case *ast.FencedCodeBlock:
		return m.codeBlock(string(n.Language(src)), string(n.Lines().Value(src)), width)
	case *ast.CodeBlock:
		return m.codeBlock("", string(n.Lines().Value(src)), width)
	case *ast.HTMLBlock:
		var b strings.Builder
		for i := range n.Lines().Len() {
			seg := n.Lines().At(i)
			b.Write(seg.Value(src))
		}
		return m.wrap([]span{{strings.TrimRight(b.String(), "\n"), plain}}, width)
	case *ast.List:
		return m.list(n, src, width)
	case *ast.Blockquote:
		bar := m.paint(dim, "│ ")
		return indent(m.blocks(n, src, within(width, 2)), bar, bar)
	case *ast.ThematicBreak:
		return []string{m.paint(dim, strings.Repeat("─", min(cmp.Or(width, 24), 24)))}
	case *extast.Table:
		return m.table(n, src, width)
	}
	return m.wrap(m.inline(n, src, plain), width)
}

func (m *markdown) list(n *ast.List, src []byte, width int) []string {
	var out []string
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		marker := "• "
		if n.IsOrdered() {
			marker = fmt.Sprintf("%d. ", number)
			number++
		}
		pad := strings.Repeat(" ", ansi.StringWidth(marker))
		lines := m.blocks(item, src, within(width, len(pad)))
		if len(lines) == 0 {
			lines = []string{""}
		}
		if len(out) > 0 && !n.IsTight {
			out = append(out, "")
		}
		out = append(out, indent(lines, m.paint(dim, marker), pad)...)
	}
	return out
}

// inline returns the text of a block.
func (m *markdown) inline(parent ast.Node, src []byte, s style) []span {
	var out []span
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			out = append(out, span{string(n.Segment.Value(src)), s})
			switch {
			case n.HardLineBreak():
				out = append(out, span{"\n", s})
			case n.SoftLineBreak():
				out = append(out, span{" ", s})
			}
		case *ast.String:
			out = append(out, span{string(n.Value), s})
		case *ast.CodeSpan:
			out = append(out, m.codeSpan(flat(m.inline(n, src, s)), s))
		case *ast.Emphasis:
			more := italic
			if n.Level > 1 {
				more = bold
			}
			out = append(out, m.inline(n, src, s.and(more))...)
		case *extast.Strikethrough:
			out = append(out, m.inline(n, src, s.and(struck))...)
		case *extast.TaskCheckBox:
			box := "[ ] "
			if n.IsChecked {
				box = "[x] "
			}
			out = append(out, span{box, s})
		case *ast.Link:
			out = append(out, link(m.inline(n, src, s.and(linkStyle)), string(n.Destination), s)...)
		case *ast.Image:
			out = append(out, link(append([]span{{"image: ", s}}, m.inline(n, src, s)...), string(n.Destination), s)...)
		case *ast.AutoLink:
			out = append(out, span{string(n.URL(src)), s.and(linkStyle)})
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				seg := n.Segments.At(i)
				out = append(out, span{string(seg.Value(src)), s})
			}
		default:
			out = append(out, m.inline(n, src, s)...)
		}
	}
	return out
}

// codeSpan keeps the backquotes if there are no colours.
func (m *markdown) codeSpan(text string, s style) span {
	if !m.colors {
		text = "`" + text + "`"
	}
	return span{text, s.and(codeStyle)}
}

// link adds a link's URL, unless it is the text.
func link(label []span, url string, s style) []span {
	if shown := flat(label); url == "" || shown == url || "mailto:"+shown == url {
		return label
	}
	return append(label, span{" (" + url + ")", s.and(dim)})
}

func flat(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return b.String()
}

// table formats cells in columns; if they do not fit, each row becomes a list of
// its cells.
func (m *markdown) table(t *extast.Table, src []byte, width int) []string {
	rows := m.tableRows(t, src)
	if len(rows) == 0 {
		return nil
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], ansi.StringWidth(flat(c)), 1)
		}
	}
	if width <= 0 || !fit(widths, width-3*(len(widths)-1)) {
		return m.stacked(rows, width)
	}
	var out []string
	for i, r := range rows {
		out = append(out, m.tableRow(r, widths, t.Alignments)...)
		if i == 0 {
			rules := make([]string, len(widths))
			for j, w := range widths {
				rules[j] = strings.Repeat("─", w)
			}
			out = append(out, m.paint(dim, strings.Join(rules, "─┼─")))
		}
	}
	return out
}

// tableRows returns the cells of a table, with as many in each row as in the
// header.
func (m *markdown) tableRows(t *extast.Table, src []byte) [][][]span {
	var rows [][][]span
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		s := plain
		if r.Kind() == extast.KindTableHeader {
			s = bold
		}
		var cells [][]span
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, m.inline(c, src, s))
		}
		if len(rows) > 0 {
			cells = append(cells, make([][]span, max(0, len(rows[0])-len(cells)))...)[:len(rows[0])]
		}
		rows = append(rows, cells)
	}
	return rows
}

// fit shrinks the widest columns until the sum is within the limit. It returns
// false if a column would become too narrow to read.
func fit(widths []int, limit int) bool {
	const least = 6
	for {
		sum, widest := 0, 0
		for i, w := range widths {
			sum += w
			if w > widths[widest] {
				widest = i
			}
		}
		switch {
		case sum <= limit:
			return true
		case widths[widest] <= least:
			return false
		}
		widths[widest]--
	}
}

func (m *markdown) tableRow(row [][]span, widths []int, align []extast.Alignment) []string {
	cells := make([][]string, len(row))
	height := 1
	for i, c := range row {
		cells[i] = m.wrap(c, widths[i])
		height = max(height, len(cells[i]))
	}
	out := make([]string, height)
	for y := range out {
		var b strings.Builder
		for i, lines := range cells {
			if i > 0 {
				b.WriteString(m.paint(dim, " │ "))
			}
			line := ""
			if y < len(lines) {
				line = lines[y]
			}
			left, right := 0, max(0, widths[i]-ansi.StringWidth(line))
			if i < len(align) {
				switch align[i] {
				case extast.AlignRight:
					left, right = right, 0
				case extast.AlignCenter:
					left, right = right/2, right-right/2
				}
			}
			b.WriteString(strings.Repeat(" ", left) + line + strings.Repeat(" ", right))
		}
		out[y] = strings.TrimRight(b.String(), " ")
	}
	return out
}

// stacked formats a table that is too wide: row by row, one line per cell.
func (m *markdown) stacked(rows [][][]span, width int) []string {
	var out []string
	for i, r := range rows[1:] {
		if i > 0 {
			out = append(out, "")
		}
		for j, c := range r {
			head := append([]span(nil), rows[0][j]...)
			out = append(out, m.wrap(append(append(head, span{": ", bold}), c...), width)...)
		}
	}
	if len(rows) == 1 {
		for _, c := range rows[0] {
			out = append(out, m.wrap(c, width)...)
		}
	}
	return out
}

// answer renders an answer while it is streamed. Complete blocks are rendered
// once; only the unfinished one is rendered for each frame.
type answer struct {
	md      *markdown
	text    strings.Builder // the whole text so far
	partial []byte          // an unterminated line
	block   []string        // lines of the unfinished block
	blank   bool            // an empty line follows the block
	list    bool            // the block is an item of a list
	nested  string          // open fence within the block
	fence   string          // fence of the unfinished code block
	code    *codeBlock      // that block
	after   string          // kind of the last rendered block: "", "item", "code", "block"
}

// add adds a piece of text and returns the lines that are now complete.
func (a *answer) add(piece string, width int) []string {
	a.text.WriteString(piece)
	var out []string
	for {
		line, rest, ok := strings.Cut(piece, "\n")
		a.partial = append(a.partial, line...)
		if !ok {
			return out
		}
		out = append(out, a.line(string(a.partial), width)...)
		a.partial, piece = a.partial[:0], rest
	}
}

// end returns the remaining lines.
func (a *answer) end(width int) []string {
	var out []string
	if len(a.partial) > 0 {
		out = a.line(string(a.partial), width)
	}
	out = append(append(out, a.showCode(width)...), a.flush("block", width)...)
	a.partial, a.fence = nil, ""
	return out
}

// line adds a line, without its newline.
func (a *answer) line(line string, width int) []string {
	line = strings.TrimSuffix(line, "\r")
	trimmed := strings.TrimLeft(line, " ")
	depth := len(line) - len(trimmed)
	if a.fence != "" {
		if closes(trimmed, a.fence) {
			out := a.showCode(width)
			a.fence, a.after = "", "block"
			return out
		}
		return a.codeLine(line, width)
	}
	if a.nested != "" {
		a.block = append(a.block, line)
		if closes(trimmed, a.nested) {
			a.nested = ""
		}
		return nil
	}
	if strings.TrimSpace(line) == "" {
		a.blank = true
		if !a.list {
			return a.flush("block", width)
		}
		return nil
	}
	var out []string
	marker, fence := isItem(trimmed), fenceOf(trimmed)
	if a.list && depth < 2 && (marker || a.blank || fence != "") {
		kind := "block"
		if marker && !a.blank {
			kind = "item"
		}
		out = a.flush(kind, width)
	}
	switch {
	case fence != "" && !a.list && depth < 4:
		out = append(out, a.flush("block", width)...)
		a.fence, a.code = fence, newCodeBlock(trimmed[len(fence):])
		return out
	case fence != "" && a.list:
		a.nested = fence
	case len(a.block) == 0:
		a.list = marker
	case !a.list && marker && depth < 2:
		out, a.list = append(out, a.flush("block", width)...), true
	}
	if a.blank && len(a.block) > 0 {
		a.block = append(a.block, "")
	}
	a.block, a.blank = append(a.block, line), false
	if !a.list && isHeading(trimmed) {
		out = append(out, a.flush("block", width)...)
	}
	return out
}

// flush renders the block, which is of the given kind.
func (a *answer) flush(kind string, width int) []string {
	block, list := a.block, a.list
	a.block, a.blank, a.list, a.nested = nil, false, false, ""
	if len(block) == 0 {
		return nil
	}
	out := a.separate("block", a.md.render(strings.Join(block, "\n"), width))
	if list && kind == "item" {
		a.after = "item"
	}
	return out
}

// separate adds an empty line before a block, but not between lines of code or
// list items.
func (a *answer) separate(kind string, lines []string) []string {
	gap := a.after == "block" || a.after == "code" && kind != "code" || a.after == "item" && kind == "code"
	a.after = kind
	if gap {
		return append([]string{""}, lines...)
	}
	return lines
}

// Of an unfinished block at least maxTail bytes are shown. What is left out grows by
// tailStep, as other line breaks follow.
const (
	maxTail  = 4 << 10
	tailStep = 2 << 10
)

// tail renders the unfinished block.
func (a *answer) tail(width int) []string {
	if a.fence != "" {
		return a.codeTail(string(a.partial[max(0, len(a.partial)-maxTail-1):]), width)
	}
	open := a.block[:len(a.block):len(a.block)]
	if a.blank {
		open = append(open, "")
	}
	text := strings.Join(append(open, ""), "\n")
	cut := max(0, (len(text)+len(a.partial)-maxTail)/tailStep*tailStep)
	text = text[min(cut, len(text)):] + string(a.partial[max(0, cut-len(text)):])
	if cut > 0 {
		text = strings.ToValidUTF8(text, "")
		text = text[strings.IndexAny(text, " \n")+1:]
	}
	if strings.TrimSpace(text) == "" || fenceOf(strings.TrimLeft(text, " ")) != "" {
		return nil
	}
	quick := *a.md
	quick.painter = a.md.hurried(0)
	return quick.render(text, width)
}

// fenceOf returns the fence that a line opens, or "".
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		n := len(line) - len(strings.TrimLeft(line, c))
		if n >= 3 && !(c == "`" && strings.Contains(line[n:], "`")) {
			return line[:n]
		}
	}
	return ""
}

// closes reports whether a line ends a fenced code block.
func closes(line, fence string) bool {
	line = strings.TrimRight(line, " \t")
	return strings.HasPrefix(line, fence) && strings.Trim(line, fence[:1]) == ""
}

func isHeading(line string) bool {
	marks := len(line) - len(strings.TrimLeft(line, "#"))
	return marks >= 1 && marks <= 6 && (len(line) == marks || line[marks] == ' ')
}

// isItem reports whether a line begins a list item.
func isItem(line string) bool {
	digits := strings.TrimLeft(line, "0123456789")
	n := len(line) - len(digits)
	rest := cmp.Or(digits, " ")
	switch {
	case n > 0 && n <= 9:
		return len(rest) > 1 && (rest[0] == '.' || rest[0] == ')') && rest[1] == ' '
	case n == 0:
		return len(rest) > 1 && strings.ContainsRune("-*+", rune(rest[0])) && rest[1] == ' '
	}
	return false
}
