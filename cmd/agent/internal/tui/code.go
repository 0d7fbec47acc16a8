package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// codeBlock renders a code block.
func (m *markdown) codeBlock(language, code string, width int) []string {
	lines := strings.Split(strings.TrimSuffix(code, "\n"), "\n")
	if code == "" {
		return nil
	}
	return m.codeLines(m.code(language, code), lines, width)
}

// codeLines renders lines of code, as spans if there are any.
func (m *markdown) codeLines(spans [][]span, lines []string, width int) []string {
	var out []string
	for i, line := range lines {
		if i < len(spans) {
			out = append(out, m.codeSpans(spans[i], width)...)
		} else {
			out = append(out, m.codeLine(line, width)...)
		}
	}
	return out
}

// codeLine formats a line of a code block, indented. What does not fit continues
// below, indented further than the code.
func (m *markdown) codeLine(line string, width int) []string {
	line = strings.TrimRight(line, "\r\n")
	return m.codeSpans([]span{{line, codeStyle}}, width)
}

// codeSpans breaks a line of code, at spaces if they are not far.
func (m *markdown) codeSpans(line []span, width int) []string {
	const margin = "  "
	code := untab(flat(line))
	depth := min(len(code)-len(strings.TrimLeft(code, " ")), max(0, width/2-6))
	rest := margin + strings.Repeat(" ", depth+2)
	if width <= 0 || ansi.StringWidth(code)+len(margin) <= width {
		rest = margin
	}
	var cells []cell
	for _, s := range line {
		for text := untab(s.text); text != ""; {
			c, columns := cluster(text)
			cells, text = append(cells, cell{c, columns, s.style}), text[len(c):]
		}
	}
	var out []string
	for prefix := margin; ; prefix = rest {
		n, used := 0, len(prefix)
		for n < len(cells) && (width <= 0 || n == 0 || used+cells[n].width <= width) {
			used += cells[n].width
			n++
		}
		for at := n; n < len(cells) && at > n*2/3; at-- {
			if cells[at-1].text == " " {
				n = at
				break
			}
		}
		out = append(out, strings.TrimRight(prefix+m.join(cells[:n]), " "))
		if cells = cells[n:]; len(cells) == 0 {
			return out
		}
	}
}

// maxHeld is how many lines of a code block are held back until they are
// highlighted together: what a line is depends on those after it.
const maxHeld = 12

// codeBlock is a code block of an answer while it is streamed.
type codeBlock struct {
	language string
	before   []string // lines that were shown, from one at which reading code can begin
	held     []string
}

func newCodeBlock(info string) *codeBlock {
	language, _, _ := strings.Cut(strings.TrimSpace(info), " ")
	language, _, _ = strings.Cut(strings.Trim(language, "{}."), ",")
	return &codeBlock{language: language}
}

// codeLine adds a line to the code block and returns what is to be shown now.
func (a *answer) codeLine(line string, width int) []string {
	line = display.Printable(line)
	if !a.md.highlights(a.code.language) {
		return a.separate("code", a.md.codeLine(line, width))
	}
	a.code.held = append(a.code.held, line)
	if len(a.code.held) < maxHeld {
		return nil
	}
	return a.showCode(width)
}

// showCode returns the lines that are held back.
func (a *answer) showCode(width int) []string {
	c := a.code
	if a.fence == "" || len(c.held) == 0 {
		return nil
	}
	before := len(c.before)
	all := append(c.before, c.held...)
	code := strings.Join(all, "\n") + "\n"
	if strings.LastIndex(code, "/*") > strings.LastIndex(code, "*/") {
		code += "*/" // the comment continues on the next line
	}
	spans := a.md.code(c.language, code)
	if len(spans) < len(all) {
		spans = nil
	}
	spans = spans[:min(len(spans), len(all))]
	c.before, c.held = all[beginning(spans, all):], nil
	return a.separate("code", a.md.codeLines(spans[min(before, len(spans)):], all[before:], width))
}

// beginning returns the last line at which reading code can begin: one that is not
// indented, nor in the middle of a string or a comment.
func beginning(spans [][]span, lines []string) int {
	const most = 150 // lines, after which it begins anywhere
	for i := len(spans) - 1; i > 0; i-- {
		line := lines[i]
		if line == "" || strings.ContainsAny(line[:1], " \t}])") {
			continue
		}
		if st := spans[i][0].style; st != comment && st != literal {
			return i
		}
	}
	if len(lines) > most {
		return len(lines)
	}
	return 0
}

// codeTail renders the unfinished lines of a code block.
func (a *answer) codeTail(partial string, width int) []string {
	var out []string
	st := codeStyle
	if a.md.highlights(a.code.language) {
		st = plain
	}
	for _, line := range a.code.held {
		out = append(out, a.md.codeSpans([]span{{line, st}}, width)...)
	}
	if partial == "" || closes(strings.TrimLeft(partial, " "), a.fence) {
		return out
	}
	return append(out, a.md.codeSpans([]span{{display.Printable(partial), st}}, width)...)
}
